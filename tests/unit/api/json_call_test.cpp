#include "api/json_call.h"

#include <gtest/gtest.h>

#include "api/errors.h"
#include "odt/api/v1/services.pb.h"

namespace odt::api {
namespace {

constexpr char kGetBoard[] = "/odt.api.v1.FleetService/GetBoard";

TEST(JsonCall, ContentTypes) {
  for (const char* type :
       {"application/json", "Application/JSON", "application/json ; charset=UTF-8",
        "application/json;charset=\"utf-8\"", "application/json; q=1"})
    EXPECT_TRUE(is_json(type)) << type;
  for (const char* type : {"", "application/jsonx", "text/json", "application/json; charset=latin1",
                           "application/grpc-web+json"})
    EXPECT_FALSE(is_json(type)) << type;
}

TEST(JsonCall, RequestsAreReadByTheirType) {
  v1::GetBoardRequest request;
  ASSERT_TRUE(request.ParseFromString(*json_request(kGetBoard, R"({"uid": "AQIDBAUGBwg="})")));
  EXPECT_EQ(request.uid(), "\1\2\3\4\5\6\7\10");
  EXPECT_EQ(*json_request(kGetBoard, ""), "");
  EXPECT_EQ(*json_request(kGetBoard, " \n{}"), "");
  EXPECT_EQ(json_request(kGetBoard, R"({"uix": "AQID"})").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(reason_of(json_request(kGetBoard, "[1]").status()), "BAD_JSON");
  EXPECT_EQ(reason_of(json_request(kGetBoard, std::string(200000, '[')).status()), "BAD_JSON");
}

TEST(JsonCall, PathsAreThoseOfTheApi) {
  for (const char* path :
       {"", "/", "odt.api.v1.FleetService/GetBoard", "/odt.api.v1.FleetService",
        "/odt.api.v1.FleetService.GetBoard", "/odt.api.v1.FleetService/GetBoard/",
        "/odt.api.v1/FleetService/GetBoard", "/odt.api.v1.FleetService/Nothing",
        "/google.rpc.ErrorInfo/reason"})
    EXPECT_EQ(reason_of(json_request(path, "{}").status()), "NO_METHOD") << path;
  EXPECT_EQ(json_request("/odt.api.v1.WatchService/Watch", "{}").status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(JsonCall, AnswersHaveEveryField) {
  v1::GetBoardResponse response;
  response.mutable_board()->set_boot_id(18'000'000'000'000'000'000u);
  const std::string text = *json_response(kGetBoard, response.SerializeAsString());
  EXPECT_NE(text.find(R"("boot_id":"18000000000000000000")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("status":"BOARD_STATUS_UNSPECIFIED")"), std::string::npos) << text;
  EXPECT_FALSE(json_response(kGetBoard, "\xFF\xFF").ok());
}

TEST(JsonCall, ErrorsHaveTheirParts) {
  const auto status =
      to_grpc(with_reason(absl::NotFoundError("no \"board\"\\\n\x01"), "NO_BOARD", "Look.", "uid"));
  EXPECT_EQ(
      json_error(status),
      R"({"error": {"code": "NOT_FOUND", "message": "no \"board\"\\??", "reason": "NO_BOARD", )"
      R"("field": "uid", "remedy": "Look."}})"
      "\n");
  EXPECT_EQ(
      json_error({grpc::StatusCode::CANCELLED, ""}),
      R"({"error": {"code": "CANCELLED", "message": "", "reason": "", "field": "", "remedy": ""}})"
      "\n");
}

TEST(JsonCall, EveryCodeHasItsStatus) {
  for (int code = 1; code <= 16; ++code)
    EXPECT_GE(http_status_of(static_cast<grpc::StatusCode>(code)), 400u) << code;
  EXPECT_EQ(http_status_of(grpc::StatusCode::OK), 200u);
  EXPECT_EQ(http_status_of(grpc::StatusCode::NOT_FOUND), 404u);
  EXPECT_EQ(http_status_of(grpc::StatusCode::DATA_LOSS), 500u);
}

}  // namespace
}  // namespace odt::api
