#include "session/log_limiter.h"

#include <algorithm>
#include <utility>

namespace odt::session {

bool LogLimiter::allow(Time now) {
  const double seconds = std::chrono::duration<double>(now - last_).count();
  last_ = now;
  tokens_ = std::min(burst_, tokens_ + seconds * per_second_);
  if (tokens_ < 1.0) {
    ++suppressed_;
    return false;
  }
  tokens_ -= 1.0;
  return true;
}

std::uint32_t LogLimiter::take_suppressed() { return std::exchange(suppressed_, 0); }

}  // namespace odt::session
