#include <random>

#include "odt/device/v1/device.pb.h"
#include "unit/session/session_fixture.h"

namespace odt::session {
namespace {

namespace pb = ::odt::device::v1;
using model::Resource;

std::shared_ptr<const std::string> content(std::size_t size) {
  std::mt19937 random(static_cast<std::uint32_t>(size));
  auto out = std::make_shared<std::string>(size, '\0');
  for (char& c : *out) c = static_cast<char>(random());
  return out;
}

class TransferTest : public SessionTest {
 protected:
  Status push(const std::shared_ptr<const std::string>& data,
              Resource resource = Resource::kModelImage) {
    return test::run(io_, session_->send(resource, 0, data, 0, {}, {}));
  }
  const std::string& held(Resource resource = Resource::kModelImage) {
    return board_->held[static_cast<int>(resource)];
  }
};

TEST_F(TransferTest, PushesAnySize) {
  never_resend();
  start();
  for (const std::size_t size : {1u, 511u, 512u, 513u, 2048u, 20000u}) {
    const auto data = content(size);
    const Status sent = push(data);
    ASSERT_TRUE(sent.ok()) << size << ": " << sent;
    EXPECT_EQ(held(), *data);
  }
  EXPECT_EQ(session_->stats().retries, 0u);
}

TEST_F(TransferTest, ProgressEndsAtTheSize) {
  start();
  std::uint32_t last = 0, total = 0;
  const auto data = content(10000);
  const Status sent = test::run(io_, session_->send(Resource::kSamples, 1, data, 0, {},
                                                    [&](std::uint32_t done, std::uint32_t of) {
                                                      EXPECT_GE(done, last);
                                                      last = done;
                                                      total = of;
                                                    }));
  ASSERT_TRUE(sent.ok()) << sent;
  EXPECT_EQ(last, 10000u);
  EXPECT_EQ(total, 10000u);
}

TEST_F(TransferTest, LostChunksAreSentAgainInTime) {
  start();
  board_->drop_chunks_in = 3;
  const auto data = content(9000);
  ASSERT_TRUE(push(data).ok());
  EXPECT_EQ(held(), *data);
  EXPECT_GT(session_->stats().retries, 0u);
}

TEST_F(TransferTest, LostWindowsDoNotStopIt) {
  start();
  board_->drop_windows = 6;
  const auto data = content(9000);
  ASSERT_TRUE(push(data).ok());
  EXPECT_EQ(held(), *data);
}

TEST_F(TransferTest, ANewSessionInMidTransferResumesAtThePrefix) {
  options_.rto_max = std::chrono::milliseconds(200);
  start();
  const auto data = content(60000);
  bool forgotten = false;
  const Status sent = test::run(io_, session_->send(Resource::kModelImage, 0, data, 0, {},
                                                    [&](std::uint32_t done, std::uint32_t) {
                                                      if (done > 30000 && !forgotten) {
                                                        forgotten = true;
                                                        board_->forget_session();
                                                      }
                                                    }));
  ASSERT_TRUE(sent.ok()) << sent;
  EXPECT_EQ(held(), *data);
  EXPECT_GE(board_->last_resume_offset, 30000u);
  EXPECT_EQ(board_->hellos, 2);
}

TEST_F(TransferTest, Report10_AnotherPrefixOnTheBoardStartsAfresh) {
  start();
  const auto data = content(60000);
  bool forgotten = false;
  const Status sent = test::run(io_, session_->send(Resource::kModelImage, 0, data, 0, {},
                                                    [&](std::uint32_t done, std::uint32_t) {
                                                      if (done > 30000 && !forgotten) {
                                                        forgotten = true;
                                                        board_->forget_session();
                                                        board_->lie_about_prefix = true;
                                                      }
                                                    }));
  ASSERT_TRUE(sent.ok()) << sent;
  EXPECT_EQ(held(), *data);
  EXPECT_EQ(board_->last_resume_offset, 0u);
}

TEST_F(TransferTest, ARebootEndsIt) {
  start();
  bool rebooted = false;
  const Status sent = test::run(io_, session_->send(Resource::kModelImage, 0, content(60000), 0, {},
                                                    [&](std::uint32_t done, std::uint32_t) {
                                                      if (done > 30000 && !rebooted) {
                                                        rebooted = true;
                                                        board_->reboot();
                                                      }
                                                    }));
  EXPECT_TRUE(absl::IsUnavailable(sent)) << sent;
}

TEST_F(TransferTest, ARefusedOpenKeepsTheBoardsWords) {
  start();
  board_->on_request = [](const pb::Request& q, pb::Response& r) {
    if (!q.has_xfer_open()) return false;
    r.mutable_error()->set_code(pb::STATUS_CODE_RESOURCE_EXHAUSTED);
    r.mutable_error()->set_text("image: bytes 9000, there are 4096");
    r.mutable_error()->set_limit(4096);
    return true;
  };
  const Status sent = push(content(9000));
  EXPECT_TRUE(absl::IsResourceExhausted(sent));
  EXPECT_NE(sent.message().find("4096"), std::string::npos);
  EXPECT_EQ(board_->chunks, 0);
}

TEST_F(TransferTest, ContentBrokenOnTheWayIsSentAgain) {
  start();
  int commits = 0;
  board_->on_request = [&](const pb::Request& q, pb::Response& r) {
    if (!q.has_xfer_commit() || ++commits > 1) return false;
    r.mutable_error()->set_code(pb::STATUS_CODE_DATA_LOSS);
    return true;
  };
  const auto data = content(3000);
  ASSERT_TRUE(push(data).ok());
  EXPECT_EQ(held(), *data);
  EXPECT_EQ(commits, 2);
}

TEST_F(TransferTest, ABoardThatNeverTakesAChunkIsGivenUp) {
  start();
  board_->drop_chunks_in = 1000000;
  const Status sent =
      test::run(io_, session_->send(Resource::kModelImage, 0, content(3000), 0, {}, {}),
                std::chrono::seconds(60));
  EXPECT_TRUE(absl::IsDeadlineExceeded(sent)) << sent;
  EXPECT_TRUE(session_->alive());
}

TEST_F(TransferTest, ControlRequestsPassATransfer) {
  start();
  board_->window = 512;
  bool state_done = false, sent = false;
  asio::co_spawn(io_, session_->send(Resource::kModelImage, 0, content(100000), 0, {}, {}),
                 [&](std::exception_ptr, Status status) {
                   EXPECT_TRUE(status.ok()) << status;
                   EXPECT_TRUE(state_done);
                   sent = true;
                 });
  asio::co_spawn(io_, session_->get_state(false),
                 [&](std::exception_ptr, Result<model::DeviceState> state) {
                   EXPECT_TRUE(state.ok()) << state.status();
                   state_done = true;
                 });
  ASSERT_TRUE(test::run_until(
      io_, [&] { return sent; }, std::chrono::seconds(30)));
}

TEST_F(TransferTest, PullsAnySize) {
  start();
  for (const std::size_t size : {0u, 1u, 512u, 513u, 5000u, 40000u}) {
    board_->offered = *content(size);
    const auto got = test::run(io_, session_->receive(Resource::kWeights, 0));
    ASSERT_TRUE(got.ok()) << size << ": " << got.status();
    EXPECT_EQ(got->content, board_->offered);
    EXPECT_EQ(got->version, 7u);
  }
}

TEST_F(TransferTest, PullSurvivesLostChunks) {
  start();
  board_->offered = *content(20000);
  board_->drop_chunks_out = 5;
  const auto got = test::run(io_, session_->receive(Resource::kState, 0));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->content, board_->offered);
  EXPECT_GT(session_->stats().retries, 0u);
}

TEST_F(TransferTest, PullWithAWrongCrcIsDataLoss) {
  start();
  board_->offered = *content(3000);
  board_->on_request = [&](const pb::Request& q, pb::Response& r) {
    if (!q.has_xfer_open()) return false;
    r.mutable_xfer_opened()->set_size(0);
    r.mutable_xfer_opened()->set_crc32(0x12345678);
    return true;
  };
  const auto got = test::run(io_, session_->receive(Resource::kState, 0));
  EXPECT_TRUE(absl::IsDataLoss(got.status())) << got.status();
}

TEST_F(TransferTest, PullOfAnAbsurdSizeIsRefused) {
  start();
  board_->on_request = [&](const pb::Request& q, pb::Response& r) {
    if (!q.has_xfer_open()) return false;
    r.mutable_xfer_opened()->set_size(0xFFFFFFFF);
    r.mutable_xfer_opened()->set_chunk(0xFFFFFFFF);
    r.mutable_xfer_opened()->set_window(0xFFFFFFFF);
    return true;
  };
  const auto got = test::run(io_, session_->receive(Resource::kState, 0));
  EXPECT_TRUE(absl::IsResourceExhausted(got.status())) << got.status();
}

TEST_F(TransferTest, EmptyPushIsTheBoardsToJudge) {
  start();
  EXPECT_TRUE(push(std::make_shared<const std::string>()).ok());
}

}  // namespace
}  // namespace odt::session
