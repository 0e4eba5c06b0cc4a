#pragma once

#include <chrono>

namespace odt::session {

// Retransmission time-out by RFC 6298 with the link's bounds.
class Rto {
 public:
  using us = std::chrono::microseconds;
  Rto(us start, us min, us max);

  // A round trip of a request that was sent once (Karn: never of a repeated one).
  void sample(us rtt);
  // One try ran out: doubles until the next sample.
  void backoff();
  void set_min(us min);  // the board's longest poll

  us value() const { return value_; }
  us smoothed() const { return srtt_; }  // 0: no sample yet

 private:
  void bound();
  us min_, max_, value_;
  us srtt_{0}, rttvar_{0};
};

}  // namespace odt::session
