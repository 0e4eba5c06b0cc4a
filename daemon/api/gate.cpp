#include "api/gate.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_context.h>
#include <spdlog/spdlog.h>

#include "api/errors.h"
#include "api/request_text.h"
#include "auth/secret.h"

namespace odt::api {
namespace {

constexpr std::size_t kMaxRequestId = 128;
// For callers without a deadline: longest useful wait for a board on a slow serial line.
constexpr std::chrono::seconds kDefaultDeadline{300};

std::string metadata(const grpc::CallbackServerContext& context, const char* key) {
  const auto it = context.client_metadata().find(key);
  if (it == context.client_metadata().end()) return {};
  return {it->second.data(), it->second.size()};
}

std::chrono::steady_clock::time_point steady_deadline(const grpc::CallbackServerContext& context) {
  const auto now = std::chrono::system_clock::now();
  const auto left = context.deadline() - now;
  const auto steady = std::chrono::steady_clock::now();
  return left > kDefaultDeadline ? steady + kDefaultDeadline : steady + left;
}

// The same for equal requests: map entries in key order.
std::string fingerprint_of(const MethodInfo& method, const google::protobuf::Message& request) {
  std::string bytes = method.path + '\n';
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    request.SerializeToCodedStream(&coded);
  }
  return sha256(bytes).hex().substr(0, 32);
}

// Whom the call is for: the caller, or somebody else that an admin names.
Status read_owner(const grpc::CallbackServerContext& context, const Caller& caller, Call& call) {
  const std::string owner = metadata(context, kOwnerKey);
  call.ctx.admin = caller.role >= Role::kAdmin;
  if (owner.empty() || owner == caller.actor) return absl::OkStatus();
  if (owner.size() > 64 || clean_text(owner) != owner)
    return with_reason(absl::InvalidArgumentError(
                           "x-odt-owner: 1 to 64 bytes of UTF-8 without control characters"),
                       "BAD_OWNER", "give a name that people know you by", kOwnerKey);
  if (!call.ctx.admin)
    return with_reason(
        absl::PermissionDeniedError("acting for " + owner + " needs the role admin; you are " +
                                    caller.actor),
        "NEEDS_ADMIN", "leave the owner out: calls are for who makes them");
  call.ctx.owner = owner;
  return absl::OkStatus();
}

Status check_request_id(const std::string& id) {
  if (id.size() > kMaxRequestId)
    return bad_field("request_id", std::to_string(id.size()) + " characters; limit 128");
  if (clean_text(id) != id)
    return bad_field("request_id", "holds control characters or is not UTF-8");
  return absl::OkStatus();
}

// CN of the certificate that the peer of a TLS connection has; empty: none.
std::string common_name(const grpc::CallbackServerContext& context) {
  const auto auth = context.auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) return {};
  const auto names = auth->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME);
  return names.empty() ? std::string() : std::string(names.front().data(), names.front().size());
}

model::AuditEntry entry_of(const Caller& caller, const MethodInfo& method, const Status& status) {
  model::AuditEntry entry;
  entry.actor = clean_text(caller.actor);
  entry.role = caller.role;
  entry.peer = caller.peer;
  entry.credential = clean_text(caller.credential);
  entry.service = method.service;
  entry.method = method.name;
  entry.result = code_name(status.code());
  if (!status.ok()) entry.message = message_of(status).substr(0, 300);
  return entry;
}

model::AuditEntry entry_of(const Call& call, const Status& status) {
  model::AuditEntry entry = entry_of(call.caller, *call.method, status);
  entry.what = call.what;
  entry.request_id = call.ctx.request_id;
  return entry;
}

// The API's own records; rooms below remember what they made under the plain id.
std::string log_key(const Call& call) { return "api/" + call.ctx.request_id; }

}  // namespace

Gate::Gate(AccessPolicy& policy, store::ControlThread& control, auth::AuditOptions audit)
    : policy_(policy), control_(control), book_(control, clock_), audit_(control, clock_, audit) {
  book_.on_end([this](const Uuid& token, const Status& why) { end_streams(token, why); });
}

void Gate::tick() {
  book_.tick();
  audit_.tick();
}

Result<Caller> Gate::identify(const std::string& peer, std::string_view authorization,
                              const std::string& cn) const {
  if (authorization.empty()) return cn.empty() ? policy_.caller(peer) : policy_.certified(cn, peer);
  const std::string_view secret = auth::bearer_token(authorization);
  if (secret.empty())
    return with_reason(absl::UnauthenticatedError("the authorization header is not 'Bearer TOKEN'"),
                       "TOKEN_UNKNOWN", "send 'authorization: Bearer odt_...'");
  ODT_ASSIGN(const model::Credential token, book_.known(secret, peer));
  Caller caller;
  caller.role = token.role;
  caller.actor = token.actor;
  caller.peer = peer;
  caller.credential = "token " + token.name;
  caller.token = token.id;
  caller.token_name = token.name;
  caller.expire_time_us = token.expire_time_us;
  return caller;
}

Status Gate::admit_door(const std::string& peer, std::string_view authorization,
                        const std::string& cn, Role needed, const std::string& door) {
  MethodInfo method;
  method.path = door;
  method.service = "http";
  method.name = door;
  const Result<Caller> caller = identify(peer, authorization, cn);
  const Status status = caller.ok() ? policy_.check(*caller, needed, door) : caller.status();
  if (!status.ok()) refused(method, caller.ok() ? *caller : Caller{Role::kNone, "", peer}, status);
  return status;
}

const MethodInfo* Gate::add_method(const google::protobuf::ServiceDescriptor& service,
                                   const std::string& name) {
  const auto* descriptor = service.FindMethodByName(name);
  auto info = std::make_unique<MethodInfo>();
  info->path = "/" + service.full_name() + "/" + name;
  info->service = service.name();
  info->name = name;
  const Result<AccessRule> rule = descriptor == nullptr
                                      ? Result<AccessRule>(absl::InternalError("no such method"))
                                      : access_rule(*descriptor);
  if (!rule.ok()) {
    spdlog::critical("api: cannot register {}: {}", info->path, rule.status().ToString());
    std::abort();
  }
  info->rule = *rule;
  methods_.push_back(std::move(info));
  return methods_.back().get();
}

Result<Call> Gate::admit(const grpc::CallbackServerContext& context, const MethodInfo& method,
                         const std::string& request_id, const google::protobuf::Message& request) {
  std::string peer = context.peer(), cn = common_name(context);
  if (const auto token = metadata(context, kBridgeTokenKey); !token.empty()) {
    if (token != policy_.bridge_token())
      return absl::PermissionDeniedError("x-odt-bridge is for the daemon's own HTTP bridge");
    peer = metadata(context, kBridgePeerKey);
    cn = metadata(context, kBridgeCertKey);
  }
  if (!is_local_peer(peer) && !rate_.take(auth::address_of(peer), std::chrono::steady_clock::now()))
    return with_reason(
        absl::ResourceExhaustedError("over 500 calls a second from " + auth::address_of(peer)),
        "RATE_LIMIT", "call less often; one Watch stream tells every change");
  const Result<Caller> caller = identify(peer, metadata(context, "authorization"), cn);
  Result<Call> call =
      caller.ok() ? let_in(*caller, method, request_id) : Result<Call>(caller.status());
  if (call.ok()) {
    if (const Status owner = read_owner(context, *caller, *call); !owner.ok()) call = owner;
  }
  if (!call.ok()) {
    refused(method, caller.ok() ? *caller : Caller{Role::kNone, "", peer}, call.status());
    return call;
  }
  call->ctx.deadline = steady_deadline(context);
  if (!request_id.empty()) call->fingerprint = fingerprint_of(method, request);
  if (method.rule.audit) call->what = request_text(request);
  return call;
}

Result<Call> Gate::let_in(const Caller& caller, const MethodInfo& method,
                          const std::string& request_id) const {
  if (!method.rule.open) ODT_TRY(policy_.check(caller, method.rule.role, method.path));
  ODT_TRY(check_request_id(request_id));
  Call call;
  call.caller = caller;
  call.ctx.actor = caller.actor;
  call.ctx.peer = caller.peer;
  call.ctx.request_id = request_id;
  if (method.rule.mutates) call.ctx.command_id = new_uuid();
  call.role = caller.role;
  call.method = &method;
  call.start = std::chrono::steady_clock::now();
  return call;
}

void Gate::begin(const Call& call, Decide decide) {
  if (call.ctx.request_id.empty() || !call.method->rule.mutates) {
    decide(std::optional<std::string>());
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    const auto [it, first] = waiting_.try_emplace({call.ctx.actor, call.ctx.request_id});
    if (!first) {
      // Asks again once the first call is settled: remembered by then, or free to be tried anew.
      it->second.push_back(
          [this, call, decide = std::move(decide)](const auto&) { begin(call, decide); });
      return;
    }
  }
  control_.post([this, call, decide = std::move(decide)](store::ControlStore& store) {
    Result<std::string> record = store.find_request(call.ctx.actor, log_key(call));
    if (absl::IsNotFound(record.status())) {
      decide(std::optional<std::string>());
      return;
    }
    release(call);
    if (!record.ok()) {
      decide(record.status());
    } else if (record->substr(0, call.fingerprint.size()) != call.fingerprint) {
      decide(with_reason(bad_field("request_id", "was used for another request"),
                         "REQUEST_ID_REUSED", "use a new request_id for every new request"));
    } else {
      decide(std::optional<std::string>(record->substr(call.fingerprint.size())));
    }
  });
}

void Gate::settle(const Call& call, Result<std::string> response, std::function<void()> done) {
  // What anybody may try fails like any refusal: a flood of it becomes few entries.
  if (!response.ok() && call.method->rule.open && call.method->rule.audit) {
    audit_.refused(entry_of(call, response.status()));
    done();
    release(call);
    return;
  }
  const bool remembered =
      response.ok() && !call.ctx.request_id.empty() && call.method->rule.mutates;
  if (!remembered && !call.method->rule.audit) {
    done();
    release(call);
    return;
  }
  store::Batch batch;
  batch.actor = call.ctx.actor;
  batch.command_id = call.ctx.command_id;
  if (remembered) {
    batch.request_id = log_key(call);
    batch.response = call.fingerprint + *response;
  }
  if (call.method->rule.audit) audit_.add_to(batch, entry_of(call, response.status()));
  control_.commit(std::move(batch), [this, call, done = std::move(done)](const auto& committed) {
    // The effect is durable already, and the rooms below remember it too.
    if (!committed.ok())
      spdlog::warn("api: {} by {} is not in the audit log: {}", call.method->path,
                   clean_text(call.ctx.actor), message_of(committed.status()));
    done();
    release(call);
  });
}

// Those who sent the same request meanwhile go on.
void Gate::release(const Call& call) {
  if (call.ctx.request_id.empty()) return;
  std::vector<Decide> waiters;
  {
    const std::lock_guard lock(mutex_);
    const auto it = waiting_.find({call.ctx.actor, call.ctx.request_id});
    if (it != waiting_.end()) {
      waiters = std::move(it->second);
      waiting_.erase(it);
    }
  }
  for (const auto& waiter : waiters) waiter(std::optional<std::string>());
}

void Gate::count(const Call& call, const Status& status) const {
  const auto spent = std::chrono::steady_clock::now() - call.start;
  call.method->calls.fetch_add(1, std::memory_order_relaxed);
  call.method->microseconds.fetch_add(
      static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::microseconds>(spent).count()),
      std::memory_order_relaxed);
  if (!status.ok()) call.method->errors.fetch_add(1, std::memory_order_relaxed);
  if (call.method->rule.audit)
    spdlog::info("audit: method={} actor={} peer={} request_id={} result={}{}{}", call.method->path,
                 clean_text(call.ctx.actor), call.ctx.peer, call.ctx.request_id,
                 code_name(status.code()), status.ok() ? "" : ": ", message_of(status));
}

void Gate::refused(const MethodInfo& method, const Caller& caller, const Status& status) {
  method.calls.fetch_add(1, std::memory_order_relaxed);
  method.errors.fetch_add(1, std::memory_order_relaxed);
  if (audit_.refused(entry_of(caller, method, status)))
    spdlog::warn("api: refused method={} peer={}: {}", method.path, caller.peer,
                 message_of(status));
}

// ---- streams

void Gate::watch_end(const Call& call, std::weak_ptr<Endable> stream) {
  if (call.caller.token.is_zero()) return;
  {
    const std::lock_guard lock(mutex_);
    auto& streams = streams_[call.caller.token];
    std::erase_if(streams, [](const auto& other) { return other.expired(); });
    streams.push_back(std::move(stream));
  }
  // It may have been revoked since the call was let in.
  if (!book_.in_force(call.caller.token))
    end_streams(call.caller.token,
                with_reason(absl::UnauthenticatedError("the token is no longer in force"),
                            "TOKEN_REVOKED", "ask an admin for a new one"));
}

void Gate::end_streams(const Uuid& token, const Status& why) {
  std::vector<std::weak_ptr<Endable>> streams;
  {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(token);
    if (found == streams_.end()) return;
    streams = std::move(found->second);
    streams_.erase(found);
  }
  for (const auto& weak : streams)
    if (const auto stream = weak.lock()) stream->end(why);
}

std::vector<const MethodInfo*> Gate::methods() const {
  std::vector<const MethodInfo*> all;
  for (const auto& method : methods_) all.push_back(method.get());
  return all;
}

}  // namespace odt::api
