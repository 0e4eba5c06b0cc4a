#include "app/daemon.h"

#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/statvfs.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <set>
#include <thread>

#include "alerts/engine.h"
#include "api/grpc_server.h"
#include "api/http_server.h"
#include "api/metrics.h"
#include "app/crash.h"
#include "app/endpoints.h"
#include "app/logging.h"
#include "campaign/engine.h"
#include "jobs/job_runner.h"
#include "store/disk_guard.h"
#include "store/open.h"
#include "training/orchestrator.h"

namespace odt::app {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kSystemSocket[] = "/run/odt-fleet/odtd.sock";

std::uint64_t file_bytes(const std::string& path) {
  std::uint64_t sum = 0;
  for (const char* part : {"", "-wal"}) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path + part, error);
    if (!error) sum += size;
  }
  return sum;
}

std::uint64_t free_bytes(const std::string& folder) {
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) return 0;
  return std::uint64_t{disk.f_bavail} * disk.f_frsize;
}

// An io context with the one thread that runs it.
class IoThread {
 public:
  asio::io_context io{1};

  void run(const char* name) {
    thread_ = std::thread([this, name] {
      pthread_setname_np(pthread_self(), name);
      try {
        io.run();
      } catch (const std::exception& error) {
        spdlog::critical("an io thread ended: {}", error.what());
        std::abort();
      }
    });
  }
  void stop() {
    io.stop();
    if (thread_.joinable()) thread_.join();
  }
  // Runs fn on the thread and waits for it.
  template <typename F>
  void call(F fn) {
    std::promise<void> done;
    asio::post(io, [&] {
      fn();
      done.set_value();
    });
    done.get_future().wait();
  }

 private:
  asio::executor_work_guard<asio::io_context::executor_type> work_{io.get_executor()};
  std::thread thread_;
};

// Keeps what a report of a crash says of the runs under way.
class RunsForCrashes final : public store::CommitObserver {
 public:
  void on_events(const std::vector<model::Event>& events, std::int64_t) override {
    bool changed = false;
    for (const auto& event : events) {
      const auto* run = std::get_if<model::Run>(&event.body);
      if (run == nullptr) continue;
      const bool active = run->state != model::RunState::kQueued && !model::is_final(run->state);
      changed |= active ? active_.insert(run->id.hex()).second : active_.erase(run->id.hex()) != 0;
    }
    if (!changed) return;
    std::string text = "runs under way: " + std::to_string(active_.size());
    for (const auto& id : active_) text += " " + id;
    crash_context(text);
  }
  void on_telemetry(const std::vector<model::TelemetryFrame>&) override {}

 private:
  std::set<std::string> active_;
};

training::RetentionRules retention_rules(const Config& config) {
  training::RetentionRules rules;
  rules.keep = config.snapshots_keep;
  rules.older_than_s = config.snapshots_days * 86'400;
  return rules;
}

}  // namespace

// Members in the order in which they come to be; stop() takes them down in reverse.
struct Daemon::Impl {
  explicit Impl(Config c) : config(std::move(c)) {}

  Config config;
  SystemClock clock;
  std::int64_t start_time_us = clock.now_us();
  RunsForCrashes crash_runs;  // outlives the store
  // First, because an answer that nobody gave is counted when the room that owes it goes.
  std::unique_ptr<api::AccessPolicy> policy;
  std::unique_ptr<api::Gate> gate;
  IoThread links, front;
  std::unique_ptr<api::HttpServer> http;
  store::OpenedStores stores;
  std::unique_ptr<store::ControlThread> control;
  std::unique_ptr<store::TelemetryThread> telemetry;
  std::unique_ptr<store::DiskGuard> disk;
  std::unique_ptr<store::ConsoleBook> console;
  std::unique_ptr<jobs::JobRunner> jobs;
  std::unique_ptr<training::Orchestrator> fleet;
  std::unique_ptr<campaign::Engine> campaigns;
  std::unique_ptr<alerts::Engine> alerts;
  std::unique_ptr<api::WatchHub> hub;
  std::unique_ptr<api::Uploads> uploads;
  std::unique_ptr<api::Deps> deps;
  std::unique_ptr<api::GrpcServer> grpc;
  std::atomic<bool> ready{false};
  std::unique_ptr<asio::steady_timer> watchdog;  // front
  bool running = false, stopped = false, fleet_started = false, observing = false;
  std::string http_url;
  std::shared_ptr<const auth::ServerTls> tls;

  Status bind_ports();
  Status open_stores();
  Status make_rooms();
  Status start_rooms();
  Status let_in();
  api::SystemInfo info() const;
  alerts::EngineOptions alert_options();
  api::GrpcOptions grpc_options() const;
  void announce();
  void feed_watchdog(std::chrono::microseconds period);
  void tick();
  asio::steady_timer ticks{front.io};
};

api::GrpcOptions Daemon::Impl::grpc_options() const {
  return {config.grpc.address, config.grpc.port, config.socket, tls,
          !config.auth_required.value_or(false)};
}

alerts::EngineOptions Daemon::Impl::alert_options() {
  alerts::EngineOptions options;
  options.rules = config.alert_rules;
  options.webhook = config.webhook;
  options.rules_version = ODT_RULES_VERSION_NUMBER;
  options.data_dir = config.data_dir;
  options.view = [this] { return fleet->view(); };
  options.disk = [this] { return alerts::DiskSeen{free_bytes(config.data_dir), disk->report()}; };
  options.log = log_line;
  return options;
}

Status Daemon::Impl::bind_ports() {
  api::HttpOptions options;
  options.address = config.http.address;
  options.port = config.http.port;
  options.web_dir = config.web_dir;
  options.python_dir = config.python_dir;
  options.allowed_hosts = config.allowed_hosts;
  options.allowed_origins = config.allowed_origins;
  options.max_connections = config.max_connections;
  if (!config.server_tls.empty()) {
    ODT_ASSIGN(auth::ServerTls read, auth::read_server_tls(config.server_tls));
    tls = std::make_shared<const auth::ServerTls>(std::move(read));
    api::GrpcServer::tls_13_only();
  }
  options.tls = tls;
  ODT_ASSIGN(http, api::HttpServer::bind(front.io, std::move(options)));
  config.http.port = http->port();
  http_url = (tls ? "https://" : "http://") + config.http.text();
  for (auto& where : config.listen) {
    ODT_ASSIGN(where, free_board_port(where));
  }
  // Last: the unix socket's folder may be the data directory.
  std::error_code error;
  std::filesystem::create_directories(config.data_dir, error);
  if (error)
    return with_reason(
        absl::FailedPreconditionError("data directory " + config.data_dir + ": " + error.message()),
        "DATA_DIR", "make it, or choose another with --data-dir");
  return api::GrpcServer::check(grpc_options());
}

Status Daemon::Impl::open_stores() {
  store::StoreOptions options;
  options.telemetry_quota_bytes = config.telemetry_quota_bytes;
  ODT_ASSIGN(stores, store::open_stores(config.data_dir, clock, options));
  control = std::make_unique<store::ControlThread>(std::move(stores.control));
  telemetry = std::make_unique<store::TelemetryThread>(std::move(stores.telemetry));
  disk = std::make_unique<store::DiskGuard>(config.data_dir, *control, *telemetry, *stores.blobs,
                                            clock);
  std::string warning;
  console = store::ConsoleBook::open(config.data_dir + "/console.db", clock, &warning);
  if (!warning.empty()) spdlog::warn("store: {}", warning);
  return absl::OkStatus();
}

Status Daemon::Impl::make_rooms() {
  jobs::JobRunnerOptions job_options;
  job_options.data_dir = config.data_dir;
  job_options.worker_path = config.worker;
  job_options.max_parallel = static_cast<int>(config.jobs_parallel);
  job_options.deadline = seconds(config.job_deadline_s);
  job_options.memory_limit_bytes = config.job_memory_bytes;
  jobs = std::make_unique<jobs::JobRunner>(*control, *stores.blobs, clock, job_options);

  training::OrchestratorOptions options;
  options.fleet.tcp_listen = config.listen;
  options.fleet.tcp_dial = config.dial;
  options.fleet.serial_allow = config.serial_allow;
  options.fleet.tls = config.tls;
  options.fleet.version = ODT_VERSION;
  options.fleet.console = [this](const BoardUid& uid, model::ConsoleSource source, int level,
                                 const std::string& text) {
    console->add(uid, source, level, text);
  };
  options.fleet.link.insecure_tcp = config.insecure_tcp;
  if (!config.bauds.empty()) options.fleet.link.baud_list = config.bauds;
  options.resume_deadline = seconds(config.resume_deadline_s);
  options.power = config.power;
  options.log = log_line;
  options.disk_free = [dir = config.data_dir] {
    std::error_code error;
    const auto space = std::filesystem::space(dir, error);
    return error ? std::uint64_t{0} : std::uint64_t{space.available};
  };
  options.retention = retention_rules(config);
  options.prune = config.snapshots_days != 0;
  fleet = std::make_unique<training::Orchestrator>(links.io, clock, *control, *telemetry,
                                                   *stores.blobs, *jobs, std::move(options));
  campaigns = std::make_unique<campaign::Engine>(links.io, clock, *control, *telemetry,
                                                 *stores.blobs, *fleet, log_line);
  control->add_observer(&crash_runs);
  control->add_observer(campaigns.get());
  alerts = std::make_unique<alerts::Engine>(front.io, clock, *control, alert_options());
  control->add_observer(alerts.get());
  telemetry->add_observer(alerts.get());
  hub = std::make_unique<api::WatchHub>(front.io, *control, *telemetry, *fleet, clock);
  control->add_observer(hub.get());
  telemetry->add_observer(hub.get());

  api::UploadOptions upload_options;
  upload_options.folder = config.data_dir + "/uploads";
  upload_options.max_bytes = config.max_upload_bytes;
  uploads = std::make_unique<api::Uploads>(*control, *stores.blobs, clock, upload_options);
  policy = std::make_unique<api::AccessPolicy>(api::AccessOptions{
      config.auth_required.value_or(false), api::Role::kNone, config.auth_clients});
  gate = std::make_unique<api::Gate>(*policy, *control, config.audit);
  ODT_TRY(gate->load());
  deps.reset(new api::Deps{*gate, *control, *telemetry, *stores.blobs, *fleet, *jobs, *campaigns,
                           *alerts, *uploads, *hub, clock, [this] { return info(); },
                           retention_rules(config), console.get()});
  return absl::OkStatus();
}

Status Daemon::Impl::start_rooms() {
  for (const auto& warning : stores.warnings) {
    spdlog::warn("store: {}; {}", warning.reason.text, warning.reason.remedy);
    store::Batch batch;
    batch.changes.push_back(store::AppendWarning{warning});
    control->commit(std::move(batch), [](const auto&) {});
  }
  ODT_TRY(uploads->start());
  ODT_TRY(jobs->start());
  links.run("odtd-links");
  front.run("odtd-front");
  running = true;
  disk->start();
  hub->start();
  ODT_TRY(fleet->start());
  fleet_started = true;
  ODT_TRY(campaigns->start());
  ODT_TRY(alerts->start());
  return absl::OkStatus();
}

Status Daemon::Impl::let_in() {
  ODT_ASSIGN(grpc, api::GrpcServer::start(grpc_options(), api::make_services(*deps)));
  config.grpc.port = grpc->port();
  api::HttpBackend backend;
  backend.channel = grpc->channel();
  backend.blobs = stores.blobs.get();
  backend.gate = gate.get();
  backend.metrics = [this] { return api::metrics_text(*deps, http->connections()); };
  backend.ready = [this] { return ready.load(); };
  front.call([&] { http->serve(std::move(backend)); });
  Endpoints endpoints;
  endpoints.http = config.http;
  endpoints.tls = tls != nullptr;
  endpoints.grpc = config.grpc;
  endpoints.socket = config.socket;
  endpoints.listen = config.listen;
  ODT_TRY(write_endpoints(config.data_dir, endpoints));
  ready = true;
  asio::post(front.io, [this] { tick(); });
  announce();
  return absl::OkStatus();
}

void Daemon::Impl::announce() {
  std::string boards;
  for (const auto& where : config.listen) boards += (boards.empty() ? "" : ", ") + where;
  spdlog::info("odtd {} serves {} (dashboard), grpc {}{}{}", ODT_VERSION, http_url,
               config.grpc.text(), config.socket.empty() ? "" : ", " + config.socket,
               boards.empty() ? "" : "; boards dial in at " + boards);
  if (!tls) {
    const std::string port = std::to_string(config.http.port);
    spdlog::info("from another machine: ssh -L {}:127.0.0.1:{} THIS_HOST, then http://127.0.0.1:{}",
                 port, port, port);
  } else {
    spdlog::info("TLS 1.3, certificate SHA-256 {}; callers need {}", tls->fingerprint,
                 config.auth_required.value_or(false) ? "a token" : "no token on this machine");
  }
  ::sd_notifyf(0, "READY=1\nSTATUS=serving %s\nMAINPID=%d", http_url.c_str(),
               static_cast<int>(::getpid()));
  std::uint64_t limit_us = 0;
  if (::sd_watchdog_enabled(0, &limit_us) <= 0) return;
  front.call([&] {
    watchdog = std::make_unique<asio::steady_timer>(front.io);
    feed_watchdog(std::chrono::microseconds(limit_us / 3));
  });
}

// Both io threads must come round, or the service manager starts odtd anew. On the front thread.
void Daemon::Impl::feed_watchdog(std::chrono::microseconds period) {
  watchdog->expires_after(period);
  watchdog->async_wait([this, period](boost::system::error_code error) {
    if (error) return;
    asio::post(links.io, [this, period] {
      ::sd_notify(0, "WATCHDOG=1");
      asio::post(front.io, [this, period] {
        if (watchdog) feed_watchdog(period);
      });
    });
  });
}

// Tokens that expire, refusals that were counted, retention of the audit log.
void Daemon::Impl::tick() {
  if (!ready) return;
  gate->tick();
  ticks.expires_after(seconds(2));
  ticks.async_wait([this](const boost::system::error_code& error) {
    if (!error) tick();
  });
}

api::SystemInfo Daemon::Impl::info() const {
  api::SystemInfo info;
  info.version = ODT_VERSION;
  info.data_dir = config.data_dir;
  info.http_url = http_url;
  info.listen_boards = config.listen.empty() ? "" : config.listen.front();
  info.start_time_us = start_time_us;
  info.rules_version = ODT_RULES_VERSION_NUMBER;
  info.control_db_bytes = file_bytes(config.data_dir + "/control.db");
  info.telemetry_db_bytes = file_bytes(config.data_dir + "/telemetry.db");
  info.disk_free_bytes = free_bytes(config.data_dir);
  info.disk = disk->report();
  return info;
}

Daemon::Daemon(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Daemon::~Daemon() { stop(); }

Result<std::unique_ptr<Daemon>> Daemon::start(Config config) {
  std::unique_ptr<Daemon> daemon(new Daemon(std::make_unique<Impl>(std::move(config))));
  Impl& impl = *daemon->impl_;
  Status status = impl.bind_ports();
  if (status.ok()) status = impl.open_stores();
  if (status.ok()) status = impl.make_rooms();
  if (status.ok()) status = impl.start_rooms();
  if (status.ok()) status = impl.let_in();
  if (status.ok()) return daemon;
  daemon->stop();
  return status;
}

void Daemon::stop() {
  Impl& i = *impl_;
  if (i.stopped) return;
  i.stopped = true;
  i.ready = false;
  ::sd_notify(0, "STOPPING=1\nSTATUS=stopping");
  remove_endpoints(i.config.data_dir);
  // 1. Nobody new; streams end with UNAVAILABLE.
  if (i.running) {
    i.front.call([&] {
      i.watchdog.reset();
      i.http->stop_accepting();
    });
    i.hub->stop();
  }
  // 2. Calls end; their answers still need the io threads and the stores.
  if (i.grpc) i.grpc->shutdown(milliseconds(500));
  if (i.running) i.front.call([&] { i.http->close_all(); });
  // 3. Boards hear BYE; runs stay as they are.
  if (i.fleet_started) {
    i.campaigns->stop();
    auto done = std::make_shared<std::promise<void>>();
    i.fleet->stop([done] { done->set_value(); });
    if (done->get_future().wait_for(seconds(3)) != std::future_status::ready)
      spdlog::warn("the boards' links did not close within 3 s");
  }
  if (i.alerts) i.alerts->stop();
  // 4. Worker processes; their jobs are taken up again at the next start.
  if (i.jobs) i.jobs->stop();
  if (i.uploads) i.uploads->stop();
  // 5. The io threads, then what is queued for the stores is written.
  i.links.stop();
  i.front.stop();
  if (i.disk) i.disk->stop();
  if (i.console) i.console->stop();
  if (i.telemetry) i.telemetry->stop();
  if (i.control) i.control->stop();
  i.grpc.reset();
  spdlog::info("odtd has stopped");
}

}  // namespace odt::app
