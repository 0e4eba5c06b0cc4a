#include "api/http_rules.h"

#include <gtest/gtest.h>

namespace odt::api {
namespace {

TEST(HttpRules, NamesOfOthersAreNotServed) {
  for (const char* good : {"localhost", "localhost:8080", "127.0.0.1:9", "[::1]:80", "10.0.0.5",
                           "app.localhost:1", "LAB.example:80"})
    EXPECT_TRUE(host_allowed(good, {"lab.example"})) << good;
  for (const char* bad : {"", "evil.example", "evil.example:8080", "localhost.evil.example",
                          "127.0.0.1.evil.example", "[evil]", "[::1"})
    EXPECT_FALSE(host_allowed(bad, {"lab.example"})) << bad;
}

TEST(HttpRules, OnlyTheSameOriginOrAnAllowedOneMayCall) {
  EXPECT_TRUE(origin_allowed("http://127.0.0.1:8080", "127.0.0.1:8080", {}));
  EXPECT_TRUE(origin_allowed("http://localhost:5173", "127.0.0.1:8080", {"http://localhost:5173"}));
  EXPECT_FALSE(origin_allowed("http://localhost:8080", "127.0.0.1:8080", {}));
  EXPECT_FALSE(origin_allowed("http://evil.example", "127.0.0.1:8080", {}));
  EXPECT_FALSE(origin_allowed("null", "127.0.0.1:8080", {}));
}

TEST(HttpRules, GrpcWebTextIsNotTaken) {
  EXPECT_TRUE(is_grpc_web("application/grpc-web"));
  EXPECT_TRUE(is_grpc_web("Application/gRPC-Web+proto; charset=x"));
  for (const char* bad : {"", "application/grpc-web-text", "application/grpc", "text/plain",
                          "application/grpc-web+json"})
    EXPECT_FALSE(is_grpc_web(bad)) << bad;
}

ByteRange range(std::string_view header, std::uint64_t size) {
  const auto parsed = parse_range(header, size);
  EXPECT_TRUE(parsed.ok() && parsed->has_value()) << header;
  return parsed.ok() && parsed->has_value() ? **parsed : ByteRange{};
}

TEST(HttpRules, RangesAreCutToTheResource) {
  EXPECT_EQ(range("bytes=0-0", 10).end, 1u);
  EXPECT_EQ(range("bytes=3-", 10).first, 3u);
  EXPECT_EQ(range("bytes=3-", 10).end, 10u);
  EXPECT_EQ(range("bytes=3-99", 10).end, 10u);
  EXPECT_EQ(range("bytes=-4", 10).first, 6u);
  EXPECT_EQ(range("bytes=-40", 10).first, 0u);
  for (const char* none : {"", "bytes=", "bytes=5-3", "bytes=a-b", "items=0-1", "bytes=0-1,3-4"})
    EXPECT_FALSE(parse_range(none, 10)->has_value()) << none;
  for (const char* past : {"bytes=10-", "bytes=10-12", "bytes=-0"})
    EXPECT_EQ(parse_range(past, 10).status().code(), absl::StatusCode::kOutOfRange) << past;
}

TEST(HttpRules, PathsStayInside) {
  EXPECT_EQ(*parse_target("/a%20b/c?x=/../"), "/a b/c");
  EXPECT_EQ(*parse_target("/a..b"), "/a..b");
  for (const char* bad : {"", "a", "/../x", "/a/..", "/%2e%2e/x", "/a%00", "/a%", "/a%zz", "/a\\b"})
    EXPECT_FALSE(parse_target(bad).ok()) << bad;
}

}  // namespace
}  // namespace odt::api
