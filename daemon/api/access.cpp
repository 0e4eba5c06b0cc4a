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

Result<AccessRule> access_rule(const google::protobuf::MethodDescriptor& method) {
  if (!method.options().HasExtension(v1::access))
    return absl::InternalError("method " + method.full_name() + " has no access option");
  const auto& access = method.options().GetExtension(v1::access);
  if (access.role() == v1::ROLE_UNSPECIFIED)
    return absl::InternalError("method " + method.full_name() + ": access without a role");
  return AccessRule{static_cast<Role>(access.role()), access.mutates(), access.audit(),
                    access.open()};
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
    : AccessPolicy(AccessOptions{false, remote_role, {}}) {}
AccessPolicy::AccessPolicy(AccessOptions options)
    : options_(std::move(options)), bridge_token_(random_token()) {}

Caller AccessPolicy::caller(std::string_view peer) const {
  Caller caller;
  caller.peer = peer;
  if (is_local_peer(peer) && (!options_.required || starts_with(peer, "unix:"))) {
    caller.role = Role::kAdmin;
    caller.actor = caller.credential = "local";
    return caller;
  }
  caller.role = options_.required ? Role::kNone : options_.remote_role;
  caller.actor = "remote:" + std::string(peer.substr(0, peer.rfind(':')));
  return caller;
}

Result<Caller> AccessPolicy::certified(const std::string& cn, std::string_view peer) const {
  for (const ClientRule& rule : options_.clients) {
    if (rule.cn != cn) continue;
    Caller caller;
    caller.role = rule.role;
    caller.actor = rule.actor.empty() ? cn : rule.actor;
    caller.peer = peer;
    caller.credential = "certificate " + cn;
    return caller;
  }
  return with_reason(
      absl::UnauthenticatedError("the certificate of '" + cn + "' stands for nobody here"),
      "CERTIFICATE_UNKNOWN", "add [[auth.client]] cn = \"" + cn + "\" with a role to odtd.toml");
}

Status AccessPolicy::check(const Caller& caller, Role needed, std::string_view method) const {
  if (caller.role >= needed) return absl::OkStatus();
  if (caller.role == Role::kNone && caller.credential.empty())
    return with_reason(
        absl::UnauthenticatedError(std::string(method) + " needs a token with the role " +
                                   role_name(needed) + "; the call from " + caller.peer +
                                   " has none"),
        "TOKEN_NEEDED",
        "log in (dashboard, `odtctl login`), or give a token: --token-file, $ODT_TOKEN, "
        "~/.config/odt/token; on odtd's machine the unix socket needs none");
  return with_reason(absl::PermissionDeniedError(
                         std::string(method) + " needs the role " + role_name(needed) + "; " +
                         (caller.credential.empty() ? caller.peer : caller.credential) + " has " +
                         role_name(caller.role)),
                     "ROLE_TOO_LOW", "ask an admin for a token with that role (odtctl token add)");
}

}  // namespace odt::api
