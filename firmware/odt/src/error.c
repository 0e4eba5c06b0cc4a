#include "internal.h"

static int32_t clamp32(int64_t v) {
  return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}

odt_status_t odt_fail(odt_error_t* err, odt_status_t status, const char* what, int32_t index,
                      int64_t got, int64_t lo, int64_t hi) {
  if (err) {
    err->status = status;
    err->what = what;
    err->index = index;
    err->got = clamp32(got);
    err->limit_lo = clamp32(lo);
    err->limit_hi = clamp32(hi);
  }
  return status;
}
