#include "internal.h"

void app_log(app_t* app, uint8_t level, const char* text) {
  app_logs_t* l = &app->logs;
  if (l->count == APP_LOGS) {
    l->dropped++;
    l->dropped_total++;
    return;
  }
  const uint32_t at = (l->first + l->count) % APP_LOGS;
  l->line[at].level = level;
  text_t t;
  text_begin(&t, l->line[at].text, APP_LOG_TEXT);
  text_str(&t, text);
  l->count++;
}

bool log_encode_next(app_t* app, coder_out_t* out, uint32_t* id) {
  app_logs_t* l = &app->logs;
  if (l->count == 0) return false;
  odt_device_v1_Log m = odt_device_v1_Log_init_zero;
  m.level = l->line[l->first].level;
  m.dropped = l->dropped;
  memcpy(m.text, l->line[l->first].text, APP_LOG_TEXT);
  l->first = (l->first + 1) % APP_LOGS;
  l->count--;
  l->dropped = 0;
  *id = l->sequence++;
  coder_put(out, &odt_device_v1_Log_coder, &m);
  return true;
}
