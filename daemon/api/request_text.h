#pragma once

#include <string>

namespace google::protobuf {
class Message;
}

namespace odt::api {

// What a request asks for, in one short line for the audit log: "board_uid=0a1b.. name=bench-3".
// Fields that carry secrets are named without their value, bytes past 32 by their number; at most
// 400 characters, clean.
std::string request_text(const google::protobuf::Message& request);

}  // namespace odt::api
