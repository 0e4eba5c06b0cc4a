#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "link/byte_link.h"
#include "support/virtual/virtual_board.h"
#include "support/virtual/virtual_time.h"

namespace odt::test {

// Boards, the cables to them and what happens to both, in one VirtualTime. A board's endpoint is
// "tcp:virtual:N"; open() goes into LinkOptions::open.
class VirtualWorld {
 public:
  explicit VirtualWorld(VirtualTime& time);
  ~VirtualWorld();

  // tcp: the board sees a connection come (its session ends), and a lost cable ends the host's
  // end. Otherwise the cable is a serial line with a converter of its own at the host.
  VirtualBoard& add(BoardSetup setup, bool tcp);
  VirtualBoard& board(std::size_t number) { return *places_[number]->board; }
  std::size_t boards() const { return places_.size(); }
  std::string address(std::size_t number) const { return "virtual:" + std::to_string(number + 1); }

  // For the io_context of the daemon that lives now; nullptr: none.
  void attach(asio::io_context* io);
  Result<std::shared_ptr<link::ByteLink>> open(const std::string& endpoint);

  void after(std::int64_t us, std::function<void()> action);
  void cut(std::size_t number, std::int64_t for_us);  // the cable: bytes under way are lost
  void power_cycle(std::size_t number, std::int64_t off_us);

 private:
  class Link;
  struct Place {
    std::unique_ptr<VirtualBoard> board;
    std::weak_ptr<Link> link;
    bool tcp = false, cut = false;
  };
  void hang_up(std::size_t number);  // the host's end is closed
  void pass(std::int64_t until);
  bool act(std::int64_t now);
  bool deliver(std::int64_t now);
  std::int64_t next_event() const;

  VirtualTime& time_;
  asio::io_context* io_ = nullptr;
  std::vector<std::unique_ptr<Place>> places_;
  std::multimap<std::int64_t, std::function<void()>> actions_;
};

}  // namespace odt::test
