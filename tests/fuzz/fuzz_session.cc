// The host's end of the link against a board that sends anything: the daemon's own runner, session
// and codec in virtual time. Input: byte 0 the first operation, byte 1 bit 0 a line that damages
// bytes, bit 1 no sound HELLO_ACK is given; then records (u8 mode, u8 type, u16 size, bytes), each
// sent when the host has nothing to do: mode bits 0-1 the frame's id (of the last request, of the
// last transfer, of the last PING, the first 4 bytes), bit 2 without a session, bit 3 the bytes as
// they are, bit 4 after 300 ms. Oracle: every operation ends, the runner stops, no memory is lost.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "odt/device/v1/device.pb.h"
#include "session/link_runner.h"
#include "support/virtual/virtual_time.h"
#include "wire/frame_stream.h"

namespace {

using namespace odt;
namespace pb = odt::device::v1;

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kEnd = 3600 * kSecond;  // a board may say ACCEPTED for half an hour

void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "violated: %s\n", what);
  std::abort();
}

// What the host writes is looked at, what it reads is the input.
class HostileBoard {
 public:
  HostileBoard(const std::uint8_t* data, std::size_t size, bool greets)
      : data_(data),
        size_(size),
        greets_(greets),
        stream_({[this](wire::Frame f) { on_frame(std::move(f)); }, [](const std::string&) {},
                 [](const char*) { require(false, "the host sends valid frames"); }}) {}

  void from_host(std::string_view bytes) { stream_.feed(bytes); }
  bool answers() const { return !greeting_.empty(); }
  bool over() const { return size_ < 4 && greeting_.empty(); }
  bool waits() const { return greeting_.empty() && size_ >= 4 && (data_[0] & 16) != 0 && !waited_; }
  void waited() { waited_ = true; }

  std::string next() {
    if (!greeting_.empty()) return std::exchange(greeting_, {});
    waited_ = false;
    if (size_ < 4) return {};
    const std::uint8_t mode = data_[0], type = data_[1];
    std::size_t n = data_[2] | data_[3] << 8;
    n = std::min(n, size_ - 4);
    std::string body(reinterpret_cast<const char*>(data_ + 4), n);
    data_ += 4 + n;
    size_ -= 4 + n;
    if ((mode & 8) != 0) return body;
    wire::Frame frame{static_cast<std::uint8_t>(type | 0x80), session_, request_, {}};
    if ((mode & 3) == 1) frame.id = transfer_;
    if ((mode & 3) == 2) frame.id = ping_;
    if ((mode & 3) == 3 && body.size() >= 4) {
      std::memcpy(&frame.id, body.data(), 4);
      body.erase(0, 4);
    }
    if ((mode & 4) != 0) frame.session = 0;
    if (body.size() > FRAME_MTU_MAX) body.resize(FRAME_MTU_MAX);
    frame.payload = std::move(body);
    return wire::encode_frame(frame);
  }

 private:
  void on_frame(wire::Frame f) {
    require((f.type & 0x80) == 0, "of its own direction");
    if (f.type == FRAME_PING) ping_ = f.id;
    if (f.type == FRAME_HELLO) greet(f);
    if (f.type != FRAME_REQ) return;
    request_ = f.id;
    pb::Request request;
    require(request.ParseFromString(f.payload), "requests that can be read");
    if (request.has_xfer_open()) transfer_ = request.xfer_open().xfer_id();
  }
  void greet(const wire::Frame& f) {
    session_ = f.session;
    if (!greets_) return;
    pb::HelloAck ack;
    ack.set_proto(1);
    ack.set_uid("hostile1");
    ack.set_boot_id(7);
    ack.set_mtu(576);
    ack.set_rx_window_bytes(2048);
    ack.set_caps(0xFFFFFF);
    ack.set_max_layers(16);
    ack.set_max_batch(64);
    greeting_ = wire::encode_frame({FRAME_HELLO_ACK, f.session, f.id, ack.SerializeAsString()});
  }

  const std::uint8_t* data_;
  std::size_t size_;
  bool greets_, waited_ = false;
  wire::FrameStream stream_;
  std::string greeting_;
  std::uint16_t session_ = 0;
  std::uint32_t request_ = 0, transfer_ = 0, ping_ = 0;
};

class Link final : public link::ByteLink {
 public:
  Link(asio::io_context& io, HostileBoard& board, bool lossy)
      : board_(board), lossy_(lossy), readable_(io) {}
  asio::awaitable<Result<std::size_t>> read(asio::mutable_buffer buffer) override {
    while (inbox_.empty() && !closed_) {
      readable_.expires_at(std::chrono::steady_clock::time_point::max());
      boost::system::error_code ignored;
      co_await readable_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    if (inbox_.empty()) co_return absl::UnavailableError("closed");
    const std::size_t n = std::min(buffer.size(), inbox_.size());
    std::copy_n(inbox_.begin(), n, static_cast<char*>(buffer.data()));
    inbox_.erase(0, n);
    co_return n;
  }
  asio::awaitable<Status> write(asio::const_buffer buffer) override {
    if (closed_) co_return absl::UnavailableError("closed");
    board_.from_host({static_cast<const char*>(buffer.data()), buffer.size()});
    co_return absl::OkStatus();
  }
  void close() override {
    closed_ = true;
    readable_.cancel();
  }
  bool lossy() const override { return lossy_; }
  const std::string& name() const override { return name_; }
  bool deliver(const std::string& bytes) {
    if (closed_) return false;
    inbox_ += bytes;
    readable_.cancel();
    return true;
  }

 private:
  HostileBoard& board_;
  bool lossy_, closed_ = false;
  asio::steady_timer readable_;
  std::string inbox_, name_ = "hostile";
};

struct Sink final : session::SessionSink {
  void on_step(model::TelemetryFrame) override {}
  void on_epoch(const model::EpochResult&) override {}
  void on_job(const model::JobChanged&) override {}
  void on_eval(const model::EvalReport&) override {}
  void on_log(int, const std::string& text) override {
    for (const char c : text)
      require(static_cast<unsigned char>(c) >= ' ' && c != 127, "log lines without control codes");
  }
  void on_status(model::BoardStatus) override {}
  void on_closed(const Status&) override {}
};

using Session = std::shared_ptr<session::BoardSession>;

asio::awaitable<void> operate(Session s, unsigned op) {
  const Uuid run = *Uuid::from_bytes(std::string(16, 'r'));
  const auto content = std::make_shared<const std::string>(2000, 'x');
  switch (op % 22) {
    case 0: {
      (void)co_await s->get_state(true);
      break;
    }
    case 1: {
      (void)co_await s->receive(model::Resource::kWeights);
      break;
    }
    case 2: {
      (void)co_await s->send(model::Resource::kSamples, 1, content);
      break;
    }
    case 3: {
      session::BoardSession::StartRun start;
      start.run_id = run;
      start.attempt = 1;
      start.spec.hyper.mu_weight = {1, 1, 1};
      (void)co_await s->start_run(start);
      break;
    }
    case 4: {
      (void)co_await s->train_step(run, 1, 0, 5, 0);
      break;
    }
    case 5: {
      (void)co_await s->get_epoch(0);
      break;
    }
    case 6: {
      (void)co_await s->evaluate(9, model::SampleRole::kNone, 8);
      break;
    }
    case 7: {
      (void)co_await s->eval_step(9, 0, 5, 0);
      break;
    }
    case 8: {
      (void)co_await s->infer();
      break;
    }
    case 9: {
      (void)co_await s->get_windows(0);
      break;
    }
    case 10: {
      (void)co_await s->nvm_commit(Hash{});
      break;
    }
    case 11: {
      (void)co_await s->end_epoch(run, 1, 0, 9);
      break;
    }
    case 12: {
      (void)co_await s->get_eval(9);
      break;
    }
    case 13: {
      (void)co_await s->job_control(run, session::BoardSession::Action::kStop);
      break;
    }
    case 14: {
      (void)co_await s->ack_epoch(run, 1, 0);
      break;
    }
    case 15: {
      const model::Steer steer;
      (void)co_await s->set_precision(run, 1, steer);
      break;
    }
    case 16: {
      const Hash weights{};
      (void)co_await s->best_kept(run, 1, weights);
      break;
    }
    case 17: {
      model::CaptureSettings settings;
      (void)co_await s->capture_start(settings);
      break;
    }
    case 18: {
      std::string steps = "steps";
      (void)co_await s->feed_sensor(0, std::move(steps));
      break;
    }
    case 19: {
      (void)co_await s->label_window(1, 1, model::SampleRole::kNone);
      break;
    }
    case 20: {
      (void)co_await s->nvm_status(true);
      break;
    }
    default: {
      (void)co_await s->identify(1);
      break;
    }
  }
}

class Host final : public session::LinkHost {
 public:
  Host(asio::io_context& io, HostileBoard& board, unsigned first)
      : io_(io), board_(board), next_(first) {}
  bool on_session(const std::string&, Session s) override {
    s->set_sink(&sink_);
    ++working_;
    asio::co_spawn(io_, work(std::move(s)), [this](std::exception_ptr e) {
      require(!e, "no exception");
      --working_;
    });
    return true;
  }
  void on_port_state(const std::string&, model::PortState, const model::Reason&) override {}
  bool idle() const { return working_ == 0; }

 private:
  asio::awaitable<void> work(Session s) {
    while (s->alive() && !board_.over()) co_await operate(s, next_++);
    s->set_sink(nullptr);
  }
  asio::io_context& io_;
  HostileBoard& board_;
  Sink sink_;
  unsigned next_;
  int working_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  test::VirtualTime time(1);
  HostileBoard board(data + 2, size - 2, (data[1] & 2) == 0);
  asio::io_context io(1);
  auto keep = asio::make_work_guard(io);
  std::weak_ptr<Link> link;
  session::LinkOptions options;
  const bool lossy = (data[1] & 1) == 0;
  options.open = [&](const std::string&) -> Result<std::shared_ptr<link::ByteLink>> {
    auto opened = std::make_shared<Link>(io, board, lossy);
    link = opened;
    return std::shared_ptr<link::ByteLink>(opened);
  };
  // The host waits: the next record comes, or time passes.
  time.world = [&](std::int64_t until) {
    if (board.waits()) {
      board.waited();
      return time.set(std::min(until, time.elapsed_us() + 300'000));
    }
    const auto open = link.lock();
    if (board.over() || !open) return time.set(until);
    if (!open->deliver(board.next())) time.set(until);
  };
  Host host(io, board, data[0]);
  auto runner = session::make_link_runner(io, time, "tcp:hostile:1", options, host);
  runner->start();
  const auto run_until = [&](auto done, const char* what) {
    const std::int64_t limit = time.elapsed_us() + kEnd;
    while (!done()) {
      require(time.elapsed_us() < limit, what);
      io.run_one();
    }
  };
  run_until([&] { return board.over(); }, "the runner opens its link again and again");
  run_until([&] { return host.idle(); }, "every operation ends");
  bool stopped = false;
  asio::co_spawn(io, runner->stop(), [&](std::exception_ptr) { stopped = true; });
  run_until([&] { return stopped && host.idle(); }, "the runner stops");
  return 0;
}
