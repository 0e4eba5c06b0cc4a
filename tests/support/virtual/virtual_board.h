#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/app.h"
#include "base/ids.h"
#include "support/virtual/virtual_nvm.h"
#include "support/virtual/wire.h"

namespace odt::test {

struct BoardSetup {
  BoardUid uid;
  std::uint64_t seed = 1;
  std::uint32_t baud = 921600;
  std::int64_t one_way_us = 500;
  std::uint32_t arena = 1u << 20, epochs = 64;
  std::uint32_t rx_window = 2048, rx_ring = 2700, tx_ring = 1024;  // bytes
  std::uint32_t turn_us = 30;    // of app_poll() where there was something to do
  std::uint32_t step_us = 2000;  // of a training step, beside that
  NvmSetup nvm;
};

// A board in the world of a VirtualTime: the firmware (app_t) over a HAL whose UART is two Wires
// and whose clock is the world's. Times in microseconds of that clock.
class VirtualBoard {
 public:
  explicit VirtualBoard(BoardSetup setup);

  void power_on(std::int64_t now);  // RAM is what it happens to be
  void power_off(std::int64_t now);
  void reset(std::int64_t now);  // as its watchdog does
  void stall(std::int64_t until) { stalled_until_ = until; }
  void link_came();  // a TCP connection: the firmware hears of it
  bool powered() const { return powered_; }

  std::int64_t next_due() const;  // when run() has something to do; Wire::kNever
  void run(std::int64_t now);

  std::uint32_t boots() const { return boots_; }
  // What each boot brought back from non-volatile memory; zero: nothing.
  const std::vector<Hash>& restored() const { return restored_; }
  // Boots after a commit that came back neither with it nor with the one that was under way.
  const std::vector<std::string>& lost_commits() const { return lost_commits_; }

  Wire to_board, to_host;
  bool listened = false;  // somebody is at the other end: else what it sends is lost

 private:
  void add_nvm();
  void look_at_restored();
  void cut_nvm(std::int64_t now);
  void boot(std::int64_t now, std::uint8_t reason);
  std::uint32_t clock_us() const;
  std::uint32_t steps() const;

  BoardSetup setup_;
  std::unique_ptr<app_t> app_ = std::make_unique<app_t>();
  app_config_t config_{};
  hal_t hal_{};
  std::vector<std::uint64_t> arena_;
  std::vector<app_epoch_t> epochs_;
  std::string name_ = "virtual";
  std::mt19937_64 random_;
  std::int64_t now_ = 0, boot_time_ = 0, next_turn_ = 0, idle_until_ = 0, stalled_until_ = 0;
  std::uint64_t boot_seed_ = 0;
  std::uint32_t boots_ = 0;
  VirtualNvm nvm_;
  std::vector<Hash> restored_;
  std::vector<std::string> lost_commits_;
  Hash newest_, before_, under_way_;  // commits: when the board last ran, before that, and begun
  bool powered_ = false, busy_ = false, reset_asked_ = false;
};

}  // namespace odt::test
