// Steering a layer's precision: written down first, told, told again, forgotten where refused.
#include <gtest/gtest.h>

#include "rig.h"

namespace odt::training {
namespace {

using namespace odt::test;
using model::RunState;
using model::Steer;

class SteerTest : public testing::Test {
 protected:
  void SetUp() override {
    rig_ = std::make_unique<Rig>(library);
    board_ = rig_->make_board(1);
    board_->caps = 0xFFF;
    board_->step_time = std::chrono::milliseconds(10);
    ASSERT_TRUE(rig_->connect(1, board_));
    ASSERT_TRUE(rig_->wait_online(board_));
  }
  Uuid start(std::optional<std::uint32_t> k_max = 12) {
    auto spec = rig_->spec(board_);
    spec.hyper.epochs = 6;
    spec.hyper.k = 8;
    spec.hyper.apt_k_max = k_max;
    auto run = rig_->create(spec);
    EXPECT_TRUE(run.ok()) << run.status();
    EXPECT_TRUE(rig_->wait_state(run->id, RunState::kRunning));
    return run->id;
  }
  Result<model::Run> steer(const Uuid& run, Steer s) {
    return rig_->ask<model::Run>([&](Done<model::Run> done) {
      rig_->fleet().set_precision(rig_->ctx(), run, s, std::move(done));
    });
  }
  std::vector<Steer> told() {
    return rig_->on_links([&] { return board_->steering; });
  }

  Library library;
  std::unique_ptr<Rig> rig_;
  std::shared_ptr<FakeBoard> board_;
};

TEST_F(SteerTest, IsToldAndRecorded) {
  const Uuid run = start();
  const auto total = library.run(run).steps_total;
  const auto each = total / 6;
  auto got = steer(run, {0, 1, 5});
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->steering.size(), 1u);
  EXPECT_EQ(got->steering[0].step % each, 0u) << "the next epoch";
  EXPECT_GT(got->steering[0].step, 0u);
  EXPECT_EQ(told(), got->steering);
  got = steer(run, {total - 1, 0, 12});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(steer(run, {total - 1, 0, 12})->steering.size(), 2u) << "the same again";
  EXPECT_EQ(library.run(run).steering, told());
}

TEST_F(SteerTest, ErrorsNameTheLimits) {
  const Uuid run = start();
  const auto total = library.run(run).steps_total;
  const auto why = [&](Steer s) { return std::string(steer(run, s).status().message()); };
  EXPECT_EQ(why({total - 1, 0, 13}), "k is 13; 2 to 12 are allowed");
  EXPECT_EQ(why({total - 1, 0, 1}), "k is 1; 2 to 12 are allowed");
  EXPECT_NE(why({total - 1, 99, 8}).find("layer is 99; 0 to "), std::string::npos);
  EXPECT_NE(why({total, 0, 8}).find("step is "), std::string::npos);
  ASSERT_TRUE(steer(run, {total - 1, 0, 8}).ok());
  EXPECT_NE(why({total - 1, 0, 9}).find("has k 8 from step"), std::string::npos);
  EXPECT_EQ(told().size(), 1u);
}

TEST_F(SteerTest, FixedPrecisionStays) {
  const Uuid run = start(std::nullopt);
  const auto got = steer(run, {0, 0, 8});
  EXPECT_NE(std::string(got.status().message()).find("fixed precision"), std::string::npos);
}

TEST_F(SteerTest, WhatTheBoardRefusesIsForgotten) {
  const Uuid run = start();
  rig_->on_links([&] {
    board_->before = [](const std::string& op) -> Status {
      if (op == "set_precision") return absl::FailedPreconditionError("step 3, steps done 9");
      return absl::OkStatus();
    };
  });
  const auto got = steer(run, {3, 0, 8});
  EXPECT_EQ(got.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(library.run(run).steering.empty());
}

TEST_F(SteerTest, ALostBoardGetsItWithItsStart) {
  const Uuid run = start();
  const auto total = library.run(run).steps_total;
  ASSERT_TRUE(steer(run, {total - 1, 0, 3}).ok());
  ASSERT_TRUE(rig_->wait_until([&] { return library.run(run).checkpoint_step != 0; }));
  rig_->on_links([&] {
    board_->power_cycle();
    board_->steering.clear();
  });
  ASSERT_TRUE(rig_->wait_state(run, RunState::kWaitingBoard));
  ASSERT_TRUE(rig_->connect(1, board_));
  ASSERT_TRUE(rig_->wait_state(run, RunState::kSucceeded)) << library.run(run).reason.text;
  EXPECT_EQ(told(), (std::vector<Steer>{{total - 1, 0, 3}}));
}

TEST_F(SteerTest, AnUnansweredOneIsAskedForAgain) {
  const Uuid run = start();
  const auto total = library.run(run).steps_total;
  rig_->on_links([&] {
    board_->before = [this, lost = std::make_shared<bool>(false)](const std::string& op) -> Status {
      if (op != "set_precision" || std::exchange(*lost, true)) return absl::OkStatus();
      board_->drop();
      return absl::UnavailableError("the link is gone");
    };
  });
  ASSERT_TRUE(steer(run, {total - 1, 1, 4}).ok());
  EXPECT_TRUE(told().empty());
  ASSERT_TRUE(rig_->wait_state(run, RunState::kWaitingBoard));
  ASSERT_TRUE(rig_->connect(1, board_));
  ASSERT_TRUE(rig_->wait_until([&] { return !told().empty(); }));
  EXPECT_EQ(told(), library.run(run).steering);
}

}  // namespace
}  // namespace odt::training
