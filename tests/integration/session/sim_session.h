#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "support/run_io.h"
#include "support/session_probe.h"
#include "support/sim_board.h"

// The host's session against the real firmware in odt-sim-board processes.
namespace odt {

using session::BoardSession;
using std::chrono::milliseconds;
using std::chrono::seconds;

inline std::shared_ptr<const std::string> golden(const std::string& name) {
  std::ifstream in(std::string(ODT_GOLDEN_DIR) + "/" + name, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  EXPECT_FALSE(content.str().empty()) << name;
  return std::make_shared<const std::string>(content.str());
}

// Configuration A of the golden run.
inline model::DeviceRunSpec spec_a(std::uint32_t epochs) {
  model::DeviceRunSpec spec;
  spec.hyper.rule_set = model::RuleSet::kNiti;
  spec.hyper.loss = model::LossKind::kMse;
  spec.hyper.shift_source = model::ShiftSource::kExact;
  // The schedule goes by thirds of the run: one epoch of three has the first third's value.
  if (epochs == 1) {
    spec.hyper.mu_weight = {2, 2, 2};
  } else {
    spec.hyper.mu_weight = {2, 1, 0};
  }
  spec.hyper.mu_offset = 1;
  spec.hyper.dead_zone = 4;
  spec.hyper.k = 8;
  spec.hyper.batch = 8;
  spec.hyper.epochs = epochs;
  spec.hyper.order_seed = 1;
  spec.hyper.guard = false;
  spec.train_samples = 600;
  spec.hold_at_epoch = false;
  const Hash train = sha256(*golden("samples.odts"));
  spec.sample_set_hash = sha256(train.str() + std::string(32, '\0'));
  return spec;
}

class SimSession : public testing::Test {
 protected:
  void SetUp() override {
    if (test::sim_board_binary().empty()) GTEST_SKIP() << "odt-sim-board is not built";
    options_.host_id.bytes.fill(7);
    host_.sink = &sink_;
  }

  void TearDown() override {
    if (runner_) test::run(io_, runner_->stop());
    runner_.reset();
  }

  // Starts a board; returns where it listens ("PORT" or the pty's path).
  std::string start_board(std::vector<std::string> options) {
    std::vector<std::string> argv = {test::sim_board_binary(), "--uid", "00112233445566778899aabb"};
    argv.insert(argv.end(), options.begin(), options.end());
    board_ = test::ChildProcess(argv);
    const std::string line = board_.read_line(5000);
    const std::size_t space = line.find(' ');
    EXPECT_NE(space, std::string::npos) << "board said: " << line;
    return space == std::string::npos ? "" : line.substr(space + 1);
  }

  std::uint16_t start_tcp_board(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--listen", "0"});
    const std::string where = start_board(more);
    return static_cast<std::uint16_t>(std::stoi(where.substr(where.rfind(':') + 1)));
  }

  void connect(const std::string& endpoint) {
    runner_ = session::make_link_runner(io_, clock_, endpoint, options_, host_);
    runner_->start();
    ASSERT_TRUE(test::run_until(io_, [&] { return host_.online(); })) << endpoint;
  }

  BoardSession& board() { return *host_.session; }

  void push(model::Resource resource, std::uint32_t index, const std::string& file) {
    const Status sent =
        test::run(io_, board().send(resource, index, golden(file), 0, {}, {}), seconds(60));
    ASSERT_TRUE(sent.ok()) << sent;
  }

  // Pushes model and samples, trains one epoch of the golden run, checks its loss and weights.
  void train_golden_epoch() {
    push(model::Resource::kModelImage, 0, "image.odtm");
    push(model::Resource::kSamples, 1, "samples.odts");
    BoardSession::StartRun start;
    start.run_id = new_uuid();
    start.attempt = 1;
    start.spec = spec_a(1);
    const auto started = test::run(io_, board().start_run(start));
    ASSERT_TRUE(started.ok()) << started.status();
    EXPECT_EQ(started->run_id, start.run_id);
    ASSERT_TRUE(test::run_until(
        io_, [&] { return sink_.done(); }, seconds(60)));
    ASSERT_EQ(sink_.epochs.size(), 1u);
    // README of the golden run: A, epoch 0.
    EXPECT_EQ(sink_.epochs[0].loss.sum, 715945);
    EXPECT_EQ(sink_.epochs[0].train.correct, 205u);
    EXPECT_EQ(sink_.epochs[0].run_id, start.run_id);
  }

  asio::io_context io_;
  SystemClock clock_;
  session::LinkOptions options_;
  test::RecordingSink sink_;
  test::RecordingHost host_;
  test::ChildProcess board_;
  std::unique_ptr<session::LinkRunner> runner_;
};

}  // namespace odt
