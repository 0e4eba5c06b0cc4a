#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "session/async.h"
#include "session/backoff.h"
#include "session/board_session.h"
#include "session/event_order.h"
#include "session/frame_pipe.h"
#include "session/keepalive.h"
#include "session/link_runner.h"
#include "session/log_limiter.h"
#include "session/rto.h"
#include "session/windows.h"
#include "wire/device_codec.h"

namespace odt::session {

// What outlives one session of an endpoint: where the events of a boot were read up to, and which
// transfer was broken off. Lost with the daemon; both only save work.
struct EndpointMemory {
  static constexpr std::size_t kMaxBoots = 256;

  struct Boot {
    BoardUid uid;
    std::uint64_t boot_id = 0;
    auto operator<=>(const Boot&) const = default;
  };
  struct Partial {
    model::Resource resource{};
    std::uint32_t index = 0, size = 0, crc32 = 0, batch_id = 0, acked = 0;
  };
  std::map<Boot, std::uint32_t> next_event;
  std::map<Boot, Partial> partial;
  std::uint32_t sessions = 0;
};

// BoardSession over a FramePipe. Shared, because its loops, its operations and the pipe outlive
// whoever starts them.
class SessionImpl final : public BoardSession,
                          public FramePipe::Handler,
                          public std::enable_shared_from_this<SessionImpl> {
 public:
  SessionImpl(asio::io_context& io, const Clock& clock, LinkOptions options,
              std::shared_ptr<FramePipe> pipe, std::shared_ptr<EndpointMemory> memory,
              std::string endpoint, Random random);
  ~SessionImpl() override;

  // HELLO, `tries` times. Errors: DEADLINE_EXCEEDED (no answer), FAILED_PRECONDITION (no protocol
  // in common, MTU out of range), UNAVAILABLE (link gone).
  asio::awaitable<Status> connect(int tries);
  // After connect() and the host's consent: keeps the session alive from here on.
  void run();
  asio::awaitable<Status> wait_closed();
  // The end of this session is not the end of the link: whoever owns the pipe goes on with it.
  void leave_link_open() { owns_link_ = false; }

  // BoardSession
  const model::HelloInfo& hello() const override { return hello_; }
  bool alive() const override { return connected_ && !closed_; }
  model::LinkStats stats() const override;
  SteadyTime last_seen() const override { return last_seen_; }
  void set_sink(SessionSink* sink) override;
  void close(const Status& why) override;
  asio::awaitable<Result<model::DeviceState>> get_state(bool with_hash) override;
  asio::awaitable<Status> send(model::Resource resource, std::uint32_t index,
                               std::shared_ptr<const std::string> content, std::uint32_t batch_id,
                               Hash expect, Progress progress) override;
  asio::awaitable<Result<Received>> receive(model::Resource resource, std::uint32_t index) override;
  asio::awaitable<Result<model::DeviceState>> start_run(StartRun start) override;
  asio::awaitable<Result<model::TelemetryFrame>> train_step(Uuid run, std::uint32_t attempt,
                                                            std::uint32_t step,
                                                            std::uint32_t batch_id,
                                                            std::uint32_t slot) override;
  asio::awaitable<Status> end_epoch(Uuid run, std::uint32_t attempt, std::uint32_t epoch,
                                    std::uint32_t eval_id) override;
  asio::awaitable<Status> ack_epoch(Uuid run, std::uint32_t attempt, std::uint32_t epoch) override;
  asio::awaitable<Status> get_epoch(std::uint32_t epoch) override;
  asio::awaitable<Status> job_control(Uuid run, Action action) override;
  asio::awaitable<Status> set_precision(Uuid run, std::uint32_t attempt,
                                        model::Steer steer) override;
  asio::awaitable<Status> best_kept(Uuid run, std::uint32_t attempt, Hash weights) override;
  asio::awaitable<Result<model::EvalReport>> evaluate(std::uint32_t eval_id, model::SampleRole role,
                                                      std::uint32_t total) override;
  asio::awaitable<Result<model::EvalReport>> eval_step(std::uint32_t eval_id, std::uint32_t seq,
                                                       std::uint32_t batch_id,
                                                       std::uint32_t slot) override;
  asio::awaitable<Result<model::EvalReport>> get_eval(std::uint32_t eval_id) override;
  asio::awaitable<Result<model::InferReport>> infer() override;
  Captured capture_start(model::CaptureSettings settings) override;
  Captured capture_stop() override;
  Captured get_windows(std::uint32_t from_id) override;
  Captured label_window(std::uint32_t window_id, std::uint32_t label,
                        model::SampleRole keep) override;
  Captured feed_sensor(std::uint64_t first, std::string steps) override;
  asio::awaitable<Status> identify(std::uint32_t seconds) override;
  asio::awaitable<Status> reset() override;
  asio::awaitable<Result<model::NvmInfo>> nvm_commit(Hash expect) override;
  asio::awaitable<Result<model::NvmInfo>> nvm_erase() override;
  asio::awaitable<Result<model::NvmInfo>> nvm_status(bool restore) override;

  // FramePipe::Handler
  void on_frame(const wire::Frame& frame) override;
  void on_console(const std::string& line) override;
  void on_pipe_closed(const Status& why) override;

 private:
  // The one outstanding request.
  struct Pending {
    bool active = false;
    std::uint32_t id = 0;
    std::optional<Result<wire::Answer>> answer;
  };
  // The one transfer under way.
  struct Transfer {
    bool active = false;
    std::uint32_t id = 0;
    std::deque<wire::Window> windows;
    std::deque<wire::Chunk> chunks;
  };

  // session_hello.cpp: HELLO, keepalive, end
  asio::awaitable<Status> say_hello(int tries);
  asio::awaitable<Status> exchange_hello(int tries);
  Status accept_hello(const wire::HelloAck& ack);
  asio::awaitable<void> keepalive_loop(std::shared_ptr<SessionImpl> self);
  void start_rehello();
  void on_hello_ack(const wire::Frame& frame);
  void on_need_hello(const wire::Frame& frame);
  void on_busy(const wire::Frame& frame);
  void on_pong(const wire::Frame& frame);
  void set_status(model::BoardStatus status);
  void finish(const Status& why);
  void end_pipe(const Status& why);
  Status gone() const;
  void spawn(asio::awaitable<void> task);

  // session_impl.cpp: frames, requests
  void on_response(const wire::Frame& frame);
  void on_link_err(const wire::Frame& frame);
  // One REQ until its RSP. Errors: UNAVAILABLE (session over), DEADLINE_EXCEEDED (board lives but
  // does not answer), RESOURCE_EXHAUSTED (request over the MTU), and the board's own.
  asio::awaitable<Result<wire::Answer>> exchange(std::string payload);
  asio::awaitable<bool> wait_answer(SteadyTime sent, std::uint32_t incarnation);
  // As exchange(); asks again while the board answers ACCEPTED.
  asio::awaitable<Result<wire::Answer>> call(std::string payload);
  asio::awaitable<Status> call_status(std::string payload);
  Captured capture(std::string request);
  std::uint32_t commit_id();

  // session_events.cpp
  void on_event(const wire::Frame& frame);
  void on_log(const wire::Frame& frame);
  void begin_events();
  void start_refill(bool at_once = false);
  asio::awaitable<void> refill(std::shared_ptr<SessionImpl> self, bool at_once);
  void deliver(std::vector<EventOrder::Item> items);
  void deliver_payload(std::uint32_t id, std::string_view payload);
  void remember_events();
  void deliver_event(std::uint32_t id, wire::EventBody&& body);
  void log_line(int level, const std::string& text, bool raw = false);

  // session_transfer.cpp
  asio::awaitable<Status> send_once(wire::XferOpen open, std::shared_ptr<const std::string> content,
                                    Progress progress);
  asio::awaitable<Status> push_window(wire::XferOpened opened, std::uint32_t xfer_id,
                                      std::shared_ptr<const std::string> content, Progress progress,
                                      std::uint32_t* acked);
  asio::awaitable<Status> receive_once(wire::XferOpen open, Received* out);
  asio::awaitable<Status> pull_window(wire::XferOpened opened, std::uint32_t xfer_id,
                                      Received* out);
  Status check_opened(const wire::XferOpened& opened, const std::string& content,
                      const wire::XferOpen& open) const;
  SteadyTime transfer_deadline(int timeouts) const;
  std::uint32_t chunk_limit(std::uint32_t chunk) const;
  void begin_transfer(std::uint32_t id);
  void end_transfer();

  EndpointMemory::Boot boot() const { return {hello_.uid, hello_.boot_id}; }
  SteadyTime now() const { return std::chrono::steady_clock::now(); }

  asio::io_context& io_;
  const Clock& clock_;
  LinkOptions options_;
  std::shared_ptr<FramePipe> pipe_;
  std::shared_ptr<EndpointMemory> memory_;
  std::string endpoint_;
  Random random_;

  model::HelloInfo hello_;
  std::uint32_t mtu_ = 0;
  std::uint16_t hello_session_ = 0;  // of the HELLO under way; 0: none
  std::optional<wire::HelloAck> hello_ack_;
  Signal hello_signal_, keepalive_signal_, closed_signal_;
  bool connected_ = false, closed_ = false, running_ = false, rehello_ = false;
  bool owns_link_ = true;
  std::uint32_t incarnation_ = 0;  // counts HELLO_ACKs: a request of an earlier one is sent anew
  Status closed_why_;
  SteadyTime last_seen_, resumed_at_, ping_sent_;
  Keepalive keepalive_;
  model::BoardStatus status_ = model::BoardStatus::kUnspecified;

  FifoLock request_lock_, transfer_lock_;
  Pending pending_;
  Signal pending_signal_, progress_signal_;
  std::uint32_t next_request_ = 1, next_transfer_ = 1, next_ping_ = 1;
  Rto rto_;
  std::uint64_t retries_ = 0, gaps_ = 0;

  Transfer transfer_;
  Signal transfer_signal_;

  SessionSink* sink_ = nullptr;
  EventOrder order_;
  Signal events_signal_;
  bool events_begun_ = false, refilling_ = false;
  std::optional<std::uint32_t> read_to_;  // events before it are delivered
  std::optional<std::uint32_t> wanted_epoch_;
  Uuid run_;
  std::uint32_t attempt_ = 0;
  LogLimiter logs_;
  static constexpr std::size_t kEarlyLines = 32;
  std::deque<std::string> early_;  // of the console, before there is a sink
};

}  // namespace odt::session
