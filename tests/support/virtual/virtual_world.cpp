#include "support/virtual/virtual_world.h"

#include <algorithm>
#include <array>

namespace odt::test {
namespace {

constexpr std::size_t kDriverBuffer = 4096;  // bytes that the host's driver takes at once

}  // namespace

// The host's end of a cable.
class VirtualWorld::Link final : public link::ByteLink {
 public:
  Link(asio::io_context& io, VirtualTime& time, VirtualBoard& board, std::string name)
      : time_(time), board_(board), readable_(io), writable_(io), name_(std::move(name)) {}

  asio::awaitable<Result<std::size_t>> read(asio::mutable_buffer buffer) override {
    while (inbox_.empty() && !closed_) {
      readable_.expires_at(std::chrono::steady_clock::time_point::max());
      boost::system::error_code ignored;
      co_await readable_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    if (inbox_.empty()) co_return absl::UnavailableError(name_ + ": closed");
    const std::size_t n = std::min(buffer.size(), inbox_.size());
    std::copy_n(inbox_.begin(), n, static_cast<char*>(buffer.data()));
    inbox_.erase(0, n);
    co_return n;
  }

  asio::awaitable<Status> write(asio::const_buffer buffer) override {
    if (closed_) co_return absl::UnavailableError(name_ + ": closed");
    board_.to_board.put(buffer.data(), buffer.size(), time_.elapsed_us());
    const std::int64_t room = board_.to_board.room_at(kDriverBuffer);
    if (room > time_.elapsed_us()) {
      writable_.expires_at(time_.at(room));
      boost::system::error_code ignored;
      co_await writable_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    if (closed_) co_return absl::UnavailableError(name_ + ": closed");
    co_return absl::OkStatus();
  }

  void close() override {
    if (closed_) return;
    closed_ = true;
    board_.listened = false;
    readable_.cancel();
    writable_.cancel();
  }
  bool lossy() const override { return true; }
  const std::string& name() const override { return name_; }

  void deliver(const char* data, std::size_t n) {
    inbox_.append(data, n);
    readable_.cancel();
  }
  bool closed() const { return closed_; }

 private:
  VirtualTime& time_;
  VirtualBoard& board_;
  asio::steady_timer readable_, writable_;
  std::string inbox_, name_;
  bool closed_ = false;
};

VirtualWorld::VirtualWorld(VirtualTime& time) : time_(time) {
  time_.world = [this](std::int64_t until) { pass(until); };
}

VirtualWorld::~VirtualWorld() { time_.world = {}; }

VirtualBoard& VirtualWorld::add(BoardSetup setup, bool tcp) {
  auto place = std::make_unique<Place>();
  place->board = std::make_unique<VirtualBoard>(std::move(setup));
  place->tcp = tcp;
  place->board->power_on(time_.elapsed_us());
  places_.push_back(std::move(place));
  return *places_.back()->board;
}

void VirtualWorld::attach(asio::io_context* io) {
  io_ = io;
  if (io != nullptr) return;
  for (const auto& place : places_) place->board->listened = false;
}

Result<std::shared_ptr<link::ByteLink>> VirtualWorld::open(const std::string& endpoint) {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (endpoint != "tcp:" + address(i)) continue;
    Place& place = *places_[i];
    if (place.cut || (place.tcp && !place.board->powered()))
      return absl::UnavailableError(endpoint + ": no route");
    if (const auto old = place.link.lock()) old->close();
    place.board->to_host.clear();
    if (place.tcp) {
      place.board->to_board.clear();
      place.board->link_came();
    }
    place.board->listened = true;
    auto link = std::make_shared<Link>(*io_, time_, *place.board, endpoint);
    place.link = link;
    return std::shared_ptr<link::ByteLink>(link);
  }
  return absl::UnavailableError(endpoint + ": nobody there");
}

void VirtualWorld::after(std::int64_t us, std::function<void()> action) {
  actions_.emplace(time_.elapsed_us() + us, std::move(action));
}

void VirtualWorld::hang_up(std::size_t number) {
  if (const auto link = places_[number]->link.lock()) link->close();
}

void VirtualWorld::cut(std::size_t number, std::int64_t for_us) {
  Place& place = *places_[number];
  place.cut = true;
  place.board->to_board.clear();
  place.board->to_host.clear();
  hang_up(number);
  after(for_us, [&place] { place.cut = false; });
}

void VirtualWorld::power_cycle(std::size_t number, std::int64_t off_us) {
  Place& place = *places_[number];
  place.board->power_off(time_.elapsed_us());
  place.board->to_host.clear();
  if (place.tcp) hang_up(number);
  after(off_us, [this, &place] { place.board->power_on(time_.elapsed_us()); });
}

std::int64_t VirtualWorld::next_event() const {
  std::int64_t next = actions_.empty() ? Wire::kNever : actions_.begin()->first;
  for (const auto& place : places_) {
    next = std::min({next, place->board->next_due()});
    if (place->board->listened) next = std::min(next, place->board->to_host.next_arrival());
  }
  return next;
}

bool VirtualWorld::act(std::int64_t now) {
  bool acted = false;
  while (!actions_.empty() && actions_.begin()->first <= now) {
    const auto action = std::move(actions_.begin()->second);
    actions_.erase(actions_.begin());
    action();
    acted = true;
  }
  return acted;
}

bool VirtualWorld::deliver(std::int64_t now) {
  bool delivered = false;
  std::array<char, 4096> buffer;
  for (const auto& place : places_) {
    VirtualBoard& board = *place->board;
    if (board.next_due() <= now) board.run(now);
    const auto link = place->link.lock();
    if (!board.listened || !link || board.to_host.next_arrival() > now) continue;
    while (const std::size_t n = board.to_host.take(buffer.data(), buffer.size(), now)) {
      link->deliver(buffer.data(), n);
      delivered = true;
    }
  }
  return delivered;
}

void VirtualWorld::pass(std::int64_t until) {
  for (;;) {
    const std::int64_t next = std::max(next_event(), time_.elapsed_us());
    if (next > until) return time_.set(until);
    time_.set(next);
    const bool acted = act(next);
    const bool delivered = deliver(next);
    if (acted || delivered) return;
  }
}

}  // namespace odt::test
