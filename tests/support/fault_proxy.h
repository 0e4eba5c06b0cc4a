#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>

#include "base/asio.h"

namespace odt::test {

// Per mille of the pieces that pass (a frame with its delimiters is one piece).
struct Faults {
  int drop = 0, corrupt = 0, duplicate = 0, split = 0, delay = 0;
  std::chrono::milliseconds delay_time{20};
};

// A TCP proxy between odtd and a board that damages what passes, the same way for the same seed.
// Listens on 127.0.0.1:port() and dials `target` for each connection.
class FaultProxy {
 public:
  FaultProxy(asio::io_context& io, std::uint16_t target, Faults to_board, Faults to_host,
             std::uint32_t seed);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  std::uint16_t port() const;
  std::uint64_t injected() const;  // faults so far
  void set_faults(Faults to_board, Faults to_host);
  void cut();  // closes every connection

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace odt::test
