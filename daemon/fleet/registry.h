#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/call.h"
#include "fleet/async.h"
#include "fleet/fleet_options.h"
#include "link/port_watch.h"
#include "session/board_session.h"
#include "session/link_runner.h"
#include "store/store_thread.h"

namespace odt::fleet {

// Hears of boards. On the links thread; must not block.
class FleetListener {
 public:
  virtual ~FleetListener() = default;
  // The board is admitted (its row is committed); its events follow.
  virtual void on_board_up(const BoardUid& uid, std::shared_ptr<session::BoardSession> session) = 0;
  virtual void on_board_down(const BoardUid& uid, const Status& why) = 0;
  virtual void on_step(const BoardUid& uid, model::TelemetryFrame frame) = 0;
  virtual void on_epoch(const BoardUid& uid, const model::EpochResult& epoch) = 0;
  virtual void on_job(const BoardUid& uid, const model::JobChanged& job) = 0;
  virtual void on_eval(const BoardUid& uid, const model::EvalReport& eval) = 0;
  virtual void on_nvm(const BoardUid&, const model::NvmCommitted&) {}
  // Live state, at most once per FleetOptions::view_interval.
  virtual void on_view(std::vector<model::Board> boards, std::vector<model::Port> ports) = 0;
};

using LogFn = std::function<void(int level, const std::string& text)>;

struct BoardEdit {
  std::int64_t etag = 0;  // 0: do not check
  std::optional<std::string> name, place;
  std::map<std::string, std::string> set_labels;
  std::vector<std::string> remove_labels;
};

// Boards by uid and the endpoints that lead to them. All on the links thread but load() and
// listen(). Every change of a board's row goes through here.
class Registry final : public session::LinkHost, public std::enable_shared_from_this<Registry> {
 public:
  Registry(asio::io_context& io, const Clock& clock, store::ControlThread& control,
           FleetOptions options, FleetListener& listener, LogFn log);
  ~Registry() override;

  // Blocking, before anything else. Errors: the store's.
  Status load();
  // Binds the listening ports. Errors: ALREADY_EXISTS (in use), INVALID_ARGUMENT (address).
  Status listen();
  // Starts listeners, dials, allowed and adopted ports, rescans and views.
  void start();
  asio::awaitable<void> stop();  // BYE to every board; no listener call follows

  std::shared_ptr<session::BoardSession> session(const BoardUid& uid) const;  // null: offline
  const model::Board* find(const BoardUid& uid) const;                        // null: unknown

  // Errors: NOT_FOUND, ABORTED (etag), ALREADY_EXISTS (name, place), INVALID_ARGUMENT.
  asio::awaitable<Result<model::Board>> edit(CallContext ctx, BoardUid uid, BoardEdit edit);
  // Changes boards in one commit. edit: what is stored of a board but name and uid, and changes
  // that go with it; an error leaves everything as it is. Errors: NOT_FOUND, edit's, the store's.
  using Edit =
      std::function<Result<std::vector<store::Change>>(const std::vector<model::Board*>& boards)>;
  asio::awaitable<Result<std::vector<model::Board>>> change(CallContext ctx,
                                                            std::vector<BoardUid> boards,
                                                            Edit edit);
  std::vector<BoardUid> reserved() const;
  // Errors: NOT_FOUND, FAILED_PRECONDITION (online or with an active run).
  asio::awaitable<Status> forget(CallContext ctx, BoardUid uid);
  // A board that the store has again; nothing where it is known.
  void remember(model::Board board);
  // Errors: INVALID_ARGUMENT (neither an absolute path nor "tcp:host:port").
  asio::awaitable<Result<model::Port>> adopt(CallContext ctx, std::string path, std::uint32_t baud,
                                             BoardUid expect_uid);
  // Of an adopted device also by the path that it has moved to; the adopted port comes back.
  // Errors: NOT_FOUND, FAILED_PRECONDITION (opened by the configuration).
  asio::awaitable<Result<model::Port>> release(CallContext ctx, std::string path);
  void rescan();
  // A view now: who has just changed something finds it in the next list.
  void publish_view();
  // Something that FleetOptions::complete adds has changed.
  void touch() { dirty_ = true; }

  // What the run layer learns; live, stored with the next transition.
  void note_state(const BoardUid& uid, const model::DeviceState& state);
  void note_step(const BoardUid& uid, std::uint32_t step);
  void note_commit(const BoardUid& uid, std::uint32_t sequence, std::uint32_t step);
  void set_active_run(const BoardUid& uid, const Uuid& run);  // zero: none
  void set_lease(const BoardUid& uid, const model::Lease& lease);

  std::vector<model::Board> boards() const;  // live view, by name
  std::vector<model::Port> ports() const;    // by path

  // LinkHost.
  bool on_session(const std::string& endpoint,
                  std::shared_ptr<session::BoardSession> session) override;
  void on_port_state(const std::string& endpoint, model::PortState state,
                     const model::Reason& reason) override;
  void on_refused(const std::string& endpoint, const model::Reason& reason) override;

 private:
  class Sink;
  struct BoardEntry {
    model::Board board;  // as stored, plus what is known live
    bool stored = false;
    std::shared_ptr<session::BoardSession> session;
    std::shared_ptr<Sink> sink;
    std::string endpoint;
    model::BoardStatus status = model::BoardStatus::kOffline;
    std::uint64_t generation = 0;  // of the session
    std::uint32_t session_count = 0;
    bool admitting = false;
  };
  struct PortEntry {
    model::Port port;
    std::unique_ptr<session::LinkRunner> runner;
    session::LinkOptions link;
    bool present = false;     // seen by the last scan
    bool configured = false;  // tcp_dial
  };
  // A duplicate that dials in, which has no port of its own: shown while it comes again.
  struct Turned {
    model::Port port;
    std::chrono::steady_clock::time_point seen;
  };

  asio::awaitable<void> admit(std::string endpoint, std::shared_ptr<session::BoardSession> session);
  asio::awaitable<bool> answers(std::shared_ptr<session::BoardSession> session);
  asio::awaitable<void> quarantine(std::string endpoint, BoardUid uid, std::string held_by);
  void judge_version(const std::string& endpoint, const model::HelloInfo& hello);
  // A warning in the store and the log; of one place, code and board once in ten minutes.
  asio::awaitable<void> warn(std::string endpoint, model::Reason reason, BoardUid uid);
  asio::awaitable<void> board_down(BoardUid uid, std::uint64_t generation, Status why);
  asio::awaitable<Result<model::Board>> put_board(model::Board value, std::string actor,
                                                  Uuid command_id, std::string request_id,
                                                  std::vector<store::Change> extra = {});
  void add_stored(model::Board board);
  void apply_hello(BoardEntry& entry, const model::HelloInfo& hello);
  std::string free_name(const model::HelloInfo& hello) const;
  bool name_taken(const std::string& name, const BoardUid& except) const;
  Status check_place(const std::string& place, const BoardUid& except) const;
  model::Board live(const BoardEntry& entry) const;

  void start_runner(PortEntry& entry);
  void stop_runner(PortEntry& entry);
  void scan_once();
  std::vector<model::Port> seen_now() const;
  void merge_scan(const std::vector<model::Port>& seen);
  PortEntry* adopted_elsewhere(const model::Port& found);
  bool follow_adopted(PortEntry& entry, const model::Port& found);
  PortEntry& port_entry(const std::string& path);
  asio::awaitable<void> scan_loop();
  asio::awaitable<void> view_loop();
  void log(int level, const std::string& text) const {
    if (log_) log_(level, text);
  }
  void print(const BoardUid& uid, model::ConsoleSource source, int level,
             const std::string& text) const {
    if (options_.console) options_.console(uid, source, level, text);
  }

  asio::io_context& io_;
  const Clock& clock_;
  store::ControlThread& control_;
  FleetOptions options_;
  FleetListener& listener_;
  LogFn log_;
  std::map<BoardUid, BoardEntry> boards_;
  std::map<std::string, PortEntry> ports_;
  std::map<std::string, Turned> turned_away_;  // by place and uid
  std::vector<std::unique_ptr<session::LinkRunner>> listeners_;
  std::shared_ptr<link::TlsContext> listen_tls_;
  std::map<std::string, std::int64_t> warned_us_;  // place, code and uid -> last warning
  std::set<std::string> told_versions_;            // "uid version" of firmware that differs
  AsyncMutex board_writes_;
  Signal wake_, rescan_;
  std::unique_ptr<link::PortWatch> watch_;
  bool dirty_ = true, stopping_ = false;
  bool counted_ = false;  // steps that no view has yet
};

}  // namespace odt::fleet
