#pragma once

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/method_handler.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "api/errors.h"
#include "api/gate.h"

// The one way to register a method of the API: every call passes the Gate, and every reactor
// finishes exactly once, also when it is cancelled or its answer never comes.
namespace odt::api {

// Answers a unary call; any thread, the first answer counts. Dropped without an answer (the daemon
// stops): UNAVAILABLE.
template <typename Resp>
class Reply {
 public:
  using Send = std::function<void(Result<Resp>)>;
  explicit Reply(Send send) : state_(std::make_shared<State>(std::move(send))) {}
  void operator()(Result<Resp> result) const { state_->answer(std::move(result)); }

 private:
  struct State {
    explicit State(Send s) : send(std::move(s)) {}
    ~State() {
      answer(with_reason(absl::UnavailableError("odtd is stopping"), "DAEMON_STOPPING",
                         "try again when odtd is back"));
    }
    void answer(Result<Resp> result) {
      if (!answered.exchange(true)) send(std::move(result));
    }
    Send send;
    std::atomic<bool> answered{false};
  };
  std::shared_ptr<State> state_;
};

// `request` is valid only while the handler runs: capture copies.
template <typename Req, typename Resp>
using UnaryHandler = std::function<void(const Call& call, const Req& request, Reply<Resp> reply)>;

template <typename Req>
std::string request_id_of(const Req& request) {
  if constexpr (requires { request.request_id(); }) return request.request_id();
  return {};
}

template <typename Req, typename Resp>
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  static grpc::ServerUnaryReactor* start(Gate& gate, const MethodInfo& method,
                                         const UnaryHandler<Req, Resp>& handler,
                                         grpc::CallbackServerContext* context, const Req* request,
                                         Resp* response) {
    auto call = std::make_shared<UnaryCall>(response);
    call->self_ = call;
    Result<Call> admitted = gate.admit(*context, method, request_id_of(*request), *request);
    if (!admitted.ok()) {
      call->finish(admitted.status());
    } else if (admitted->fingerprint.empty()) {
      handler(*admitted, *request, reply_to(gate, *admitted, call));
    } else {
      // The store is asked first: the request must outlive this function.
      gate.begin(*admitted, [&gate, call, admitted = *admitted, &handler,
                             copy = std::make_shared<Req>(*request)](
                                Result<std::optional<std::string>> before) {
        run_once(gate, call, admitted, handler, *copy, std::move(before));
      });
    }
    return call.get();
  }

  explicit UnaryCall(Resp* response) : response_(response) {}
  void OnCancel() override { finish(absl::CancelledError("the caller went away")); }
  void OnDone() override { auto keep = std::move(self_); }

 private:
  // Counts, remembers, writes down, then answers.
  static Reply<Resp> reply_to(Gate& gate, const Call& admitted,
                              const std::shared_ptr<UnaryCall>& call) {
    return Reply<Resp>([&gate, admitted, call](Result<Resp> result) {
      gate.count(admitted, result.status());
      Result<std::string> bytes = std::string();
      if (!result.ok())
        bytes = result.status();
      else if (!admitted.fingerprint.empty())
        bytes = result->SerializeAsString();
      gate.settle(admitted, std::move(bytes),
                  [call, shared = std::make_shared<Result<Resp>>(std::move(result))] {
                    call->finish(std::move(*shared));
                  });
    });
  }

  static void run_once(Gate& gate, const std::shared_ptr<UnaryCall>& call, const Call& admitted,
                       const UnaryHandler<Req, Resp>& handler, const Req& request,
                       Result<std::optional<std::string>> before) {
    if (!before.ok()) {
      gate.count(admitted, before.status());
      call->finish(before.status());
      return;
    }
    if (before->has_value()) {
      Resp again;
      gate.count(admitted, absl::OkStatus());
      if (again.ParseFromString(**before)) return call->finish(std::move(again));
      return call->finish(absl::DataLossError("the remembered response cannot be read"));
    }
    handler(admitted, request, reply_to(gate, admitted, call));
  }

  void finish(Result<Resp> result) {
    {
      const std::lock_guard lock(mutex_);
      if (finished_) return;
      finished_ = true;
      if (result.ok()) *response_ = std::move(*result);
    }
    this->Finish(to_grpc(result.status()));
  }

  Resp* response_;
  std::mutex mutex_;
  bool finished_ = false;
  std::shared_ptr<UnaryCall> self_;  // until OnDone: gRPC holds only a pointer
};

// Starts a stream for an admitted call, or refuses with a status.
template <typename Req, typename Resp>
using StreamHandler =
    std::function<grpc::ServerWriteReactor<Resp>*(const Call& call, const Req& request)>;

// Ends a stream that was not let in.
template <typename Resp>
class RefusedStream final : public grpc::ServerWriteReactor<Resp> {
 public:
  explicit RefusedStream(const Status& why) { this->Finish(to_grpc(why)); }
  void OnDone() override { delete this; }
};

// A service of odt.api.v1: its methods are added by name, before the server starts.
class ApiService final : public grpc::Service {
 public:
  ApiService(Gate& gate, const google::protobuf::ServiceDescriptor& descriptor)
      : gate_(gate), descriptor_(descriptor) {}

  template <typename Req, typename Resp>
  void unary(const std::string& name, UnaryHandler<Req, Resp> handler) {
    const MethodInfo* method = add(name, grpc::internal::RpcMethod::NORMAL_RPC);
    auto shared = std::make_shared<UnaryHandler<Req, Resp>>(std::move(handler));
    MarkMethodCallback(count_++, new grpc::internal::CallbackUnaryHandler<Req, Resp>(
                                     [this, method, shared](grpc::CallbackServerContext* context,
                                                            const Req* request, Resp* response) {
                                       return UnaryCall<Req, Resp>::start(
                                           gate_, *method, *shared, context, request, response);
                                     }));
  }

  template <typename Req, typename Resp>
  void server_stream(const std::string& name, StreamHandler<Req, Resp> handler) {
    const MethodInfo* method = add(name, grpc::internal::RpcMethod::SERVER_STREAMING);
    auto start = [this, method, handler = std::move(handler)](
                     grpc::CallbackServerContext* context,
                     const Req* request) -> grpc::ServerWriteReactor<Resp>* {
      Result<Call> call = gate_.admit(*context, *method, {}, *request);
      if (!call.ok()) return new RefusedStream<Resp>(call.status());
      gate_.count(*call, absl::OkStatus());
      gate_.settle(*call, std::string(), [] {});
      grpc::ServerWriteReactor<Resp>* stream = handler(*call, *request);
      // It cannot be over yet: gRPC has not been given it.
      if (auto* endable = dynamic_cast<Endable*>(stream))
        gate_.watch_end(*call, endable->weak_from_this());
      return stream;
    };
    MarkMethodCallback(
        count_++, new grpc::internal::CallbackServerStreamingHandler<Req, Resp>(std::move(start)));
  }

 private:
  const MethodInfo* add(const std::string& name, grpc::internal::RpcMethod::RpcType type) {
    const MethodInfo* method = gate_.add_method(descriptor_, name);
    AddMethod(new grpc::internal::RpcServiceMethod(method->path.c_str(), type, nullptr));
    return method;
  }

  Gate& gate_;
  const google::protobuf::ServiceDescriptor& descriptor_;
  int count_ = 0;
};

}  // namespace odt::api
