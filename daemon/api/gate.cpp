#include "api/gate.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>
#include <grpcpp/server_context.h>
#include <spdlog/spdlog.h>

#include "api/errors.h"

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

// The API's own records; rooms below remember what they made under the plain id.
std::string log_key(const Call& call) { return "api/" + call.ctx.request_id; }

}  // namespace

Gate::Gate(AccessPolicy& policy, store::ControlThread& control)
    : policy_(policy), control_(control) {}

const MethodInfo* Gate::add_method(const google::protobuf::ServiceDescriptor& service,
                                   const std::string& name) {
  const auto* descriptor = service.FindMethodByName(name);
  auto info = std::make_unique<MethodInfo>();
  info->path = "/" + service.full_name() + "/" + name;
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
                         const std::string& request_id,
                         const google::protobuf::Message& request) const {
  std::string peer = context.peer();
  if (const auto token = metadata(context, kBridgeTokenKey); !token.empty()) {
    if (token != policy_.bridge_token())
      return absl::PermissionDeniedError("x-odt-bridge is for the daemon's own HTTP bridge");
    peer = metadata(context, kBridgePeerKey);
  }
  const Caller caller = policy_.caller(peer);
  ODT_TRY(policy_.check(caller, method.rule.role, method.path));
  ODT_TRY(check_request_id(request_id));
  Call call;
  ODT_TRY(read_owner(context, caller, call));
  call.ctx.actor = caller.actor;
  call.ctx.peer = caller.peer;
  call.ctx.request_id = request_id;
  if (method.rule.mutates) call.ctx.command_id = new_uuid();
  call.ctx.deadline = steady_deadline(context);
  call.role = caller.role;
  call.method = &method;
  if (!request_id.empty()) call.fingerprint = fingerprint_of(method, request);
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
    settle(call, absl::CancelledError("answered before"), [] {});
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
  if (call.ctx.request_id.empty() || !call.method->rule.mutates) {
    done();
    return;
  }
  const auto release = [this, call, done = std::move(done)] {
    done();
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
  };
  if (!response.ok()) {
    release();
    return;
  }
  store::Batch batch;
  batch.actor = call.ctx.actor;
  batch.command_id = call.ctx.command_id;
  batch.request_id = log_key(call);
  batch.response = call.fingerprint + *response;
  control_.commit(std::move(batch), [release, path = call.method->path](const auto& committed) {
    // The effect is durable already, and the rooms below remember it too.
    if (!committed.ok())
      spdlog::warn("api: {} not remembered: {}", path, message_of(committed.status()));
    release();
  });
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
                 call.ctx.actor, call.ctx.peer, call.ctx.request_id, code_name(status.code()),
                 status.ok() ? "" : ": ", message_of(status));
}

void Gate::refused(const MethodInfo& method, const Status& status) const {
  method.calls.fetch_add(1, std::memory_order_relaxed);
  method.errors.fetch_add(1, std::memory_order_relaxed);
  spdlog::warn("api: refused method={}: {}", method.path, message_of(status));
}

std::vector<const MethodInfo*> Gate::methods() const {
  std::vector<const MethodInfo*> all;
  for (const auto& method : methods_) all.push_back(method.get());
  return all;
}

}  // namespace odt::api
