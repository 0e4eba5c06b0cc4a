#include "session/event_order.h"

#include <algorithm>

namespace odt::session {

void EventOrder::start(std::uint32_t expected) {
  expected_ = expected;
  announced_ = expected;
  held_.clear();
}

bool EventOrder::next(std::uint32_t id) {
  if (id != expected_ || !held_.empty()) return false;
  announced_ = std::max(announced_, ++expected_);
  return true;
}

std::vector<EventOrder::Item> EventOrder::offer(std::uint32_t id, std::string payload) {
  std::vector<Item> out;
  if (id < expected_) return out;
  announced_ = std::max(announced_, id + 1);
  if (id == expected_) {
    ++expected_;
    out.push_back({id, 0, std::move(payload)});
    drain(out);
  } else if (held_.size() < kMaxHeld) {
    held_.emplace(id, std::move(payload));
  }
  return out;
}

void EventOrder::announce(std::uint32_t next) { announced_ = std::max(announced_, next); }

std::vector<EventOrder::Item> EventOrder::range(std::uint32_t first, std::uint32_t next) {
  std::vector<Item> out;
  announced_ = std::max(announced_, next);
  // Held events before `first` came in time although the board has dropped them since.
  while (!held_.empty() && held_.begin()->first < first) {
    skip_to(held_.begin()->first, out);
    drain(out);
  }
  if (first > expected_) {
    skip_to(first, out);
    drain(out);
  }
  return out;
}

std::vector<EventOrder::Item> EventOrder::give_up() {
  std::vector<Item> out;
  const std::uint32_t to = held_.empty() ? announced_ : held_.begin()->first;
  if (to > expected_) skip_to(to, out);
  drain(out);
  return out;
}

void EventOrder::skip_to(std::uint32_t id, std::vector<Item>& out) {
  if (id > expected_) out.push_back({expected_, id - expected_, {}});
  expected_ = std::max(expected_, id);
}

void EventOrder::drain(std::vector<Item>& out) {
  while (!held_.empty() && held_.begin()->first <= expected_) {
    auto node = held_.extract(held_.begin());
    if (node.key() < expected_) continue;
    ++expected_;
    out.push_back({node.key(), 0, std::move(node.mapped())});
  }
}

}  // namespace odt::session
