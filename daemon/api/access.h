#pragma once

#include <string>
#include <string_view>

#include "auth/book.h"
#include "base/result.h"

namespace google::protobuf {
class MethodDescriptor;
}

// Who may call what. The unix socket is admin (its file's mode says who may open it), and so is
// loopback unless auth.required is on. Anyone else needs a token or a client certificate.
namespace odt::api {

using Role = model::Role;
using auth::parse_role;
using auth::role_name;

// The `access` option of a method.
struct AccessRule {
  Role role = Role::kAdmin;
  bool mutates = false;
  bool audit = false;
  bool open = false;  // no role is needed
};
// INTERNAL where the method has no access option.
Result<AccessRule> access_rule(const google::protobuf::MethodDescriptor& method);

struct Caller {
  Role role = Role::kNone;
  std::string actor = {};
  std::string peer = {};        // "ipv4:127.0.0.1:4711", "unix:"
  std::string credential = {};  // "local", "token <name>", "certificate <CN>"; empty: none
  Uuid token = {};              // zero: none
  std::string token_name = {};
  std::int64_t expire_time_us = 0;  // of the token; 0: never
};

// Whom the certificate of a client with this common name stands for.
struct ClientRule {
  std::string cn, actor;  // actor empty: the CN
  Role role = Role::kNone;
};
struct AccessOptions {
  bool required = false;  // also of callers on loopback
  Role remote_role = Role::kNone;
  std::vector<ClientRule> clients;
};

class AccessPolicy {
 public:
  explicit AccessPolicy(Role remote_role = Role::kNone);
  explicit AccessPolicy(AccessOptions options);
  // One without a credential. peer: as gRPC prints it.
  Caller caller(std::string_view peer) const;
  // One with a certificate that our CA has signed. UNAUTHENTICATED: nobody of this name.
  Result<Caller> certified(const std::string& cn, std::string_view peer) const;
  bool required() const { return options_.required; }
  // PERMISSION_DENIED, or UNAUTHENTICATED without a credential; with the role needed and the
  // remedy.
  Status check(const Caller& caller, Role needed, std::string_view method) const;
  // Random per process. The HTTP bridge sends it with the browser's real address; a call with
  // another token is not believed.
  const std::string& bridge_token() const { return bridge_token_; }

 private:
  AccessOptions options_;
  std::string bridge_token_;
};

// Metadata and HTTP header: whom a call is for, where that is not who makes it (role admin).
constexpr char kOwnerKey[] = "x-odt-owner";
// Metadata of the bridge's calls.
constexpr char kBridgeTokenKey[] = "x-odt-bridge";
constexpr char kBridgePeerKey[] = "x-odt-peer";
constexpr char kBridgeCertKey[] = "x-odt-cert";

bool is_local_peer(std::string_view peer);

}  // namespace odt::api
