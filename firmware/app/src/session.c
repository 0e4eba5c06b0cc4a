#include "internal.h"

_Static_assert(odt_device_v1_HelloAck_size <= FRAME_HELLO_MAX, "HELLO_ACK exceeds its limit");

/* Differs from boot to boot: what the host sent, who we are, how often we were reset, and what the
 * board has of its own. */
static void form_boot_id(app_t* app, uint64_t nonce) {
  const app_config_t* c = app->config;
  const uint64_t entropy = app->hal.entropy(app->hal.ctx);
  const uint32_t tick = app->hal.now_us(app->hal.ctx);
  uint8_t hash[32];
  odt_sha256_t s;
  odt_sha256_init(&s);
  odt_sha256_update(&s, &nonce, sizeof nonce);
  odt_sha256_update(&s, c->uid, c->uid_size);
  odt_sha256_update(&s, &c->reset_count, sizeof c->reset_count);
  odt_sha256_update(&s, &entropy, sizeof entropy);
  odt_sha256_update(&s, &tick, sizeof tick);
  odt_sha256_final(&s, hash);
  memcpy(&app->link.boot_id, hash, sizeof app->link.boot_id);
  if (app->link.boot_id == 0) app->link.boot_id = 1;
}

void session_end(app_t* app) {
  app_link_t* l = &app->link;
  l->session = 0;
  l->session64 = 0;
  l->has_request = false;
  l->pending = 0;
  l->window_id = 0;
  app->out.active = false;
}

void session_hello(app_t* app, const frame_t* f) {
  app_link_t* l = &app->link;
  odt_device_v1_Hello h = odt_device_v1_Hello_init_zero;
  if (f->session == 0 || f->payload_size > FRAME_HELLO_MAX ||
      !coder_get(&odt_device_v1_Hello_coder, f->payload, f->payload_size, &h)) {
    l->link_err_reason = odt_device_v1_LinkErr_Reason_REASON_UNDECODABLE;
    l->link_err_limit = FRAME_HELLO_MAX;
    l->link_err_got = f->payload_size;
    l->pending |= APP_TX_LINK_ERR;
    return;
  }
  if (l->boot_id == 0) form_boot_id(app, h.nonce);
  l->hello_id = f->id;
  l->hello_refused = h.proto_min > 1 || h.proto_max < 1;
  const bool again = l->session == f->session && l->session64 == h.session64;
  if (l->hello_refused || !again) session_end(app);
  l->pending |= APP_TX_HELLO_ACK;
  l->hello_session = f->session;
  if (l->hello_refused) return;
  l->last_rx_ms = app_now(app);
  if (again) return;
  l->session = f->session;
  l->session64 = h.session64;
  l->mtu = min_u32(APP_MTU, h.mtu < FRAME_MTU_MIN ? FRAME_MTU_MIN : h.mtu);
  app->events.send = app->events.next; /* what is older is asked for */
}

static uint32_t caps(const app_t* app) {
  uint32_t bits = APP_CAP_IDENTIFY | APP_CAP_RESIDENT | APP_CAP_STREAMED | APP_CAP_EVALUATE |
                  APP_CAP_INFER | APP_CAP_BEST_ON_HOST | APP_CAP_TASKS | APP_CAP_FROZEN |
                  app->config->extra_caps;
  bits |= ODT_WITH_APT ? APP_CAP_PRECISION : APP_CAP_REDUCED;
  bits |= ODT_WITH_DFP16 ? APP_CAP_DFP16 : APP_CAP_REDUCED;
  bits |= ODT_WITH_GRAPHS ? APP_CAP_GRAPHS : APP_CAP_REDUCED;
  bits |= ODT_WITH_CONV ? 0u : APP_CAP_REDUCED | APP_CAP_NO_CONV;
  bits |= ODT_MAX_OPS < 64 || ODT_MAX_CLASSES < 128 ? APP_CAP_REDUCED : 0u;
  if (app->hal.reset != NULL) bits |= APP_CAP_RESET;
#if APP_CAPTURE
  bits |= APP_CAP_CAPTURE;
#endif
  if (nvm_usable(app)) bits |= APP_CAP_NVM | APP_CAP_BUSY;
  return bits;
}

static uint32_t weights_crc(const app_t* app) {
  uint8_t part[64];
  uint32_t crc = 0;
  const uint32_t size = odt_weights_size(&app->trainer);
  for (uint32_t at = 0; at < size; at += sizeof part) {
    const uint32_t n = min_u32(sizeof part, size - at);
    odt_weights_read(&app->trainer, false, at, part, n);
    crc = frame_crc32(crc, part, n);
  }
  return crc;
}

static void fill_content(app_t* app, odt_device_v1_HelloAck* a) {
  uint8_t hash[32];
  if (app->has_model) {
    a->model_hash.size = 16;
    memcpy(a->model_hash.bytes, app->model.hash, 16);
  }
  if (trainer_has_state(app)) {
    odt_state_hash(&app->trainer, hash);
    a->state_hash.size = 16;
    memcpy(a->state_hash.bytes, hash, 16);
    a->last_step = odt_trainer_step_count(&app->trainer);
  }
  if (app->trainer_kind != APP_TRAINER_NONE && app->trainer.weights_valid) {
    a->weights_crc = weights_crc(app);
  }
  if (app->job.state != odt_device_v1_JobState_JOB_STATE_UNSPECIFIED || nvm_restored(app)) {
    a->run_id.size = 16;
    memcpy(a->run_id.bytes, app->job.run_id, 16);
    a->attempt = app->job.attempt;
  }
  a->job = (odt_device_v1_JobState)job_reported_state(app);
  a->restored = nvm_restored(app);
}

static void copy_name(char* out, uint32_t capacity, const char* name) {
  text_t t;
  text_begin(&t, out, capacity);
  text_str(&t, name);
}

void session_encode_ack(app_t* app, coder_out_t* out) {
  const app_config_t* c = app->config;
  odt_device_v1_HelloAck a = odt_device_v1_HelloAck_init_zero;
  a.proto = app->link.hello_refused ? 0 : 1;
  a.uid.size = c->uid_size;
  memcpy(a.uid.bytes, c->uid, c->uid_size);
  copy_name(a.board, sizeof a.board, c->board);
  copy_name(a.fw_version, sizeof a.fw_version, APP_FW_VERSION);
  copy_name(a.core, sizeof a.core, c->core);
  if (c->build_id != NULL) {
    a.build_id.size = APP_BUILD_ID;
    memcpy(a.build_id.bytes, c->build_id, APP_BUILD_ID);
  }
  a.boot_id = app->link.boot_id;
  a.reset_reason = (odt_device_v1_ResetReason)c->reset_reason;
  a.uptime_ms = app_now(app);
  a.max_poll_ms = c->max_poll_ms;
  a.mtu = app->link.mtu;
  a.rx_window_bytes = c->rx_window;
  a.caps = caps(app);
  a.max_layers = ODT_MAX_LAYERS;
  a.max_batch = ODT_MAX_BATCH;
  a.rules_version = ODT_RULES_VERSION;
  a.ram_bytes = c->arena_size;
  a.first_event = events_first(app);
  a.next_event = app->events.next;
  if (!app->link.hello_refused) fill_content(app, &a);
  coder_put(out, &odt_device_v1_HelloAck_coder, &a);
}
