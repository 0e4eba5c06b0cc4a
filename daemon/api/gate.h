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
#include "api/rate_cap.h"
#include "auth/audit_log.h"
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
  std::string path;           // "/odt.api.v1.FleetService/ListBoards"
  std::string service, name;  // "FleetService", "ListBoards"
  AccessRule rule;
  mutable std::atomic<std::uint64_t> calls{0}, errors{0};
  mutable std::atomic<std::uint64_t> microseconds{0};
};

// A call that was let in.
struct Call {
  CallContext ctx;
  Role role = Role::kNone;
  Caller caller;
  std::string what;  // the request in short, where the method is audited
  const MethodInfo* method = nullptr;
  std::string fingerprint;  // of the request, where ctx.request_id is not empty
  std::chrono::steady_clock::time_point start;
};

// A stream that may have to end before its caller wants it to: the token it came with is revoked.
class Endable : public std::enable_shared_from_this<Endable> {
 public:
  virtual ~Endable() = default;
  virtual void end(const Status& why) = 0;  // any thread
};

// Where every call passes: who it is, access, request_id, metrics, audit. Thread-safe.
class Gate {
 public:
  Gate(AccessPolicy& policy, store::ControlThread& control, auth::AuditOptions audit = {});

  // Reads the tokens. Blocks; before the server starts.
  Status load() { return book_.load(); }
  // Every few seconds.
  void tick();
  auth::Book& book() { return book_; }

  // Who calls. peer: as gRPC prints it; authorization: the header; cn: of the certificate that the
  // client has proven to have. UNAUTHENTICATED: a credential that is not good.
  Result<Caller> identify(const std::string& peer, std::string_view authorization,
                          const std::string& cn) const;
  // For what has no method: identify, and that role. `door`: "/metrics".
  Status admit_door(const std::string& peer, std::string_view authorization, const std::string& cn,
                    Role needed, const std::string& door);

  // Looks the method up in its service's descriptor. Aborts where it is not there or has no access
  // option: both are errors of the program.
  const MethodInfo* add_method(const google::protobuf::ServiceDescriptor& service,
                               const std::string& name);
  Result<Call> admit(const grpc::CallbackServerContext& context, const MethodInfo& method,
                     const std::string& request_id, const google::protobuf::Message& request);

  // Has this request_id been answered before? `decide` gets the response's bytes (answer with
  // them), or nothing: carry it out, and call `settle` with the outcome. A second call with the
  // same id waits for the first. INVALID_ARGUMENT: the id was used for another request.
  using Decide = std::function<void(Result<std::optional<std::string>>)>;
  void begin(const Call& call, Decide decide);
  // Remembers a good response (24 h, in the store) and writes the audit entry, in one transaction;
  // then calls `done`.
  void settle(const Call& call, Result<std::string> response, std::function<void()> done);

  void count(const Call& call, const Status& status) const;  // metrics
  // Ends `stream` when the token of `call` does.
  void watch_end(const Call& call, std::weak_ptr<Endable> stream);
  std::vector<const MethodInfo*> methods() const;
  const AccessPolicy& policy() const { return policy_; }

 private:
  AccessPolicy& policy_;
  store::ControlThread& control_;
  const SystemClock clock_;
  RateCap rate_{500, 2000};  // calls of one address on another machine
  mutable auth::Book book_;
  auth::AuditLog audit_;
  std::vector<std::unique_ptr<MethodInfo>> methods_;  // fixed before the server starts
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, std::vector<Decide>> waiting_;  // in flight
  std::map<Uuid, std::vector<std::weak_ptr<Endable>>> streams_;                 // by token

  Result<Call> let_in(const Caller& caller, const MethodInfo& method,
                      const std::string& request_id) const;
  void refused(const MethodInfo& method, const Caller& caller, const Status& status);
  void release(const Call& call);
  void end_streams(const Uuid& token, const Status& why);
};

}  // namespace odt::api
