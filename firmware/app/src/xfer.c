#include "internal.h"

static uint32_t chunk_size(const app_t* app) {
  const uint32_t room = app->link.mtu - 64u;
  return room < APP_CHUNK ? room : APP_CHUNK;
}

bool xfer_freezes(const app_t* app) {
  const uint8_t what = app->out.resource;
  return app->out.active && (what == odt_device_v1_Resource_RESOURCE_WEIGHTS ||
                             what == odt_device_v1_Resource_RESOURCE_BEST_WEIGHTS ||
                             what == odt_device_v1_Resource_RESOURCE_STATE);
}

/* ---- out ---- */

static bool is_best(const app_xfer_t* x) {
  return x->resource == odt_device_v1_Resource_RESOURCE_BEST_WEIGHTS;
}

#if APP_CAPTURE
/* What capture gives to read: a window (batch_id is its id), a resident set. NULL: neither is here.
 */
static const uint8_t* captured(app_t* app, uint32_t* bytes) {
  const app_xfer_t* x = &app->out;
  if (x->resource == odt_device_v1_Resource_RESOURCE_WINDOW) {
    return capture_window(app, x->batch_id, bytes);
  }
  const app_region_id_t id = (app_region_id_t)(APP_REGION_IMAGE + x->index);
  if (id < APP_REGION_TRAIN || id > APP_REGION_TEST || !app->region[id].valid) return NULL;
  *bytes = app->region[id].size;
  return region_data(app, id);
}
#endif

static void read_out(app_t* app, uint32_t offset, uint8_t* out, uint32_t n) {
  const app_xfer_t* x = &app->out;
#if APP_CAPTURE
  if (x->resource == odt_device_v1_Resource_RESOURCE_WINDOW ||
      x->resource == odt_device_v1_Resource_RESOURCE_SAMPLES) {
    uint32_t bytes = 0;
    const uint8_t* p = captured(app, &bytes);
    /* Gone meanwhile: zeros, which COMMIT's CRC-32 shows. */
    memset(out, 0, n);
    if (p != NULL && offset + n <= bytes) memcpy(out, p + offset, n);
    return;
  }
#endif
  if (x->resource == odt_device_v1_Resource_RESOURCE_STATE) {
    odt_state_read(&app->trainer, offset, out, n);
  } else if (x->resource == odt_device_v1_Resource_RESOURCE_EVAL_RESULT) {
    memcpy(out, region_data(app, APP_REGION_EVAL) + offset, n);
  } else {
    odt_weights_read(&app->trainer, is_best(x), offset, out, n);
  }
}

static bool out_size(app_t* app, odt_error_t* err) {
  app_xfer_t* x = &app->out;
  switch (x->resource) {
    case odt_device_v1_Resource_RESOURCE_STATE:
      err->what = "no training state here";
      if (!trainer_has_state(app)) return false;
      x->size = odt_state_size(&app->trainer);
      return true;
    case odt_device_v1_Resource_RESOURCE_BEST_WEIGHTS:
      err->what = "no best weights here: the guard has none yet";
      if (!trainer_has_state(app) || !app->trainer_spec.guard ||
          app->trainer.best_correct == UINT32_MAX || app->trainer.best_missing) {
        return false;
      }
      err->what = "the host keeps the best weights";
      if (app->trainer_spec.best_on_host &&
          odt_trainer_best_waits(&app->trainer) != ODT_BEST_UNREAD) {
        return false;
      }
      x->size = odt_best_size(&app->trainer);
      return true;
    case odt_device_v1_Resource_RESOURCE_WEIGHTS:
      if (!trainer_ensure(app, err)) return false;
      x->size = odt_weights_size(&app->trainer);
      return true;
    case odt_device_v1_Resource_RESOURCE_EVAL_RESULT:
      err->what = "no evaluation result here";
      x->size = app->region[APP_REGION_EVAL].size;
      return app->eval.done && app->region[APP_REGION_EVAL].valid;
#if APP_CAPTURE
    case odt_device_v1_Resource_RESOURCE_WINDOW:
    case odt_device_v1_Resource_RESOURCE_SAMPLES:
      err->what = "no such window or samples here";
      return captured(app, &x->size) != NULL;
#endif
    default:
      err->status = ODT_INVALID_ARGUMENT;
      err->what = "resource cannot be read";
      return false;
  }
}

static void open_out(app_t* app, const odt_device_v1_XferOpen* o, response_t* r) {
  app_xfer_t* x = &app->out;
  odt_error_t err = {.status = ODT_FAILED_PRECONDITION, .index = -1};
  memset(x, 0, sizeof *x);
  x->resource = (uint8_t)o->resource;
  x->index = (uint8_t)min_u32(o->index, UINT8_MAX);
  x->batch_id = o->index;
  if (!out_size(app, &err)) {
    refuse_odt(r, &err);
    return;
  }
  uint8_t part[64];
  for (uint32_t at = 0; at < x->size; at += sizeof part) {
    const uint32_t n = min_u32(sizeof part, x->size - at);
    read_out(app, at, part, n);
    x->crc = frame_crc32(x->crc, part, n);
  }
  x->id = o->xfer_id;
  x->version = app->trainer_kind != APP_TRAINER_NONE ? odt_trainer_step_count(&app->trainer) : 0;
  x->progress_ms = app_now(app);
  x->active = true;
  r->which_result = odt_device_v1_Response_xfer_opened_tag;
  r->result.xfer_opened.window = app->config->rx_window;
  r->result.xfer_opened.chunk = chunk_size(app);
  r->result.xfer_opened.size = x->size;
  r->result.xfer_opened.crc32 = x->crc;
  r->result.xfer_opened.version = x->version;
}

bool xfer_out_due(const app_t* app) { return app->out.active && app->out.at < app->out.end; }

static uint32_t put_varint(uint8_t* p, uint32_t v) {
  uint32_t n = 0;
  while (v >= 0x80u) {
    p[n++] = (uint8_t)(v | 0x80u);
    v >>= 7;
  }
  p[n++] = (uint8_t)v;
  return n;
}

/* Chunk {offset = 1, data = 2}, by hand: the data goes straight to its place. */
uint32_t xfer_encode_chunk(app_t* app, uint8_t* out) {
  app_xfer_t* x = &app->out;
  const uint32_t n = min_u32(chunk_size(app), x->end - x->at);
  uint32_t at = 0;
  out[at++] = 0x08;
  at += put_varint(out + at, x->at);
  out[at++] = 0x12;
  at += put_varint(out + at, n);
  read_out(app, x->at, out + at, n);
  x->at += n;
  return at + n;
}

void xfer_window(app_t* app, const frame_t* f) {
  app_xfer_t* x = &app->out;
  odt_device_v1_Window w = odt_device_v1_Window_init_zero;
  if (!x->active || f->id != x->id) return;
  if (!coder_get(&odt_device_v1_Window_coder, f->payload, f->payload_size, &w)) return;
  if (w.status != odt_device_v1_StatusCode_STATUS_CODE_UNSPECIFIED) {
    x->active = false;
    return;
  }
  if (w.offset > x->size) return;
  if (w.retransmit || w.offset > x->at) x->at = w.offset;
  x->end = min_u32(w.end, x->size);
  x->progress_ms = app_now(app);
}

/* ---- in ---- */

static void answer_window(app_t* app, bool retransmit) {
  app_link_t* l = &app->link;
  const app_xfer_t* x = &app->in;
  l->window_id = x->id;
  l->window_offset = x->at;
  l->window_end = min_u32(x->size, x->at + app->config->rx_window);
  l->window_retransmit = retransmit;
  l->window_status = (uint8_t)x->error.status;
  l->pending |= APP_TX_WINDOW;
}

/* The bytes held are the first part of what is offered now, and the host knows it. */
static bool can_resume(app_t* app, const odt_device_v1_XferOpen* o) {
  const app_xfer_t* x = &app->in;
  if (!x->active || x->error.status != ODT_OK || o->resume_offset == 0) return false;
  if (x->resource != o->resource || x->index != o->index || x->size != o->size ||
      x->crc_want != o->crc32 || o->resume_offset > x->at) {
    return false;
  }
  if (o->resume_offset == x->at) return x->crc == o->prefix_crc;
  app_region_id_t id = APP_REGION_IMAGE;
  if (x->resource == odt_device_v1_Resource_RESOURCE_SAMPLES) {
    id = (app_region_id_t)(APP_REGION_IMAGE + x->index);
  } else if (x->resource != odt_device_v1_Resource_RESOURCE_MODEL_IMAGE) {
    return false; /* small, or already taken in by the trainer */
  }
  return frame_crc32(0, region_data(app, id), o->resume_offset) == o->prefix_crc;
}

static void open_in(app_t* app, const odt_device_v1_XferOpen* o, response_t* r) {
  app_xfer_t* x = &app->in;
  odt_error_t err = {.status = ODT_OK, .index = -1};
  if (can_resume(app, o)) {
    x->at = o->resume_offset;
    x->crc = o->prefix_crc;
  } else {
    xfer_in_abort(app);
    if (!xfer_in_begin(app, o, &err)) {
      refuse_odt(r, &err);
      return;
    }
    const uint32_t last = x->last_committed;
    memset(x, 0, sizeof *x);
    x->last_committed = last;
    x->resource = (uint8_t)o->resource;
    x->index = (uint8_t)o->index;
    x->size = o->size;
    x->crc_want = o->crc32;
    x->active = true;
  }
  x->batch_id = o->batch_id; /* a transfer that is taken up again may have another */
  x->id = o->xfer_id;
  x->gap = false;
  x->progress_ms = app_now(app);
  r->which_result = odt_device_v1_Response_xfer_opened_tag;
  r->result.xfer_opened.offset = x->at;
  r->result.xfer_opened.prefix_crc = x->crc;
  r->result.xfer_opened.window = app->config->rx_window;
  r->result.xfer_opened.chunk = chunk_size(app);
}

/* Chunk {offset = 1, data = 2}; data points into the payload. */
static bool parse_chunk(const frame_t* f, uint32_t* offset, const uint8_t** data, uint32_t* n) {
  uint32_t at = 0;
  *offset = 0;
  *n = 0;
  while (at < f->payload_size) {
    const uint8_t tag = f->payload[at++];
    uint32_t v = 0;
    uint32_t shift = 0;
    for (;; shift += 7) {
      if (at >= f->payload_size || shift > 28) return false;
      const uint8_t b = f->payload[at++];
      v |= (uint32_t)(b & 0x7Fu) << shift;
      if ((b & 0x80u) == 0) break;
    }
    if (tag == 0x08) {
      *offset = v;
    } else if (tag == 0x12) {
      if (v > f->payload_size - at) return false;
      *data = f->payload + at;
      *n = v;
      at += v;
    } else {
      return false;
    }
  }
  return true;
}

void xfer_chunk(app_t* app, const frame_t* f) {
  app_xfer_t* x = &app->in;
  uint32_t offset = 0;
  uint32_t n = 0;
  const uint8_t* data = NULL;
  if (!x->active || f->id != x->id || !parse_chunk(f, &offset, &data, &n)) return;
  if (x->error.status != ODT_OK) {
    answer_window(app, false);
    return;
  }
  if (offset > x->at) {
    if (!x->gap) answer_window(app, true);
    x->gap = true;
    return;
  }
  const uint32_t known = x->at - offset;
  if (known > 0 && known >= n) { /* a copy: the answer to it was lost */
    answer_window(app, false);
    return;
  }
  data += known;
  n -= known;
  if (n > x->size - x->at) {
    x->error = (odt_error_t){.status = ODT_OUT_OF_RANGE,
                             .what = "chunk: ends behind the size opened",
                             .got = (int32_t)min_u32(x->at + n, INT32_MAX),
                             .limit_hi = (int32_t)min_u32(x->size, INT32_MAX),
                             .index = -1};
  } else {
    xfer_in_data(app, data, n);
    x->crc = frame_crc32(x->crc, data, n);
    x->at += n;
  }
  x->gap = false;
  x->progress_ms = app_now(app);
  answer_window(app, false);
}

/* ---- requests ---- */

static bool hash_held_is(app_t* app, const uint8_t want[32]) {
  static const uint8_t kAny[32] = {0};
  if (memcmp(want, kAny, 32) == 0) return true;
  uint8_t held[32] = {0};
  if (trainer_has_state(app)) odt_state_hash(&app->trainer, held);
  return memcmp(want, held, 32) == 0;
}

/* What a commit to non-volatile memory reads. */
static bool replaces_weights(const odt_device_v1_XferOpen* o) {
  return o->resource == odt_device_v1_Resource_RESOURCE_MODEL_IMAGE ||
         o->resource == odt_device_v1_Resource_RESOURCE_WEIGHTS ||
         o->resource == odt_device_v1_Resource_RESOURCE_BEST_WEIGHTS ||
         o->resource == odt_device_v1_Resource_RESOURCE_STATE;
}

void xfer_open(app_t* app, const request_t* q, response_t* r) {
  const odt_device_v1_XferOpen* o = &q->op.xfer_open;
  if (o->xfer_id == 0) {
    refuse(r, odt_device_v1_StatusCode_STATUS_CODE_INVALID_ARGUMENT, "xfer_id must not be 0");
  } else if (o->expect_hash.size == 32 && !hash_held_is(app, o->expect_hash.bytes)) {
    refuse(r, odt_device_v1_StatusCode_STATUS_CODE_FAILED_PRECONDITION,
           "expect_hash: the board holds another training state");
  } else if (o->direction == odt_device_v1_Direction_DIRECTION_TO_HOST) {
    open_out(app, o, r);
  } else if (o->direction == odt_device_v1_Direction_DIRECTION_TO_BOARD) {
    if (replaces_weights(o) && nvm_wait(app, r)) return;
    open_in(app, o, r);
  } else {
    refuse(r, odt_device_v1_StatusCode_STATUS_CODE_INVALID_ARGUMENT,
           "direction: must be TO_BOARD or TO_HOST");
  }
}

static void commit_in(app_t* app, uint32_t crc, response_t* r) {
  app_xfer_t* x = &app->in;
  odt_error_t err = {.status = ODT_OK, .index = -1};
  if (x->error.status != ODT_OK) {
    refuse_odt(r, &x->error);
  } else if (x->at != x->size) {
    refuse_limit(r, odt_device_v1_StatusCode_STATUS_CODE_FAILED_PRECONDITION,
                 "transfer is not complete", x->at, " bytes of ", x->size);
    return; /* may go on */
  } else if (x->crc != x->crc_want || x->crc != crc) {
    refuse(r, odt_device_v1_StatusCode_STATUS_CODE_DATA_LOSS,
           "CRC-32 of the content differs from the one announced: send it again");
  } else {
    xfer_in_end(app, &err);
    if (err.status == ODT_OK) {
      x->last_committed = x->id;
    } else {
      refuse_odt(r, &err);
    }
  }
  x->active = false;
}

void xfer_commit(app_t* app, const request_t* q, response_t* r) {
  const uint32_t id = q->op.xfer_commit.xfer_id;
  if (app->in.active && app->in.id == id) {
    commit_in(app, q->op.xfer_commit.crc32, r);
  } else if (app->out.active && app->out.id == id) {
    app->out.active = false;
    if (q->op.xfer_commit.crc32 != app->out.crc) {
      refuse(r, odt_device_v1_StatusCode_STATUS_CODE_DATA_LOSS,
             "CRC-32 of the content differs from the one sent: read it again");
    }
  } else if (id == 0 || app->in.last_committed != id) {
    refuse_limit(r, odt_device_v1_StatusCode_STATUS_CODE_NOT_FOUND, "no such transfer is open", id,
                 ", last committed ", app->in.last_committed);
  }
}

void xfer_abort(app_t* app, const request_t* q, response_t* r) {
  (void)r;
  const uint32_t id = q->op.xfer_abort.xfer_id;
  if (app->in.active && app->in.id == id) xfer_in_abort(app);
  if (app->out.active && app->out.id == id) app->out.active = false;
}

void xfer_poll(app_t* app) {
  if (app->out.active && app_now(app) - app->out.progress_ms > APP_XFER_STALL_MS) {
    app->out.active = false;
    app_log(app, 3, "a transfer to the host made no progress for 5 s and was given up");
  }
}
