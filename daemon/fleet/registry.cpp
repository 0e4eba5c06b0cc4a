#include "fleet/registry.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "fleet/port_rules.h"

namespace odt::fleet {
namespace {

using std::chrono::steady_clock;
constexpr std::chrono::milliseconds kCountersEvery{500};  // where steps are all that moves

template <typename T>
std::optional<T> body_of(const std::vector<model::Event>& events) {
  for (const auto& event : events)
    if (const auto* body = std::get_if<T>(&event.body)) return *body;
  return std::nullopt;
}

}  // namespace

// Hears one session; told apart from later ones of the same board by its generation.
class Registry::Sink final : public session::SessionSink {
 public:
  Sink(Registry& registry, BoardUid uid, std::uint64_t generation)
      : registry_(registry), uid_(std::move(uid)), generation_(generation) {}

  void on_step(model::TelemetryFrame frame) override {
    registry_.listener_.on_step(uid_, std::move(frame));
  }
  void on_epoch(const model::EpochResult& epoch) override {
    registry_.listener_.on_epoch(uid_, epoch);
  }
  void on_job(const model::JobChanged& job) override { registry_.listener_.on_job(uid_, job); }
  void on_eval(const model::EvalReport& eval) override { registry_.listener_.on_eval(uid_, eval); }
  void on_nvm(const model::NvmCommitted& nvm) override { registry_.listener_.on_nvm(uid_, nvm); }
  void on_log(int level, const std::string& text) override {
    printed(model::ConsoleSource::kLog, level, text);
  }
  void on_console(const std::string& text) override {
    printed(model::ConsoleSource::kRaw, 2, text);
  }
  void on_status(model::BoardStatus status) override {
    registry_.boards_[uid_].status = status;
    registry_.dirty_ = true;
  }
  void on_closed(const Status& why) override {
    // Not from inside the session's own call: what follows may drop the session.
    asio::co_spawn(registry_.io_, registry_.shared_from_this()->board_down(uid_, generation_, why),
                   Detached{});
  }

 private:
  void printed(model::ConsoleSource source, int level, const std::string& text) {
    registry_.log(level, "board " + registry_.boards_[uid_].board.name + ": " + text);
    registry_.print(uid_, source, level, text);
  }

  Registry& registry_;
  BoardUid uid_;
  std::uint64_t generation_;
};

Registry::Registry(asio::io_context& io, const Clock& clock, store::ControlThread& control,
                   FleetOptions options, FleetListener& listener, LogFn log)
    : io_(io),
      clock_(clock),
      control_(control),
      options_(std::move(options)),
      listener_(listener),
      log_(std::move(log)),
      board_writes_(io),
      wake_(io),
      rescan_(io) {
  options_.link.host_id = control_.identity().gateway_id;
  if (!options_.make_runner)
    options_.make_runner = [this](std::string endpoint, session::LinkOptions link,
                                  session::LinkHost& host) {
      return session::make_link_runner(io_, clock_, std::move(endpoint), std::move(link), host);
    };
  if (!options_.make_listener)
    options_.make_listener = [this](std::string address, std::uint16_t port,
                                    session::LinkOptions link, session::LinkHost& host) {
      return session::make_tcp_listener(io_, clock_, address, port, std::move(link), host);
    };
}

Registry::~Registry() = default;

Status Registry::load() {
  store::ListQuery query;
  query.page_size = 1000;
  do {
    auto page = control_.call_sync([query](store::ControlStore& s) { return s.boards(query); });
    if (!page.ok()) return page.status();
    for (auto& board : page->items) {
      add_stored(std::move(board));
    }
    query.page_token = page->next_token;
  } while (!query.page_token.empty());
  do {
    auto page = control_.call_sync([query](store::ControlStore& s) { return s.ports(query); });
    if (!page.ok()) return page.status();
    for (auto& port : page->items) {
      PortEntry& entry = port_entry(port.path);
      entry.port = port;
      entry.port.state = model::PortState::kGone;
      entry.port.board_uid = {};
      entry.port.allowed = false;
    }
    query.page_token = page->next_token;
  } while (!query.page_token.empty());
  return absl::OkStatus();
}

std::shared_ptr<session::BoardSession> Registry::session(const BoardUid& uid) const {
  const auto it = boards_.find(uid);
  if (it == boards_.end() || it->second.admitting || !it->second.session ||
      !it->second.session->alive())
    return nullptr;
  return it->second.session;
}

const model::Board* Registry::find(const BoardUid& uid) const {
  const auto it = boards_.find(uid);
  return it == boards_.end() || !it->second.stored ? nullptr : &it->second.board;
}

bool Registry::on_session(const std::string& endpoint,
                          std::shared_ptr<session::BoardSession> session) {
  if (stopping_) return false;
  const BoardUid uid = session->hello().uid;
  if (uid.empty()) return false;
  const auto port = ports_.find(endpoint);
  if (port != ports_.end()) {
    auto& p = port->second.port;
    if (!p.expect_uid.empty() && p.expect_uid != uid) {
      p.state = model::PortState::kError;
      p.reason = {"UNEXPECTED_BOARD",
                  "board " + uid.hex() + " answers; expected " + p.expect_uid.hex(),
                  "Connect the expected board, or adopt the port again without a uid."};
      dirty_ = true;
      log(3, endpoint + ": " + p.reason.text);
      return false;
    }
    p.board_uid = uid;
  }
  asio::co_spawn(io_, shared_from_this()->admit(endpoint, std::move(session)), Detached{});
  return true;
}

asio::awaitable<void> Registry::admit(std::string endpoint,
                                      std::shared_ptr<session::BoardSession> session) {
  const auto self = shared_from_this();
  const BoardUid uid = session->hello().uid;
  if (!boards_.contains(uid) && boards_.size() >= options_.max_boards) {
    model::Reason reason{"TOO_MANY_BOARDS",
                         absl::StrCat("board ", uid.hex(), ": ", boards_.size(),
                                      " boards are known; limit ", options_.max_boards),
                         "Forget boards that are gone: odtctl board forget BOARD."};
    session->close(
        with_reason(absl::ResourceExhaustedError(reason.text), reason.code, reason.remedy));
    const BoardUid anybody;  // one line a place
    co_await warn(endpoint, std::move(reason), anybody);
    co_return;
  }
  {
    BoardEntry& entry = boards_[uid];
    const auto old = entry.session;
    if (old && old->alive() && entry.endpoint != endpoint) {
      const bool alive = co_await answers(old);
      if (alive && !stopping_) {
        session->close(absl::AlreadyExistsError("another link has a board with this uid"));
        co_await quarantine(endpoint, uid, boards_[uid].endpoint);
        co_return;
      }
    }
  }
  if (!session->alive() || stopping_) co_return;
  BoardEntry& entry = boards_[uid];  // map entries stay where they are
  const std::uint64_t generation = ++entry.generation;
  if (const auto old = std::exchange(entry.session, session); old && old != session) {
    old->set_sink(nullptr);
    if (old->alive()) old->close(absl::UnavailableError("the board answers on another link"));
    if (!entry.admitting)
      listener_.on_board_down(uid, absl::UnavailableError("the board has a new link"));
  }
  entry.endpoint = endpoint;
  entry.admitting = true;
  ++entry.session_count;
  apply_hello(entry, session->hello());
  auto guard = co_await board_writes_.lock();
  if (entry.generation != generation || stopping_) co_return;
  model::Board value = entry.board;
  value.meta.etag = 0;
  auto stored = co_await put_board(std::move(value), "odtd", {}, {});
  guard = {};
  if (entry.generation != generation || stopping_) co_return;
  if (!stored.ok()) {
    // Nothing is shown before it is committed: without the store there is no board.
    log(4, "board " + uid.hex() + ": " + stored.status().ToString());
    entry.session = nullptr;
    entry.admitting = false;
    session->close(stored.status());
    co_return;
  }
  entry.stored = true;
  entry.board.meta = stored->meta;
  entry.admitting = false;
  dirty_ = true;
  if (!session->alive()) {
    co_await board_down(uid, generation, absl::UnavailableError("the link is gone"));
    co_return;
  }
  entry.status = model::BoardStatus::kOnline;
  entry.sink = std::make_shared<Sink>(*this, uid, generation);
  log(2, "board " + entry.board.name + " is online at " + endpoint);
  print(uid, model::ConsoleSource::kHost, 2,
        absl::StrCat("online at ", endpoint, ", firmware ", entry.board.fw_version,
                     ", last reset: ", entry.board.reset_reason));
  judge_version(endpoint, session->hello());
  listener_.on_board_up(uid, session);
  session->set_sink(entry.sink.get());
}

void Registry::apply_hello(BoardEntry& entry, const model::HelloInfo& hello) {
  model::Board& b = entry.board;
  const std::int64_t now = clock_.now_us();
  if (!entry.stored && b.uid.empty()) {
    b.uid = hello.uid;
    b.name = free_name(hello);
    b.meta = {control_.identity().gateway_id, "odtd", now, 0};
  }
  b.board_type = sanitize_name(hello.board_type);
  b.core = sanitize_name(hello.core);
  b.fw_version = sanitize_name(hello.fw_version);
  b.rules_version = hello.rules_version;
  if (b.boot_id != hello.boot_id || b.boots_seen == 0) ++b.boots_seen;
  b.boot_id = hello.boot_id;
  b.caps = hello.caps;
  b.ram_bytes = hello.ram_bytes;
  b.max_layers = hello.max_layers;
  b.max_batch = hello.max_batch;
  b.mtu = hello.mtu;
  b.restored = hello.restored;
  b.status = model::BoardStatus::kOnline;
  b.last_seen_time_us = b.online_since_time_us = now;
  // Whole hashes come with GET_STATE; keep what is known where the first half agrees.
  const auto half = [](Hash& hash, const Bytes& first16) {
    if (first16.size() == 16 && std::equal(first16.begin(), first16.end(), hash.bytes.begin()))
      return;
    hash = Hash{};
    std::copy_n(first16.begin(), std::min<std::size_t>(16, first16.size()), hash.bytes.begin());
  };
  half(b.model_hash, hello.model_hash16);
  half(b.state_hash, hello.state_hash16);
  b.last_step = hello.last_step;
  b.reset_reason = sanitize_name(hello.reset_reason);
}

std::string Registry::free_name(const model::HelloInfo& hello) const {
  const std::string hex = hello.uid.hex();
  std::string type = sanitize_name(hello.board_type);
  if (type.empty()) type = "board";
  for (std::size_t n = 4; n <= hex.size(); n += 2) {
    std::string name = type + "-" + hex.substr(hex.size() - n);
    if (!name_taken(name, hello.uid)) return name;
  }
  return type + "-" + hex + "-" + std::to_string(boards_.size());
}

bool Registry::name_taken(const std::string& name, const BoardUid& except) const {
  return std::any_of(boards_.begin(), boards_.end(), [&](const auto& item) {
    return item.second.board.name == name && item.first != except;
  });
}

asio::awaitable<Result<model::Board>> Registry::put_board(model::Board value, std::string actor,
                                                          Uuid command_id, std::string request_id,
                                                          std::vector<store::Change> extra) {
  const auto self = shared_from_this();
  store::Batch batch;
  batch.actor = std::move(actor);
  batch.command_id = command_id;
  if (!request_id.empty()) {
    batch.request_id = std::move(request_id);
    batch.response = value.uid.str();
  }
  value.link = {};
  batch.changes.push_back(store::PutBoard{std::move(value)});
  for (auto& change : extra) batch.changes.push_back(std::move(change));
  // The row's own etag is checked only where a caller asked for it (edit).
  auto events = co_await control_.commit(std::move(batch));
  if (!events.ok()) co_return events.status();
  auto stored = body_of<model::Board>(*events);
  if (!stored) co_return absl::InternalError("the store gave no event for a board");
  co_return *stored;
}

asio::awaitable<void> Registry::board_down(BoardUid uid, std::uint64_t generation, Status why) {
  const auto self = shared_from_this();
  BoardEntry& entry = boards_[uid];
  if (entry.generation != generation || !entry.session) co_return;
  entry.session->set_sink(nullptr);
  entry.session = nullptr;
  entry.sink = nullptr;
  entry.status = model::BoardStatus::kOffline;
  entry.board.status = model::BoardStatus::kOffline;
  entry.board.last_seen_time_us = clock_.now_us();
  entry.board.online_since_time_us = 0;
  dirty_ = true;
  for (auto& [path, port] : ports_)
    if (port.port.board_uid == uid) port.port.board_uid = {};
  if (stopping_) co_return;
  log(2, "board " + entry.board.name + " is offline: " + std::string(why.message()));
  print(uid, model::ConsoleSource::kHost, 3, absl::StrCat("offline: ", why.message()));
  listener_.on_board_down(uid, why);
  auto guard = co_await board_writes_.lock();
  if (entry.generation != generation) co_return;  // back again meanwhile
  model::Board value = entry.board;
  value.meta.etag = 0;
  auto stored = co_await put_board(std::move(value), "odtd", {}, {});
  if (stored.ok())
    entry.board.meta = stored->meta;
  else
    log(4, "board " + entry.board.name + ": " + stored.status().ToString());
}

asio::awaitable<Status> Registry::forget(CallContext ctx, BoardUid uid) {
  const auto self = shared_from_this();
  auto guard = co_await board_writes_.lock();
  const auto it = boards_.find(uid);
  if (it == boards_.end() || !it->second.stored)
    co_return absl::NotFoundError("board " + uid.hex() + " is not known");
  if (it->second.session)
    co_return with_reason(
        absl::FailedPreconditionError("board " + it->second.board.name + " is online"),
        "BOARD_ONLINE", "Unplug it or release its port first.");
  store::Batch batch;
  batch.actor = ctx.actor;
  batch.command_id = ctx.command_id;
  batch.request_id = ctx.request_id;
  batch.response = uid.str();
  batch.changes.push_back(store::Trash{"board", uid.str()});
  auto events = co_await control_.commit(std::move(batch));
  if (!events.ok()) co_return events.status();
  if (auto now = boards_.find(uid);
      now != boards_.end() && !now->second.session && !now->second.admitting)
    boards_.erase(now);
  publish_view();
  co_return absl::OkStatus();
}

void Registry::remember(model::Board board) {
  if (boards_.contains(board.uid)) return;
  add_stored(std::move(board));
  publish_view();
}

void Registry::add_stored(model::Board board) {
  BoardEntry& entry = boards_[board.uid];
  entry.board = std::move(board);
  entry.board.status = model::BoardStatus::kOffline;
  entry.board.online_since_time_us = 0;
  entry.board.run_id = Uuid{};
  entry.stored = true;
}

void Registry::note_state(const BoardUid& uid, const model::DeviceState& state) {
  const auto it = boards_.find(uid);
  if (it == boards_.end()) return;
  auto& board = it->second.board;
  const auto set = [this](auto& field, const auto& value) {
    dirty_ = dirty_ || field != value;
    field = value;
  };
  set(board.model_hash, state.model_hash);
  if (!state.state_hash.is_zero()) set(board.state_hash, state.state_hash);
  set(board.nvm_sequence, state.nvm_sequence);
  set(board.nvm_step, state.nvm_step);
  set(board.restored, state.restored);
  board.last_step = state.step;
  counted_ = true;
}

void Registry::note_commit(const BoardUid& uid, std::uint32_t sequence, std::uint32_t step) {
  const auto it = boards_.find(uid);
  if (it == boards_.end()) return;
  it->second.board.nvm_sequence = sequence;
  it->second.board.nvm_step = step;
  dirty_ = true;
}

void Registry::note_step(const BoardUid& uid, std::uint32_t step) {
  const auto it = boards_.find(uid);
  if (it == boards_.end()) return;
  it->second.board.last_step = step;
  counted_ = true;
}

void Registry::set_active_run(const BoardUid& uid, const Uuid& run) {
  const auto it = boards_.find(uid);
  if (it == boards_.end()) return;
  it->second.board.run_id = run;
  dirty_ = true;
}

void Registry::set_lease(const BoardUid& uid, const model::Lease& lease) {
  const auto it = boards_.find(uid);
  if (it == boards_.end()) return;
  model::Lease& now = it->second.board.lease;
  // Its expiry moves all the time: only who holds it is news.
  if (now.holder != lease.holder || now.what != lease.what || now.since_us != lease.since_us)
    dirty_ = true;
  now = lease;
}

model::Board Registry::live(const BoardEntry& entry) const {
  model::Board board = entry.board;
  board.status = model::BoardStatus::kOffline;
  if (entry.session && !entry.admitting && entry.session->alive()) {
    const auto age = clock_.steady_now() - entry.session->last_seen();
    board.status = entry.status;
    if (board.status == model::BoardStatus::kOnline && age > options_.link.suspect_after)
      board.status = model::BoardStatus::kSuspect;
    board.last_seen_time_us =
        clock_.now_us() - std::chrono::duration_cast<std::chrono::microseconds>(age).count();
    board.link = entry.session->stats();
    board.link.endpoint = entry.endpoint;
  }
  board.link.session_count = entry.session_count;
  if (!board.reservation.active(clock_.now_us())) board.reservation = {};
  if (options_.complete) options_.complete(board);
  return board;
}

std::vector<model::Board> Registry::boards() const {
  std::vector<const BoardEntry*> by_name;
  by_name.reserve(boards_.size());
  for (const auto& [uid, entry] : boards_)
    if (entry.stored) by_name.push_back(&entry);
  std::sort(by_name.begin(), by_name.end(),
            [](const auto* a, const auto* b) { return a->board.name < b->board.name; });
  std::vector<model::Board> out;
  out.reserve(by_name.size());
  for (const BoardEntry* entry : by_name) out.push_back(live(*entry));
  return out;
}

void Registry::publish_view() {
  dirty_ = counted_ = false;
  listener_.on_view(boards(), ports());
}

asio::awaitable<void> Registry::view_loop() {
  const auto self = shared_from_this();
  auto last = steady_clock::time_point{};
  while (!stopping_) {
    const auto now = steady_clock::now();
    const auto age = now - last;
    if (dirty_ || (counted_ && age >= kCountersEvery) || age >= std::chrono::seconds(1)) {
      last = now;
      publish_view();
    }
    co_await wake_.wait_for(options_.view_interval);
  }
}

}  // namespace odt::fleet
