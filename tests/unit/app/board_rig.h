// One board's firmware in this process, over byte pipes and a clock that the test moves, and a host
// that speaks to it frame by frame.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/app.h"
#include "odt/device/v1/device.pb.h"

namespace odt::testing {

namespace pb = odt::device::v1;

struct WireFrame {
  std::uint8_t type = 0;
  std::uint16_t session = 0;
  std::uint32_t id = 0;
  std::string body;
};

// Non-volatile memory in RAM; keeps a log of what was written, so that a power cut can be put
// between any two bytes.
struct RigNvm {
  explicit RigNvm(std::uint32_t size, std::uint32_t page = 128, std::uint32_t unit = 0)
      : bytes(size, '\xFF'), page_bytes(page), unit_bytes(unit) {}
  struct Write {
    std::uint32_t at = 0;
    std::string data;
  };
  std::string bytes;
  std::uint32_t page_bytes, unit_bytes;  // unit 0: written in place
  std::vector<Write> log;                // an erase: a unit of 0xFF
  std::size_t good_writes = SIZE_MAX;    // then they fail
};

struct RigOptions {
  RigNvm* nvm = nullptr;
  std::uint32_t arena = 1u << 20;
  std::uint32_t epochs = 4;
  std::uint32_t rx_window = 2048;
  std::string uid = "uid-0001";
  std::uint64_t seed = 1;
  bool can_reset = true;
  const hal_sensor_t* sensor = nullptr;  // its ctx is the rig
  bool has_button = false;
};

class BoardRig {
 public:
  explicit BoardRig(RigOptions options = {});

  // ---- raw ----
  app_t& app() { return *app_; }
  std::uint32_t now_ms() const { return now_us_ / 1000; }
  void advance_ms(std::uint32_t ms) { now_us_ += ms * 1000; }
  void send(std::uint8_t type, std::uint32_t id, const std::string& body = {});
  void send_raw(const std::string& bytes) {
    to_board_.insert(to_board_.end(), bytes.begin(), bytes.end());
  }
  // Turns of the board; each takes `step_us` of its clock.
  void turns(int n);
  // Until the board has nothing to do or `limit` turns are over.
  void settle(int limit = 2000);
  std::vector<WireFrame> take();  // frames that the board has sent since
  std::optional<WireFrame> take(std::uint8_t type);
  std::size_t bad_frames() const { return bad_; }
  void accept_bytes(std::size_t n) { room_ = n; }  // the transmitter's room; SIZE_MAX: no limit
  void restart();                                  // power cycle: RAM lost
  bool reset_seen() const { return reset_; }

  // ---- host ----
  pb::HelloAck hello(std::uint16_t session = 0);
  std::uint16_t session() const { return session_; }
  pb::Response request(const pb::Request& q);
  std::uint32_t last_request() const { return request_; }
  pb::XferOpened open(pb::Resource resource, const std::string& content, std::uint32_t index,
                      std::uint32_t resume, std::uint32_t batch_id = 0);
  // Sends content[from, to) as chunks of 512 without looking at windows; returns the last WINDOW.
  pb::Window chunks(const std::string& content, std::uint32_t from, std::uint32_t to);
  pb::Response commit(const std::string& content);
  pb::Response push(pb::Resource resource, const std::string& content, std::uint32_t index = 0,
                    std::uint32_t batch_id = 0);
  std::string pull(pb::Resource resource, std::uint32_t index = 0);
  std::uint32_t xfer_id = 100;

  std::vector<std::pair<std::uint32_t, pb::Event>> events;  // as they came
  std::vector<std::string> logs;
  std::string raw;   // every byte that the board has sent
  bool led = false;  // lit

  std::uint32_t step_us = 100;
  bool button = false;        // pressed
  std::uint32_t work_us = 0;  // passes at each look at the microsecond clock: slow kernels

 private:
  void collect();
  void set_up_nvm();
  std::unique_ptr<app_t> app_ = std::make_unique<app_t>();
  RigOptions options_;
  app_config_t config_{};
  hal_t hal_{};
  hal_nvm_t nvm_{};
  std::vector<std::uint64_t> arena_;
  std::vector<app_epoch_t> epochs_;
  std::deque<std::uint8_t> to_board_;
  std::vector<WireFrame> frames_;
  std::vector<std::uint8_t> decoder_buffer_;
  frame_decoder_t decoder_{};
  std::size_t room_ = SIZE_MAX;
  std::size_t bad_ = 0;
  std::uint32_t now_us_ = 5000;
  std::uint16_t session_ = 0;
  std::uint32_t request_ = 0;
  bool more_ = false;
  bool reset_ = false;
};

// ---- content of tests/golden/dense-196-32-10 ----
std::string golden_image();
std::string golden_samples();                                       // all 600
std::string golden_part(std::uint32_t first, std::uint32_t count);  // as a blob of its own
std::string golden_pick(const std::vector<std::uint32_t>& indices);
std::string sample_set_hash(const std::string& train, const std::string& heldout = {});
std::string sha256(const std::string& bytes);

pb::RunSpec small_spec(const std::string& train, const std::string& heldout = {});
pb::Request start_request(const pb::RunSpec& spec, const std::string& run_id = std::string(16, 'r'),
                          std::uint32_t attempt = 1);
pb::Request train_step(std::uint32_t step, std::uint32_t batch_id,
                       std::uint32_t slot);  // of that run
pb::State state_of(BoardRig& rig);           // with its hash
std::vector<std::uint32_t> order_of(const pb::RunSpec& spec, std::uint32_t epoch);
// Image and samples on the board.
void load(BoardRig& rig, const std::string& train, const std::string& heldout = {});

}  // namespace odt::testing
