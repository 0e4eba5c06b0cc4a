#include "session/rto.h"

#include <algorithm>

namespace odt::session {

Rto::Rto(us start, us min, us max) : min_(min), max_(max), value_(start) { bound(); }

void Rto::sample(us rtt) {
  if (srtt_.count() == 0) {
    srtt_ = rtt;
    rttvar_ = rtt / 2;
  } else {
    const us error = rtt > srtt_ ? rtt - srtt_ : srtt_ - rtt;
    rttvar_ = (rttvar_ * 3 + error) / 4;
    srtt_ = (srtt_ * 7 + rtt) / 8;
  }
  value_ = srtt_ + rttvar_ * 4;
  bound();
}

void Rto::backoff() {
  value_ *= 2;
  bound();
}

void Rto::set_min(us min) {
  min_ = std::min(min, max_);
  bound();
}

void Rto::bound() { value_ = std::clamp(value_, min_, max_); }

}  // namespace odt::session
