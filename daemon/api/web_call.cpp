#include "api/web_call.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/client_callback.h>

#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "api/access.h"
#include "api/web_frame.h"

namespace odt::api {
namespace {

constexpr std::size_t kQueueBytes = 64u << 10;

// Slices keep short payloads inside themselves: copy while they live.
void append_frame(std::string& out, const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  append_web_header(out, buffer.Length());
  if (!buffer.Dump(&slices).ok()) return;
  for (const auto& slice : slices)
    out.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
}

}  // namespace

class WebCall::Reactor final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Reactor(const std::shared_ptr<grpc::Channel>& channel, std::function<void()> wake)
      : stub_(channel), wake_(std::move(wake)) {}

  void begin(Request request, std::shared_ptr<Reactor> self) {
    self_ = std::move(self);
    context_.AddMetadata(kBridgeTokenKey, request.bridge_token);
    context_.AddMetadata(kBridgePeerKey, request.peer);
    if (!request.cert_name.empty()) context_.AddMetadata(kBridgeCertKey, request.cert_name);
    if (!request.authorization.empty())
      context_.AddMetadata("authorization", request.authorization);
    if (!request.owner.empty()) context_.AddMetadata(kOwnerKey, request.owner);
    if (request.timeout.count() != 0)
      context_.set_deadline(
          std::chrono::system_clock::now() +
          std::chrono::duration_cast<std::chrono::system_clock::duration>(request.timeout));
    const grpc::Slice slice(request.message);
    request_ = grpc::ByteBuffer(&slice, 1);
    stub_.PrepareBidiStreamingCall(&context_, request.path, {}, this);
    AddHold();  // reads are started from outside of reactions
    StartWriteLast(&request_, grpc::WriteOptions());
    StartRead(&response_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    bool read_on = false;
    {
      const std::lock_guard lock(mutex_);
      if (ok) {
        append_frame(frames_, response_);
        read_on = frames_.size() < kQueueBytes;
        paused_ = !read_on;
      }
    }
    if (read_on)
      StartRead(&response_);
    else if (!ok)
      RemoveHold();
    wake_();
  }
  void OnDone(const grpc::Status& status) override {
    {
      const std::lock_guard lock(mutex_);
      std::multimap<std::string, std::string> trailing;
      for (const auto& [key, value] : context_.GetServerTrailingMetadata())
        trailing.insert({{key.data(), key.size()}, {value.data(), value.size()}});
      trailer_ = web_trailer(status, trailing);
      status_ = status;
    }
    wake_();
    const auto last = std::move(self_);
  }

  std::string take() {
    std::string frames;
    bool read_on = false;
    {
      const std::lock_guard lock(mutex_);
      frames = std::move(frames_);
      frames_.clear();
      read_on = paused_;
      paused_ = false;
    }
    if (read_on) StartRead(&response_);
    return frames;
  }
  std::optional<std::string> take_trailer() {
    const std::lock_guard lock(mutex_);
    if (!frames_.empty()) return std::nullopt;
    return trailer_;
  }
  std::optional<grpc::Status> status() {
    const std::lock_guard lock(mutex_);
    if (!frames_.empty()) return std::nullopt;
    return status_;
  }
  void cancel() {
    context_.TryCancel();
    take();  // a paused read would hold the call open
  }

 private:
  grpc::GenericStub stub_;
  const std::function<void()> wake_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_, response_;
  std::mutex mutex_;
  std::string frames_;
  std::optional<std::string> trailer_;
  std::optional<grpc::Status> status_;
  bool paused_ = false;
  std::shared_ptr<Reactor> self_;  // until OnDone
};

std::shared_ptr<WebCall> WebCall::start(const std::shared_ptr<grpc::Channel>& channel,
                                        Request request, std::function<void()> wake) {
  auto reactor = std::make_shared<Reactor>(channel, std::move(wake));
  reactor->begin(std::move(request), reactor);
  return std::shared_ptr<WebCall>(new WebCall(std::move(reactor)));
}

// Over already, this cancels nothing.
WebCall::~WebCall() { cancel(); }

std::string WebCall::take() { return reactor_->take(); }
std::optional<std::string> WebCall::take_trailer() { return reactor_->take_trailer(); }
std::optional<grpc::Status> WebCall::status() const { return reactor_->status(); }
void WebCall::cancel() { reactor_->cancel(); }

}  // namespace odt::api
