#include "internal.h"

void app_init(app_t* app, const app_config_t* config, const hal_t* hal) {
  memset(app, 0, sizeof *app);
  app->config = config;
  app->hal = *hal;
  app->link.mtu = FRAME_MTU_MIN;
  frame_decoder_init(&app->link.decoder, app->link.rx, sizeof app->link.rx, APP_MTU);
  app->events.next = 1;
  app->events.send = 1;
  nvm_boot(app);
}

void app_link_reset(app_t* app) {
  session_end(app);
  app->link.tx_at = 0;
  app->link.tx_size = 0;
  frame_decoder_init(&app->link.decoder, app->link.rx, sizeof app->link.rx, APP_MTU);
}

void app_busy(app_t* app, uint32_t ms) {
  if (app->link.session == 0) return;
  app->link.busy_ms = ms;
  app->link.pending |= APP_TX_BUSY;
}

void app_busy_over(app_t* app) {
  if (app->link.session == 0) return;
  app->link.pong_id = 0;
  app->link.pending |= APP_TX_PONG;
}

static void timers(app_t* app) {
  const uint32_t now = app_now(app);
  xfer_poll(app);
  if (app->identifying) {
    app->identifying = (int32_t)(app->identify_until_ms - now) > 0;
    if (app->hal.led != NULL) {
      app->hal.led(app->hal.ctx, app->identifying && (now / 125u) % 2u == 0);
    }
  }
  const bool sent = app->link.pending == 0 && app->link.tx_size == 0;
  if (app->reset_wanted && (sent || (int32_t)(now - app->reset_at_ms) >= 0)) {
    app->reset_wanted = false;
    app->hal.reset(app->hal.ctx);
  }
}

bool app_poll(app_t* app) {
  bool more = link_receive(app);
  timers(app);
#if APP_CAPTURE
  if (capture_poll(app)) more = true;
#endif
  if (nvm_work(app)) {
    more = true;
  } else if (eval_work(app)) {
    more = true;
  } else if (job_work(app)) {
    more = true;
  }
  link_send(app);
  if (app->hal.watchdog_feed != NULL) app->hal.watchdog_feed(app->hal.ctx);
  return more;
}
