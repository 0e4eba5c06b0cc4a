#include "internal.h"

void text_begin(text_t* t, char* out, uint32_t capacity) {
  t->out = out;
  t->capacity = capacity;
  t->size = 0;
  out[0] = 0;
}

void text_str(text_t* t, const char* s) {
  while (*s != 0 && t->size + 1 < t->capacity) t->out[t->size++] = *s++;
  t->out[t->size] = 0;
}

void text_i64(text_t* t, int64_t v) {
  char digits[24];
  uint32_t at = sizeof digits - 1;
  uint64_t u = v < 0 ? 0u - (uint64_t)v : (uint64_t)v;
  digits[at] = 0;
  do {
    digits[--at] = (char)('0' + (char)(u % 10u));
    u /= 10u;
  } while (u != 0);
  if (v < 0) digits[--at] = '-';
  text_str(t, digits + at);
}

static text_t begin(response_t* r, status_code_t code) {
  text_t t;
  r->which_result = 0;
  r->has_error = true;
  r->error.code = code;
  text_begin(&t, r->error.text, sizeof r->error.text);
  return t;
}

void refuse(response_t* r, status_code_t code, const char* what) {
  text_t t = begin(r, code);
  text_str(&t, what);
}

void refuse_limit(response_t* r, status_code_t code, const char* what, int64_t got,
                  const char* against, int64_t limit) {
  text_t t = begin(r, code);
  text_str(&t, what);
  text_str(&t, ": ");
  text_i64(&t, got);
  text_str(&t, against);
  text_i64(&t, limit);
  if (limit >= 0 && limit <= (int64_t)UINT32_MAX) r->error.limit = (uint32_t)limit;
}

void text_error(text_t* t, const odt_error_t* e) {
  text_str(t, e->what != NULL ? e->what : "unknown error");
  if (e->got != 0 || e->limit_lo != 0 || e->limit_hi != 0) {
    text_str(t, ": ");
    text_i64(t, e->got);
    text_str(t, ", allowed ");
    text_i64(t, e->limit_lo);
    if (e->limit_hi != e->limit_lo) {
      text_str(t, "..");
      text_i64(t, e->limit_hi);
    }
  }
}

void refuse_odt(response_t* r, const odt_error_t* e) {
  text_t t = begin(r, e->status == ODT_OK ? odt_device_v1_StatusCode_STATUS_CODE_INTERNAL
                                          : (status_code_t)e->status);
  text_error(&t, e);
  if (e->limit_hi > 0) r->error.limit = (uint32_t)e->limit_hi;
}

bool fail(odt_error_t* err, odt_status_t status, const char* what) {
  *err = (odt_error_t){.status = status, .what = what, .index = -1};
  return false;
}
