#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <string_view>
#include <thread>

#include "api/errors.h"
#include "app/crash.h"
#include "app/daemon.h"
#include "app/logging.h"
#include "base/std_output.h"
#include "store/backup.h"

namespace odt::app {
namespace {

constexpr std::chrono::seconds kStopDeadline{15};

constexpr rlim_t kDescriptors = 65536;

int g_signal_fd = -1;
volatile sig_atomic_t g_signals = 0;

// The second signal does not wait.
void on_signal(int number) {
  g_signals = g_signals + 1;
  if (g_signals > 1) ::_exit(128 + number);
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(g_signal_fd, &one, sizeof one);
}

void catch_signals() {
  g_signal_fd = ::eventfd(0, EFD_CLOEXEC);
  struct sigaction action {};
  action.sa_handler = on_signal;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

// Out of descriptors, gRPC 1.51 stops listening for good; the usual soft limit of 1024 is a few
// hundred idle clients away.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kDescriptors) return;
  limit.rlim_cur = std::min(limit.rlim_max, kDescriptors);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void wait_for_signal() {
  pollfd event{g_signal_fd, POLLIN, 0};
  while (::poll(&event, 1, -1) < 0 && errno == EINTR && g_signals == 0) {}
}

int fail(const Status& why) {
  std::string remedy = remedy_of(why);
  std::fprintf(stderr, "odtd: %s%s%s\n", api::message_of(why).c_str(),
               remedy.empty() ? "" : "\n  what to do: ", api::clean_text(remedy).c_str());
  return absl::IsInvalidArgument(why) ? 2 : 1;
}

// A stop that hangs would keep the service manager waiting.
void stop_within(std::chrono::seconds limit, Daemon& daemon) {
  std::thread([limit] {
    std::this_thread::sleep_for(limit);
    spdlog::critical("stopping took longer than {} s: leaving at once", limit.count());
    ::_exit(3);
  }).detach();
  daemon.stop();
}

std::string own_path(const char* argv0) {
  char path[PATH_MAX];
  const auto length = ::readlink("/proc/self/exe", path, sizeof path);
  return length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string(argv0);
}

// odtd restore FILE --data DIR
int restore(int argc, char** argv) {
  const bool help = argc == 3 && std::string_view(argv[2]) == "--help";
  if (argc != 5 || std::string_view(argv[3]) != "--data") {
    std::fputs("usage: odtd restore FILE --data DIR\n", help ? stdout : stderr);
    return help ? 0 : 2;
  }
  const auto done = store::restore_backup(argv[2], argv[4]);
  if (!done.ok()) return fail(done.status());
  std::printf("%s: %llu blobs, %llu bytes restored and checked; start odtd with --data-dir %s\n",
              argv[4], static_cast<unsigned long long>(done->blobs),
              static_cast<unsigned long long>(done->bytes), argv[4]);
  return 0;
}

int run(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "restore") return restore(argc, argv);
  if (argc > 1 && std::string_view(argv[1]) == "check-config") return check_config(argc, argv);
  Result<CommandLine> line = parse_command_line(argc, argv);
  if (!line.ok()) return fail(line.status());
  if (line->show_help) {
    std::cout << line->help;
    return finish_output("odtd", 0);
  }
  if (line->show_version) {
    std::cout << "odtd " << ODT_VERSION << "\n";
    return finish_output("odtd", 0);
  }
  resolve(line->config, own_path(argv[0]));
  catch_crashes(line->config.data_dir, ODT_VERSION);
  if (const Status status = start_logging(line->config); !status.ok()) return fail(status);
  catch_signals();
  raise_descriptor_limit();
  Result<std::unique_ptr<Daemon>> daemon = Daemon::start(std::move(line->config));
  if (!daemon.ok()) return fail(daemon.status());
  wait_for_signal();
  spdlog::info("stopping");
  stop_within(kStopDeadline, **daemon);
  return 0;
}

}  // namespace
}  // namespace odt::app

int main(int argc, char** argv) { return odt::app::run(argc, argv); }
