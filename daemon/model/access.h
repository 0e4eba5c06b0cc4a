#pragma once

#include <string>

#include "model/common.h"

// Who may call, and what was done: values of auth.proto.
namespace odt::model {

enum class Role : std::uint8_t { kNone = 0, kViewer = 1, kOperator = 2, kAdmin = 3 };

// A token, or a login code that is exchanged for one. Only the hash of its secret is kept.
struct Credential {
  Uuid id;
  bool login_code = false;
  std::string name, actor;
  Role role = Role::kNone;
  Hash secret;                      // SHA-256
  std::int64_t expire_time_us = 0;  // 0: never
  std::int64_t revoke_time_us = 0;  // 0: in force; of a login code also: used
  std::string revoked_by;
  std::int64_t last_used_time_us = 0;
  std::string last_used_peer;
  std::uint32_t token_days = 0;  // of a login code: how long its token lives
  Meta meta;
};

struct AuditEntry {
  std::uint64_t seq = 0;  // given by the store, counting up
  std::int64_t time_us = 0;
  std::string actor;
  Role role = Role::kNone;
  std::string peer, credential;
  std::string service, method;  // "FleetService", "RenameBoard"
  std::string what;
  std::string result, message;  // "OK", or the code and the text of the error
  std::string request_id;
  std::uint32_t times = 1;
};

}  // namespace odt::model
