#include "internal.h"

odt_status_t odt_fail32(odt_error_t* err, odt_status_t status, const char* what, int32_t index,
                        int32_t got, int32_t lo, int32_t hi) {
  if (err) {
    err->status = status;
    err->what = what;
    err->index = index;
    err->got = got;
    err->limit_lo = lo;
    err->limit_hi = hi;
  }
  return status;
}
