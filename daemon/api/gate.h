#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/access.h"
#include "base/call.h"
#include "store/store_thread.h"

namespace grpc {
class CallbackServerContext;
}
namespace google::protobuf {
class Message;
class ServiceDescriptor;
}  // namespace google::protobuf

namespace odt::api {

// One registered method.
struct MethodInfo {
  std::string path;  // "/odt.api.v1.FleetService/ListBoards"
  AccessRule rule;
  mutable std::atomic<std::uint64_t> calls{0}, errors{0};
  mutable std::atomic<std::uint64_t> microseconds{0};
};

// A call that was let in.
struct Call {
  CallContext ctx;
  Role role = Role::kNone;
  const MethodInfo* method = nullptr;
  std::string fingerprint;  // of the request, where ctx.request_id is not empty
  std::chrono::steady_clock::time_point start;
};

// Where every call passes: access, request_id, metrics, audit. Thread-safe.
class Gate {
 public:
  Gate(AccessPolicy& policy, store::ControlThread& control);

  // Looks the method up in its service's descriptor. Aborts where it is not there or has no access
  // option: both are errors of the program.
  const MethodInfo* add_method(const google::protobuf::ServiceDescriptor& service,
                               const std::string& name);
  Result<Call> admit(const grpc::CallbackServerContext& context, const MethodInfo& method,
                     const std::string& request_id, const google::protobuf::Message& request) const;

  // Has this request_id been answered before? `decide` gets the response's bytes (answer with
  // them), or nothing: carry it out, and call `settle` with the outcome. A second call with the
  // same id waits for the first. INVALID_ARGUMENT: the id was used for another request.
  using Decide = std::function<void(Result<std::optional<std::string>>)>;
  void begin(const Call& call, Decide decide);
  // Remembers a good response (24 h, in the store), then calls `done`.
  void settle(const Call& call, Result<std::string> response, std::function<void()> done);

  void count(const Call& call, const Status& status) const;  // metrics, audit line
  void refused(const MethodInfo& method, const Status& status) const;
  std::vector<const MethodInfo*> methods() const;
  const AccessPolicy& policy() const { return policy_; }

 private:
  AccessPolicy& policy_;
  store::ControlThread& control_;
  std::vector<std::unique_ptr<MethodInfo>> methods_;  // fixed before the server starts
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::vector<Decide>> waiting_;  // in flight
};

}  // namespace odt::api
