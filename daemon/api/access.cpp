#include "api/access.h"

#include <openssl/rand.h>

#include <array>
#include <cstdlib>

#include "base/ids.h"
#include "odt/api/v1/access.pb.h"

namespace odt::api {
namespace {

std::string random_token() {
  std::array<std::uint8_t, 32> raw{};
  if (RAND_bytes(raw.data(), static_cast<int>(raw.size())) != 1) std::abort();
  return to_hex(raw.data(), raw.size());
}

bool starts_with(std::string_view text, std::string_view head) {
  return text.substr(0, head.size()) == head;
}

}  // namespace

std::string role_name(Role role) {
  switch (role) {
    case Role::kViewer:
      return "viewer";
    case Role::kOperator:
      return "operator";
    case Role::kAdmin:
      return "admin";
    default:
      return "none";
  }
}

Result<Role> parse_role(std::string_view name) {
  for (const Role role : {Role::kNone, Role::kViewer, Role::kOperator, Role::kAdmin})
    if (role_name(role) == name) return role;
  return absl::InvalidArgumentError("role '" + std::string(name) +
                                    "' is not one of none, viewer, operator, admin");
}

Result<AccessRule> access_rule(const google::protobuf::MethodDescriptor& method) {
  if (!method.options().HasExtension(v1::access))
    return absl::InternalError("method " + method.full_name() + " has no access option");
  const auto& access = method.options().GetExtension(v1::access);
  if (access.role() == v1::ROLE_UNSPECIFIED)
    return absl::InternalError("method " + method.full_name() + ": access without a role");
  return AccessRule{static_cast<Role>(access.role()), access.mutates(), access.audit()};
}

bool is_local_peer(std::string_view peer) {
  if (starts_with(peer, "unix:")) return true;
  if (starts_with(peer, "ipv4:")) return starts_with(peer.substr(5), "127.");
  if (!starts_with(peer, "ipv6:")) return false;
  std::string_view host = peer.substr(5);
  if (starts_with(host, "%5B")) host.remove_prefix(3);
  if (starts_with(host, "[")) host.remove_prefix(1);
  const auto end = std::min(host.find(']'), host.find("%5D"));
  if (end != std::string_view::npos) host = host.substr(0, end);
  return host == "::1" || starts_with(host, "::ffff:127.");
}

AccessPolicy::AccessPolicy(Role remote_role)
    : remote_role_(remote_role), bridge_token_(random_token()) {}

Caller AccessPolicy::caller(std::string_view peer) const {
  if (is_local_peer(peer)) return {Role::kAdmin, "local", std::string(peer)};
  const auto last_colon = peer.rfind(':');
  return {remote_role_, "remote:" + std::string(peer.substr(0, last_colon)), std::string(peer)};
}

Status AccessPolicy::check(const Caller& caller, Role needed, std::string_view method) const {
  if (caller.role >= needed) return absl::OkStatus();
  return with_reason(
      absl::PermissionDeniedError(std::string(method) + " needs the role " + role_name(needed) +
                                  "; " + caller.peer + " has " + role_name(caller.role)),
      "ROLE_TOO_LOW",
      "call from this machine (or through ssh -L), or raise access.remote_role in odtd.toml");
}

}  // namespace odt::api
