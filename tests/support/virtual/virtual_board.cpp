#include "support/virtual/virtual_board.h"

#include <algorithm>
#include <utility>

namespace odt::test {
namespace {

constexpr std::uint8_t kPowerOn = 1, kRequested = 2, kWatchdog = 3;  // ResetReason

Hash hash_of(const app_nvm_head_t& head) {
  Hash hash;
  std::copy_n(head.hash, sizeof head.hash, hash.bytes.begin());
  return hash;
}

VirtualBoard* board_of(void* ctx) { return static_cast<VirtualBoard*>(ctx); }

}  // namespace

VirtualBoard::VirtualBoard(BoardSetup setup)
    : to_board(setup.seed * 2, setup.baud, setup.one_way_us),
      to_host(setup.seed * 2 + 1, setup.baud, setup.one_way_us),
      setup_(std::move(setup)),
      arena_(setup_.arena / 8),
      epochs_(setup_.epochs),
      random_(setup_.seed),
      nvm_(setup_.nvm, setup_.seed * 3) {
  config_.board = name_.c_str();
  config_.core = "host";
  config_.uid = setup_.uid.bytes.data();
  config_.uid_size = static_cast<std::uint8_t>(setup_.uid.bytes.size());
  config_.max_poll_ms = 20;
  config_.rx_window = setup_.rx_window;
  config_.arena = reinterpret_cast<std::uint8_t*>(arena_.data());
  config_.arena_size = setup_.arena & ~7u;
  config_.epochs = epochs_.data();
  config_.epoch_bytes = static_cast<std::uint32_t>(epochs_.size() * sizeof(app_epoch_t));
  config_.epoch_capacity = setup_.epochs;
  hal_.ctx = this;
  hal_.uart_read = [](void* ctx, std::uint8_t* out, std::uint32_t n) {
    VirtualBoard& b = *board_of(ctx);
    return static_cast<std::uint32_t>(b.to_board.take(out, n, b.now_, b.setup_.rx_ring));
  };
  hal_.uart_write = [](void* ctx, const std::uint8_t* data, std::uint32_t n) {
    VirtualBoard& b = *board_of(ctx);
    if (!b.listened) return n;
    const std::size_t used = b.to_host.waiting(b.now_);
    const std::size_t room = b.setup_.tx_ring - std::min<std::size_t>(used, b.setup_.tx_ring);
    n = static_cast<std::uint32_t>(std::min<std::size_t>(n, room));
    if (n != 0) b.to_host.put(data, n, b.now_);
    return n;
  };
  hal_.now_us = [](void* ctx) { return board_of(ctx)->clock_us(); };
  hal_.now_ms = [](void* ctx) { return board_of(ctx)->clock_us() / 1000; };
  hal_.entropy = [](void* ctx) { return board_of(ctx)->boot_seed_; };
  hal_.reset = [](void* ctx) { board_of(ctx)->reset_asked_ = true; };
  add_nvm();
}

void VirtualBoard::add_nvm() {
  hal_nvm_t* memory = nvm_.hal();
  hal_.nvm = memory;
  if (memory == nullptr) return;
  memory->read = [](void* ctx, std::uint32_t at, std::uint8_t* out, std::uint32_t n) {
    return board_of(ctx)->nvm_.read(at, out, n);
  };
  memory->write = [](void* ctx, std::uint32_t at, const std::uint8_t* data, std::uint32_t n) {
    return board_of(ctx)->nvm_.write(at, data, n);
  };
  memory->erase = [](void* ctx, std::uint32_t at) { return board_of(ctx)->nvm_.erase(at); };
}

std::uint32_t VirtualBoard::clock_us() const {
  return static_cast<std::uint32_t>(now_ - boot_time_);
}

void VirtualBoard::boot(std::int64_t now, std::uint8_t reason) {
  now_ = now;
  boot_time_ = now - 5000;
  next_turn_ = idle_until_ = now;
  stalled_until_ = 0;
  busy_ = reset_asked_ = false;
  powered_ = true;
  boot_seed_ = random_();
  ++boots_;
  config_.reset_reason = reason;
  config_.reset_count = reason == kPowerOn ? 0 : config_.reset_count + 1;
  nvm_.begin(now);
  app_init(app_.get(), &config_, &hal_);
  look_at_restored();
}

void VirtualBoard::look_at_restored() {
  const Hash held = app_->nvm.restored ? hash_of(app_->nvm.newest) : Hash{};
  restored_.push_back(held);
  if (held != newest_ && (under_way_.is_zero() || held != under_way_))
    lost_commits_.push_back("boot " + std::to_string(boots_) + " has " + held.hex() +
                            ", before were " + newest_.hex() + " and " + under_way_.hex());
  newest_ = before_ = held;
  under_way_ = Hash{};
}

void VirtualBoard::power_on(std::int64_t now) {
  for (auto& word : arena_) word = random_();
  to_board.clear();
  boot(now, kPowerOn);
}

void VirtualBoard::cut_nvm(std::int64_t now) {
  // The last page of a commit was still being written: it has not ended.
  if (now < nvm_.end() && newest_ != before_) under_way_ = std::exchange(newest_, before_);
  nvm_.cut(now);
}

// A write that is under way when the power goes is torn.
void VirtualBoard::power_off(std::int64_t now) {
  cut_nvm(now);
  powered_ = false;
  to_board.clear();
}

// A chip's own flash stops with the chip; an EEPROM ends the page that it has.
void VirtualBoard::reset(std::int64_t now) {
  if (setup_.nvm.unit != 0) cut_nvm(now);
  boot(now, kWatchdog);
}

void VirtualBoard::link_came() {
  if (powered_) app_link_reset(app_.get());
}

std::int64_t VirtualBoard::next_due() const {
  if (!powered_) return Wire::kNever;
  std::int64_t due = next_turn_;
  if (!busy_) {
    due = std::min(idle_until_, to_board.next_arrival());
    if (app_->link.tx_at < app_->link.tx_size)
      due = std::min(due, to_host.room_at(setup_.tx_ring / 2));
    due = std::max(due, next_turn_);
  }
  return std::max(due, stalled_until_);
}

std::uint32_t VirtualBoard::steps() const {
  return app_->trainer_kind == APP_TRAINER_RUN ? odt_trainer_step_count(&app_->trainer) : 0;
}

void VirtualBoard::run(std::int64_t now) {
  now_ = now;
  if (!listened) to_host.clear();
  const std::uint32_t before = steps();
  nvm_.begin(now);
  busy_ = app_poll(app_.get());
  before_ = std::exchange(newest_, hash_of(app_->nvm.newest));
  under_way_ = app_->nvm.work != 0 ? hash_of(app_->nvm.next) : Hash{};
  if (reset_asked_) return boot(now, kRequested);
  const bool stepped = steps() != before;
  next_turn_ = nvm_.end() + setup_.turn_us + (stepped ? setup_.step_us : 0);
  idle_until_ = nvm_.end() + std::int64_t{APP_IDLE_MS} * 1000;
}

}  // namespace odt::test
