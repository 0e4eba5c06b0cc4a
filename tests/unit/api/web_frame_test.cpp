#include "api/web_frame.h"

#include <gtest/gtest.h>

namespace odt::api {
namespace {

std::string frame(const std::string& message, char flag = 0) {
  std::string out;
  append_web_header(out, message.size());
  out[0] = flag;
  return out + message;
}

TEST(WebFrame, TakesExactlyOneMessage) {
  EXPECT_EQ(*parse_web_request(frame("hello"), 100), "hello");
  EXPECT_EQ(*parse_web_request(frame(""), 100), "");
  EXPECT_EQ(parse_web_request("", 100).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(parse_web_request("\0\0\0\0", 100).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(parse_web_request(frame("a") + frame("b"), 100).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(parse_web_request(frame("hello").substr(0, 8), 100).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(WebFrame, RefusesCompressionAndTrailersInARequest) {
  EXPECT_EQ(parse_web_request(frame("x", 1), 100).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(parse_web_request(frame("x", '\x80'), 100).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(WebFrame, LimitIsExact) {
  EXPECT_TRUE(parse_web_request(frame(std::string(99, 'x')), 100).ok());
  EXPECT_TRUE(parse_web_request(frame(std::string(100, 'x')), 100).ok());
  EXPECT_EQ(parse_web_request(frame(std::string(101, 'x')), 100).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(WebFrame, TrailerHasEachKeyOnceAndIsEncoded) {
  const grpc::Status status(grpc::StatusCode::NOT_FOUND, "no bo\xC3\xA4rd\n100%", "\x01\x02");
  const std::string out =
      web_trailer(status, {{"x-hint", "a"}, {"x-hint", "b"}, {"k-bin", "\xFF"}, {"bad", "a\r\nb"}});
  ASSERT_GT(out.size(), kWebFrameHeader);
  EXPECT_EQ(static_cast<unsigned char>(out[0]), 0x80);
  EXPECT_EQ(static_cast<unsigned char>(out[4]), out.size() - kWebFrameHeader);
  EXPECT_EQ(out.substr(kWebFrameHeader),
            "grpc-message: no bo%C3%A4rd%0A100%25\r\ngrpc-status: 5\r\n"
            "grpc-status-details-bin: AQI\r\nk-bin: /w\r\nx-hint: a\r\n");
}

TEST(WebFrame, TimeoutsHaveAllUnits) {
  using namespace std::chrono_literals;
  EXPECT_EQ(*parse_grpc_timeout("2H"), 2h);
  EXPECT_EQ(*parse_grpc_timeout("3M"), 3min);
  EXPECT_EQ(*parse_grpc_timeout("4S"), 4s);
  EXPECT_EQ(*parse_grpc_timeout("300m"), 300ms);
  EXPECT_EQ(*parse_grpc_timeout("5u"), 5us);
  EXPECT_EQ(*parse_grpc_timeout("6n"), 6ns);
  EXPECT_EQ(*parse_grpc_timeout("99999999H"), 876000h);  // a century is the longest
  for (const char* bad : {"", "m", "5", "5x", "-5m", "123456789m", "1.5S"})
    EXPECT_EQ(parse_grpc_timeout(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
}

}  // namespace
}  // namespace odt::api
