#include "api/errors.h"

#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace odt::api {
namespace {

google::rpc::Status details_of(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

TEST(Errors, ReasonRemedyAndFieldBecomeDetails) {
  const auto status = to_grpc(with_reason(absl::InvalidArgumentError("k is 99; allowed 2 to 16"),
                                          "K_RANGE", "choose k 8 or 15", "spec.hyper.k"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "k is 99; allowed 2 to 16");
  const auto details = details_of(status);
  ASSERT_EQ(details.details_size(), 2);
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "K_RANGE");
  EXPECT_EQ(info.domain(), "odt-fleet");
  EXPECT_EQ(info.metadata().at("remedy"), "choose k 8 or 15");
  google::rpc::BadRequest bad;
  ASSERT_TRUE(details.details(1).UnpackTo(&bad));
  EXPECT_EQ(bad.field_violations(0).field(), "spec.hyper.k");
}

TEST(Errors, WithoutAReasonTheCodeIsOne) {
  const auto details = details_of(to_grpc(absl::NotFoundError("gone")));
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "NOT_FOUND");
}

TEST(Errors, WhatPassesByItselfSaysWhenToRetry) {
  const auto details = details_of(to_grpc(absl::UnavailableError("later")));
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(details.details(details.details_size() - 1).UnpackTo(&retry));
  EXPECT_GT(retry.retry_delay().seconds(), 0);
}

// A client refuses metadata of more than 8 KB and would show nothing of the error.
TEST(Errors, LongTextsAreCutBetweenCharacters) {
  std::string text;
  while (text.size() < 100'000) text += "\xE2\x82\xAC";
  const auto status = to_grpc(bad_field("filter", text));
  EXPECT_LE(status.error_message().size(), 1003u);
  EXPECT_LE(status.error_details().size(), 4000u);
  EXPECT_EQ(clean_text(status.error_message()), status.error_message());
  EXPECT_TRUE(status.error_message().ends_with("..."));
}

TEST(Errors, TextsAreCleanUtf8) {
  EXPECT_EQ(clean_text("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80"),
            "gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80");
  EXPECT_EQ(clean_text("a\x1B[31mb\r\nc\x7F"), "a?[31mb??c?");
  EXPECT_EQ(clean_text("\xC3"), "?");
  EXPECT_EQ(clean_text("\xC0\xAF"), "??");       // overlong
  EXPECT_EQ(clean_text("\xED\xA0\x80"), "???");  // surrogate
  EXPECT_EQ(clean_text("\xC2\x9B"
                       "31m"),
            "??31m");  // C1 control: CSI
  EXPECT_EQ(clean_text("\xFF\xFE"), "??");
}

TEST(Errors, OkStaysOk) { EXPECT_TRUE(to_grpc(absl::OkStatus()).ok()); }

}  // namespace
}  // namespace odt::api
