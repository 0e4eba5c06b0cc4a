#include "internal.h"

static void link_error(app_t* app, odt_device_v1_LinkErr_Reason reason, uint32_t limit,
                       uint32_t got) {
  app->link.link_err_reason = reason;
  app->link.link_err_limit = limit;
  app->link.link_err_got = got;
  app->link.pending |= APP_TX_LINK_ERR;
}

static void need_hello(app_t* app) {
  app_link_t* l = &app->link;
  const uint32_t now = app_now(app);
  if (l->need_hello_sent && now - l->need_hello_ms < 200u) return;
  l->need_hello_sent = true;
  l->need_hello_ms = now;
  l->pending |= APP_TX_NEED_HELLO;
}

static void handle(app_t* app, const frame_t* f) {
  app_link_t* l = &app->link;
  if ((f->type & FRAME_TO_HOST) != 0) return; /* our own echo */
  if (f->type == FRAME_HELLO) {
    session_hello(app, f);
    return;
  }
  if (l->session == 0 || f->session != l->session) {
    need_hello(app);
    return;
  }
  l->last_rx_ms = app_now(app);
  switch (f->type) {
    case FRAME_REQ:
      dispatch_request(app, f);
      break;
    case FRAME_CHUNK_TO_BOARD:
      xfer_chunk(app, f);
      break;
    case FRAME_WINDOW_TO_BOARD:
      xfer_window(app, f);
      break;
    case FRAME_PING:
      l->pong_id = f->id;
      l->pending |= APP_TX_PONG;
      break;
    case FRAME_BYE:
      session_end(app);
      break;
    default:
      link_error(app, odt_device_v1_LinkErr_Reason_REASON_UNKNOWN_TYPE, 0, f->type);
      break;
  }
}

bool link_receive(app_t* app) {
  uint8_t chunk[64];
  bool any = false;
  /* Bounded, so that a flood cannot keep training from its turn. */
  for (uint32_t i = 0; i < 32; i++) {
    const uint32_t got = app->hal.uart_read(app->hal.ctx, chunk, sizeof chunk);
    if (got == 0) break;
    any = true;
    const uint8_t* data = chunk;
    size_t n = got;
    frame_t f;
    frame_event_t event;
    while ((event = frame_decoder_feed(&app->link.decoder, &data, &n, &f)) != FRAME_NONE) {
      if (event == FRAME_OK) {
        handle(app, &f);
      } else if (event == FRAME_OVERSIZE && app->link.session != 0) {
        link_error(app, odt_device_v1_LinkErr_Reason_REASON_OVERSIZE, app->link.decoder.max_payload,
                   f.payload_size);
      }
    }
    link_send(app);
  }
  return any;
}
