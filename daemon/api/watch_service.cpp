#include "api/service_helpers.h"

namespace odt::api {
namespace {

// The gRPC end of one stream: writes come from the front thread, reactions from gRPC's threads.
// Responses are bytes already: their records were encoded once for all streams.
class WatchCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                        public WatchSink,
                        public Endable {
 public:
  static grpc::ServerWriteReactor<grpc::ByteBuffer>* start(WatchHub& hub,
                                                           const v1::WatchRequest& request) {
    auto call = std::make_shared<WatchCall>(hub);
    call->self_ = call;
    std::vector<WatchTopic> topics;
    for (const auto& wanted : request.topics()) {
      Result<WatchTopic> topic = parse_topic(wanted);
      if (!topic.ok()) {
        call->finish(topic.status());
        return call.get();
      }
      topics.push_back(*topic);
    }
    hub.open(call->id_, call, std::move(topics), request.resume_store_epoch(),
             request.resume_event_seq());
    return call.get();
  }

  explicit WatchCall(WatchHub& hub) : hub_(hub) {}

  void write(v1::WatchResponse response, std::string telemetry) override {
    // Fields may stand in any order.
    response.AppendToString(&telemetry);
    const grpc::Slice slice(telemetry);
    const auto keep = self();
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    response_ = grpc::ByteBuffer(&slice, 1);
    StartWrite(&response_);
  }
  void finish(const Status& status) override {
    const auto keep = self();
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    finished_ = true;
    Finish(to_grpc(status));
  }
  void end(const Status& why) override {
    // First: the hub ends what it is told to forget, with a reason of its own. Afterwards this may
    // be gone.
    WatchHub& hub = hub_;
    const std::uint64_t id = id_;
    finish(why);
    hub.closed_by_peer(id);
  }
  void OnWriteDone(bool ok) override { hub_.written(id_, ok); }
  void OnCancel() override { end(absl::CancelledError("the watcher went away")); }
  void OnDone() override { const auto last = take_self(); }

 private:
  // The mutex that finish() holds must outlive it, although gRPC may call OnDone meanwhile.
  std::shared_ptr<WatchCall> self() {
    const std::lock_guard lock(self_mutex_);
    return self_;
  }
  std::shared_ptr<WatchCall> take_self() {
    const std::lock_guard lock(self_mutex_);
    return std::move(self_);
  }

  WatchHub& hub_;
  const std::uint64_t id_ = WatchHub::new_id();
  std::mutex mutex_, self_mutex_;
  grpc::ByteBuffer response_;
  bool finished_ = false;
  std::shared_ptr<WatchCall> self_;
};

void add_update(ApiService& service, Deps& deps) {
  service.unary<v1::UpdateWatchRequest, v1::UpdateWatchResponse>(
      "UpdateWatch", [&deps](const Call&, const v1::UpdateWatchRequest& request,
                             Reply<v1::UpdateWatchResponse> reply) {
        std::vector<WatchTopic> add, remove;
        for (const auto& wanted : request.add()) {
          ODT_FIELD(auto topic, parse_topic(wanted));
          add.push_back(topic);
        }
        for (const auto& wanted : request.remove()) {
          ODT_FIELD(auto topic, parse_topic(wanted));
          remove.push_back(topic);
        }
        deps.hub.update(request.watch_id(), std::move(add), std::move(remove), answer_done(reply));
      });
}

}  // namespace

ServicePtr make_watch_service(Deps& deps) {
  auto service = std::make_unique<ApiService>(
      deps.gate, *v1::WatchRequest::descriptor()->file()->FindServiceByName("WatchService"));
  service->server_stream<v1::WatchRequest, grpc::ByteBuffer>(
      "Watch", [&deps](const Call&, const v1::WatchRequest& request) {
        return WatchCall::start(deps.hub, request);
      });
  add_update(*service, deps);
  return service;
}

}  // namespace odt::api
