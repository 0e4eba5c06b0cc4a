#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace odt::session {

// Puts the events of one boot in order: each id is delivered once, what is missing is asked for,
// and what is gone becomes one gap. Pure.
class EventOrder {
 public:
  static constexpr std::size_t kMaxHeld = 64;

  struct Item {
    std::uint32_t id = 0;
    std::uint32_t gap = 0;  // not 0: this many events from id on are gone
    std::string payload;
  };

  // The first id wanted.
  void start(std::uint32_t expected);
  std::uint32_t expected() const { return expected_; }

  // The event that is wanted came and no later one waits for it: it may be delivered at once.
  bool next(std::uint32_t id);
  // An event came. Returns what may be delivered now, in order.
  std::vector<Item> offer(std::uint32_t id, std::string payload);
  // The board says which id comes next.
  void announce(std::uint32_t next);
  // The board holds [first, next) and sends it again: what is before first is gone.
  std::vector<Item> range(std::uint32_t first, std::uint32_t next);
  // The missing events will not come: a gap up to the first one held or announced.
  std::vector<Item> give_up();

  bool missing() const { return !held_.empty() || announced_ > expected_; }
  bool holds_later() const { return !held_.empty(); }
  bool holds(std::uint32_t id) const { return held_.count(id) != 0; }

 private:
  void skip_to(std::uint32_t id, std::vector<Item>& out);
  void drain(std::vector<Item>& out);

  std::uint32_t expected_ = 0;
  std::uint32_t announced_ = 0;
  std::map<std::uint32_t, std::string> held_;
};

}  // namespace odt::session
