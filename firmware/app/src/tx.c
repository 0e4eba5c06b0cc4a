#include "internal.h"

/* Frames are made when the transmitter is free, not before: the order of the picks below is the
 * priority, and nothing that is dropped has ever been started. */

typedef struct {
  uint8_t type;
  uint16_t session;
  uint32_t id;
} tx_head_t;

static bool take(app_t* app, uint32_t bit) {
  if ((app->link.pending & bit) == 0) return false;
  app->link.pending &= ~bit;
  return true;
}

static void make_need_hello(app_t* app, coder_out_t* out, tx_head_t* h) {
  odt_device_v1_NeedHello m = odt_device_v1_NeedHello_init_zero;
  m.boot_id = app->link.boot_id;
  m.reset_reason = (odt_device_v1_ResetReason)app->config->reset_reason;
  h->type = FRAME_NEED_HELLO;
  h->session = 0;
  coder_put(out, &odt_device_v1_NeedHello_coder, &m);
}

static void make_link_err(app_t* app, coder_out_t* out, tx_head_t* h) {
  odt_device_v1_LinkErr m = odt_device_v1_LinkErr_init_zero;
  m.reason = (odt_device_v1_LinkErr_Reason)app->link.link_err_reason;
  m.limit = app->link.link_err_limit;
  m.got = app->link.link_err_got;
  h->type = FRAME_LINK_ERR;
  h->session = 0;
  coder_put(out, &odt_device_v1_LinkErr_coder, &m);
}

static void make_window(app_t* app, coder_out_t* out, tx_head_t* h) {
  odt_device_v1_Window m = odt_device_v1_Window_init_zero;
  m.offset = app->link.window_offset;
  m.end = app->link.window_end;
  m.retransmit = app->link.window_retransmit;
  m.status = (status_code_t)app->link.window_status;
  h->type = FRAME_WINDOW_TO_HOST;
  h->id = app->link.window_id;
  coder_put(out, &odt_device_v1_Window_coder, &m);
}

static void make_pong(app_t* app, coder_out_t* out, tx_head_t* h) {
  const frame_counters_t* c = &app->link.decoder.counters;
  odt_device_v1_Pong m = odt_device_v1_Pong_init_zero;
  m.uptime_ms = app_now(app);
  m.job = (odt_device_v1_JobState)job_reported_state(app);
  if (trainer_has_state(app)) m.step = odt_trainer_step_count(&app->trainer);
  m.rx_errors = c->crc_errors + c->short_errors + c->version_errors + c->oversize;
  m.events_dropped = app->events.dropped;
  m.logs_dropped = app->logs.dropped_total;
  m.next_event = app->events.next;
  h->type = FRAME_PONG;
  h->id = app->link.pong_id;
  coder_put(out, &odt_device_v1_Pong_coder, &m);
}

static void make_busy(app_t* app, coder_out_t* out, tx_head_t* h) {
  odt_device_v1_Busy m = {.until_ms = app->link.busy_ms};
  h->type = FRAME_BUSY;
  h->id = 0;
  coder_put(out, &odt_device_v1_Busy_coder, &m);
}

static void make_hello_ack(app_t* app, coder_out_t* out, tx_head_t* h) {
  h->type = FRAME_HELLO_ACK;
  h->id = app->link.hello_id;
  h->session = app->link.hello_session;
  session_encode_ack(app, out);
}

static bool make_control(app_t* app, coder_out_t* out, tx_head_t* h) {
  app_link_t* l = &app->link;
  if (take(app, APP_TX_HELLO_ACK)) {
    make_hello_ack(app, out, h);
  } else if (take(app, APP_TX_EPOCH_AGAIN)) {
    h->type = FRAME_EVENT;
    if (!epochs_encode(app, app->epoch_again, out, &h->id)) return false;
  } else if (take(app, APP_TX_RSP)) {
    h->type = FRAME_RSP;
    h->id = l->request_id;
    coder_put_bytes(out, l->rsp, l->rsp_size);
  } else if (take(app, APP_TX_NEED_HELLO)) {
    make_need_hello(app, out, h);
  } else if (take(app, APP_TX_LINK_ERR)) {
    make_link_err(app, out, h);
  } else if (take(app, APP_TX_WINDOW)) {
    make_window(app, out, h);
  } else if (take(app, APP_TX_PONG)) {
    make_pong(app, out, h);
  } else if (take(app, APP_TX_BUSY)) {
    make_busy(app, out, h);
  }
  return out->used <= out->limit;
}

static bool make_next(app_t* app, coder_out_t* out, tx_head_t* h) {
  app_link_t* l = &app->link;
  h->session = l->session;
  while (l->pending != 0) {
    if (make_control(app, out, h)) return true;
    out->used = 0; /* one that could not be made is left out */
  }
  if (!app_live(app)) return false;
  if (xfer_out_due(app)) {
    h->type = FRAME_CHUNK_TO_HOST;
    h->id = app->out.id;
    out->used = xfer_encode_chunk(app, l->tx + FRAME_IN_PLACE_OFFSET);
    return true;
  }
  if (events_encode_next(app, out, &h->id)) {
    h->type = FRAME_EVENT;
    return true;
  }
  if (log_encode_next(app, out, &h->id)) {
    h->type = FRAME_LOG;
    return true;
  }
  return false;
}

void link_send(app_t* app) {
  app_link_t* l = &app->link;
  for (;;) {
    while (l->tx_at < l->tx_size) {
      const uint32_t n = app->hal.uart_write(app->hal.ctx, l->tx + l->tx_at, l->tx_size - l->tx_at);
      if (n == 0) return; /* a started frame is always finished, later */
      l->tx_at += n;
      l->tx_progress_ms = app_now(app);
    }
    l->tx_at = 0;
    l->tx_size = 0;
    tx_head_t h = {0};
    uint8_t* payload = l->tx + FRAME_IN_PLACE_OFFSET;
    /* HELLO_ACK and answers have their own limits, below which no MTU is meant to be. */
    const uint32_t limit = l->mtu > APP_RSP_MAX ? l->mtu : APP_RSP_MAX;
    coder_out_t out = {.bytes = payload, .limit = limit};
    if (!make_next(app, &out, &h)) return;
    if (out.used > out.limit) continue; /* cannot be sent at this MTU */
    const frame_t f = {.type = h.type,
                       .session = h.session,
                       .id = h.id,
                       .payload = payload,
                       .payload_size = out.used};
    l->tx_size = (uint32_t)frame_encode(&f, l->tx, sizeof l->tx);
  }
}
