#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "api/errors.h"
#include "api/method.h"

namespace odt::api {

// A stream whose next message is asked for when the one before has gone out: it needs no more
// memory than one message, however slow the reader is.
template <typename Resp>
class PullStream final : public grpc::ServerWriteReactor<Resp>, public Endable {
 public:
  // Nothing: the end. Any thread.
  using Answer = std::function<void(Result<std::optional<Resp>>)>;
  // Called once for every message, never while another call is unanswered.
  using Next = std::function<void(Answer)>;

  static PullStream* start(Next next) {
    auto stream = std::make_shared<PullStream>(std::move(next));
    stream->self_ = stream;
    stream->pull();
    return stream.get();
  }
  explicit PullStream(Next next) : next_(std::move(next)) {}

  void OnWriteDone(bool ok) override {
    if (!ok) return finish(absl::CancelledError("the reader went away"));
    pull();
  }
  void OnCancel() override { finish(absl::CancelledError("the reader went away")); }
  void end(const Status& why) override { finish(why); }
  void OnDone() override { const auto last = take_self(); }

 private:
  void pull() {
    std::shared_ptr<PullStream> keep;
    {
      const std::lock_guard lock(self_mutex_);
      keep = self_;
    }
    if (!keep) return;
    next_([keep](Result<std::optional<Resp>> message) { keep->send(std::move(message)); });
  }
  void send(Result<std::optional<Resp>> message) {
    if (!message.ok()) return finish(message.status());
    if (!message->has_value()) return finish(absl::OkStatus());
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    message_ = std::move(**message);
    this->StartWrite(&message_);
  }
  void finish(const Status& status) {
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    finished_ = true;
    this->Finish(to_grpc(status));
  }
  std::shared_ptr<PullStream> take_self() {
    const std::lock_guard lock(self_mutex_);
    return std::move(self_);
  }

  Next next_;
  std::mutex mutex_, self_mutex_;
  Resp message_;
  bool finished_ = false;
  std::shared_ptr<PullStream> self_;  // until OnDone: gRPC holds only a pointer
};

}  // namespace odt::api
