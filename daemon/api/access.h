#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace google::protobuf {
class MethodDescriptor;
}

// Who may call what. First policy: loopback and the unix socket are admin; anyone else has the role
// that the configuration gives to remote callers (default: none).
namespace odt::api {

enum class Role { kNone = 0, kViewer = 1, kOperator = 2, kAdmin = 3 };
std::string role_name(Role role);
Result<Role> parse_role(std::string_view name);  // "none", "viewer", "operator", "admin"

// The `access` option of a method.
struct AccessRule {
  Role role = Role::kAdmin;
  bool mutates = false;
  bool audit = false;
};
// INTERNAL where the method has no access option.
Result<AccessRule> access_rule(const google::protobuf::MethodDescriptor& method);

struct Caller {
  Role role = Role::kNone;
  std::string actor;
  std::string peer;  // "ipv4:127.0.0.1:4711", "unix:"
};

class AccessPolicy {
 public:
  explicit AccessPolicy(Role remote_role = Role::kNone);
  // peer: as gRPC prints it.
  Caller caller(std::string_view peer) const;
  // PERMISSION_DENIED, with the role needed and the remedy.
  Status check(const Caller& caller, Role needed, std::string_view method) const;
  // Random per process. The HTTP bridge sends it with the browser's real address; a call with
  // another token is not believed.
  const std::string& bridge_token() const { return bridge_token_; }

 private:
  Role remote_role_;
  std::string bridge_token_;
};

// Metadata and HTTP header: whom a call is for, where that is not who makes it (role admin).
constexpr char kOwnerKey[] = "x-odt-owner";
// Metadata of the bridge's calls.
constexpr char kBridgeTokenKey[] = "x-odt-bridge";
constexpr char kBridgePeerKey[] = "x-odt-peer";

bool is_local_peer(std::string_view peer);

}  // namespace odt::api
