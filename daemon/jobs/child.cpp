#include "jobs/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace odt::jobs {
namespace {

constexpr std::size_t kMaxLine = 64 * 1024, kMaxError = 2000;
constexpr int kLookEvery_ms = 50;
constexpr auto kDrainKilled = std::chrono::milliseconds(500);
constexpr auto kDrainEnded = std::chrono::seconds(10);

struct Pipe {
  int fd[2] = {-1, -1};
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  bool open() { return ::pipe2(fd, O_CLOEXEC) == 0; }
  void close_end(int n) {
    if (fd[n] >= 0) ::close(fd[n]);
    fd[n] = -1;
  }
};

void limit(int what, rlim_t value) {
  const struct rlimit both = {value, value};
  ::setrlimit(static_cast<__rlimit_resource_t>(what), &both);
}

// In the child between fork and exec: only async-signal-safe calls.
[[noreturn]] void become(const ChildSpec& spec, char* const* argv, pid_t parent, int out, int err) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::setpgid(0, 0);
  const int null = ::open("/dev/null", O_RDONLY);
  if (null < 0 || ::dup2(null, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0) ::_exit(127);
  ::close_range(3, ~0u, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (spec.memory_limit_bytes > 0) limit(RLIMIT_AS, spec.memory_limit_bytes);
  limit(RLIMIT_CPU, static_cast<rlim_t>(spec.deadline.count()));
  limit(RLIMIT_CORE, 0);
  ::execv(argv[0], argv);
  ::_exit(127);
}

class Lines {
 public:
  explicit Lines(const std::function<void(const std::string&)>& fn) : fn_(fn) {}
  void add(const char* data, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      if (data[i] == '\n') {
        fn_(line_);
        line_.clear();
      } else if (line_.size() < kMaxLine) {
        line_ += data[i];
      }
    }
  }

 private:
  const std::function<void(const std::string&)>& fn_;
  std::string line_;
};

void keep_tail(std::string& tail, const char* data, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) tail += data[i] >= ' ' && data[i] <= '~' ? data[i] : ' ';
  if (tail.size() > kMaxError) tail.erase(0, tail.size() - kMaxError);
}

bool has_ended(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid;
}

// Reads both pipes until they end. True: killed, with `end` saying why.
bool pump(const ChildSpec& spec, pid_t pid, int out, int err, const std::atomic<bool>& stop,
          Lines& lines, ChildEnd& end) {
  const auto until = std::chrono::steady_clock::now() + spec.deadline;
  struct pollfd fds[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  bool killed = false;
  bool over = false;  // it has ended, or was killed: until `leave` for what it has said
  std::chrono::steady_clock::time_point leave;
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    const auto now = std::chrono::steady_clock::now();
    if (over && now >= leave) break;
    if (!over && (killed || has_ended(pid))) {
      over = true;
      leave = now + (killed ? kDrainKilled : kDrainEnded);
    }
    const bool late = now >= until;
    if (!killed && (late || stop.load())) {
      ::kill(-pid, SIGKILL);
      ::kill(pid, SIGKILL);
      end.kind = stop.load() ? ChildEnd::Kind::kStopped : ChildEnd::Kind::kDeadline;
      killed = true;
    }
    const int ready = ::poll(fds, 2, kLookEvery_ms);
    if (ready < 0 && errno != EINTR) break;
    if (ready == 0 && over) break;
    for (int n = 0; n < 2; ++n) {
      if (fds[n].fd < 0 || fds[n].revents == 0) continue;
      char buffer[4096];
      const ssize_t got = ::read(fds[n].fd, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0)
        fds[n].fd = -1;
      else if (n == 0)
        lines.add(buffer, static_cast<std::size_t>(got));
      else
        keep_tail(end.error, buffer, static_cast<std::size_t>(got));
    }
  }
  return killed;
}

}  // namespace

Result<ChildEnd> run_child(const ChildSpec& spec, const std::atomic<bool>& stop,
                           const std::function<void(const std::string&)>& on_line) {
  Pipe out, err;
  if (!out.open() || !err.open())
    return absl::InternalError(std::string("cannot make a pipe: ") + ::strerror(errno));
  std::vector<char*> argv{const_cast<char*>(spec.program.c_str())};
  if (!spec.argument.empty() || !spec.more.empty())
    argv.push_back(const_cast<char*>(spec.argument.c_str()));
  for (const auto& argument : spec.more) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return absl::InternalError(std::string("cannot fork: ") + ::strerror(errno));
  if (pid == 0) become(spec, argv.data(), parent, out.fd[1], err.fd[1]);
  out.close_end(1);
  err.close_end(1);
  Lines lines(on_line);
  ChildEnd end;
  const bool killed = pump(spec, pid, out.fd[0], err.fd[0], stop, lines, end);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  if (killed) return end;
  if (WIFSIGNALED(status)) {
    end.kind = ChildEnd::Kind::kSignal;
    end.code = WTERMSIG(status);
  } else {
    end.code = WEXITSTATUS(status);
  }
  return end;
}

}  // namespace odt::jobs
