#include "flash/writer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/fd.h"
#include "flash/image.h"

namespace odt::flash {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kMaxLog = 1 << 20, kMaxLine = 400;
constexpr milliseconds kLook{200}, kGrace{5000};

Progress failed(bool begun, const Status& why) {
  Progress out;
  out.state = Progress::State::kFailed;
  out.begun = begun;
  out.code = reason_of(why).empty() ? "FLASH_FAILED" : reason_of(why);
  out.text = std::string(why.message());
  out.remedy = remedy_of(why);
  return out;
}

// "... 47% ...": what OpenOCD, dfu-util and others print while they write.
std::uint32_t permille_of(const std::string& line, std::uint32_t before) {
  const std::size_t sign = line.rfind('%');
  if (sign == std::string::npos || sign == 0) return before;
  std::size_t begin = sign;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1])) != 0 &&
         sign - begin < 3)
    --begin;
  if (begin == sign) return before;
  return static_cast<std::uint32_t>(std::min(100, std::atoi(line.substr(begin).c_str()))) * 10;
}

// One request from taking it up to its end.
class Job {
 public:
  Job(Spool& spool, Request request) : spool_(spool), request_(std::move(request)) {}

  void run(const std::vector<Profile>& profiles) {
    const Status status = write(profiles);
    if (!status.ok()) {
      tell(failed(begun_, status));
    } else {
      progress_.state = Progress::State::kDone;
      progress_.permille = 1000;
      tell(progress_);
    }
    if (!copy_.empty()) ::unlink(copy_.c_str());
  }

 private:
  void tell(const Progress& progress) {
    const Status put = spool_.put_progress(request_.id, progress);
    if (!put.ok()) std::fprintf(stderr, "odt-flash: %s\n", std::string(put.message()).c_str());
    told_ = Clock::now();
  }

  // The bytes that were hashed are the bytes that are written.
  Status take_image() {
    const auto hash = from_hex(request_.image);
    const auto read = hash.ok() && hash->size() == 32
                          ? read_regular(spool_.image_path(request_.image), kMaxImageBytes, false)
                          : Result<std::string>(absl::InvalidArgumentError("no hash"));
    if (!read.ok() || sha256(*read).hex() != request_.image)
      return with_reason(
          absl::DataLossError("the image in the spool is not the one with hash " + request_.image),
          "FIRMWARE_CORRUPT", "Start the flash again.");
    const std::string& bytes = *read;
    ODT_TRY(parse_image(bytes, request_.image).status());
    const char* base = std::getenv("TMPDIR");
    copy_ = std::string(base != nullptr ? base : "/tmp") + "/odt-flash-XXXXXX." + request_.format;
    const int suffix = static_cast<int>(request_.format.size()) + 1;
    const int out = ::mkostemps(copy_.data(), suffix, O_CLOEXEC);
    if (out < 0) {
      copy_.clear();
      return absl::FailedPreconditionError(std::string("no temporary file: ") +
                                           std::strerror(errno));
    }
    ::close(out);
    std::ofstream copy(copy_, std::ios::binary);
    copy.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    copy.close();
    return copy ? absl::OkStatus() : absl::ResourceExhaustedError("the image cannot be copied");
  }

  Status write(const std::vector<Profile>& profiles) {
    tell(progress_);
    ODT_ASSIGN(const Profile profile, find_profile(profiles, request_.profile, ""));
    if (std::find(profile.formats.begin(), profile.formats.end(), request_.format) ==
        profile.formats.end())
      return absl::InvalidArgumentError("profile " + profile.name + " takes no " + request_.format +
                                        " files");
    ODT_TRY(take_image());
    Values values = request_.values;
    values["image"] = copy_;
    char address[24];
    std::snprintf(address, sizeof address, "0x%llx",
                  static_cast<unsigned long long>(profile.flash_address));
    values["address"] = address;
    ODT_ASSIGN(const std::vector<std::string> argv, filled_argv(profile, values));
    return run_program(argv, std::chrono::seconds(profile.timeout_s));
  }

  Status run_program(const std::vector<std::string>& argv, std::chrono::seconds limit) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return absl::ResourceExhaustedError("no pipe");
    Fd out(ends[0]), in(ends[1]);
    posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files, in.get(), 1);
    ::posix_spawn_file_actions_adddup2(&files, in.get(), 2);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    std::vector<char*> words;
    for (const auto& word : argv) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    char path[] = "PATH=/usr/bin:/bin", lang[] = "LANG=C.UTF-8", home[] = "HOME=/nonexistent";
    char* environment[] = {path, lang, home, nullptr};
    pid_t child = 0;
    const int error =
        ::posix_spawn(&child, argv[0].c_str(), &files, &attributes, words.data(), environment);
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
    if (error != 0)
      return with_reason(
          absl::FailedPreconditionError(argv[0] + " cannot be started: " + std::strerror(error)),
          "FLASH_PROGRAM", "Install it on the gateway (openocd, dfu-util, ...).");
    begun_ = progress_.begun = true;
    in = Fd();
    const bool late = listen(out.get(), child, Clock::now() + limit);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (late)
      return with_reason(absl::DeadlineExceededError(argv[0] + " was ended after " +
                                                     std::to_string(limit.count()) + " s"),
                         "FLASH_TIMEOUT", "Look at its log; raise flash.timeout_s of the profile.");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
    const std::string how = WIFEXITED(status)
                                ? "ended with " + std::to_string(WEXITSTATUS(status))
                                : "was ended by signal " + std::to_string(WTERMSIG(status));
    return with_reason(absl::AbortedError(argv[0] + " " + how + ": " + progress_.line),
                       "FLASH_PROGRAM", "Look at its log in the folder results of the spool.");
  }

  // Until the program closes its output. True: it took too long and was ended.
  bool listen(int from, pid_t child, Clock::time_point until) {
    std::ofstream log(spool_.log_path(request_.id), std::ios::trunc);
    std::string line;
    std::size_t written = 0;
    bool late = false;
    for (;;) {
      pollfd ready{from, POLLIN, 0};
      ::poll(&ready, 1, static_cast<int>(kLook.count()));
      if (Clock::now() > until) {
        ::kill(-child, late ? SIGKILL : SIGTERM);
        late = true;
        until = Clock::now() + kGrace;
      }
      if (ready.revents == 0) continue;
      char bytes[4096];
      const ssize_t size = ::read(from, bytes, sizeof bytes);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) break;
      for (ssize_t i = 0; i < size; ++i) {
        const char c = bytes[i];
        if (c != '\n' && c != '\r') {
          if (line.size() < kMaxLine) line += static_cast<unsigned char>(c) < 32 ? ' ' : c;
          progress_.permille =
              c == '%' ? permille_of(line, progress_.permille) : progress_.permille;
          continue;
        }
        if (line.empty()) continue;
        progress_.line = line;
        if (written < kMaxLog) log << line << '\n';
        written += line.size() + 1;
        line.clear();
      }
      log.flush();
      if (Clock::now() - told_ > kLook) tell(progress_);
    }
    if (!line.empty()) {
      progress_.line = line;
      log << line << '\n';
    }
    return late;
  }

  Spool& spool_;
  Request request_;
  Progress progress_;
  std::string copy_;
  bool begun_ = false;
  Clock::time_point told_;
};

}  // namespace

Status write_all(const WriterOptions& options, const volatile std::sig_atomic_t& stop) {
  Spool spool(options.spool);
  const std::string lock = options.spool + "/results/.lock";
  const Fd held(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640));
  if (held.get() < 0)
    return with_reason(
        absl::FailedPreconditionError(lock + " cannot be opened: " + std::strerror(errno)), "SPOOL",
        "Make it (systemd-tmpfiles --create), or give another with --spool.");
  if (::flock(held.get(), LOCK_EX | LOCK_NB) != 0)
    return with_reason(absl::FailedPreconditionError("another odt-flash works on " + options.spool),
                       "SPOOL", "Wait for it, or end it.");
  std::vector<std::thread> working;
  std::atomic<int> busy{0};
  for (;;) {
    std::vector<Request> requests;
    if (stop == 0) requests = spool.requests();
    for (Request& request : requests) {
      if (busy >= options.parallel) break;
      // Taken up: whatever happens now, it is not done twice.
      const bool done_before = spool.progress(request.id).has_value();
      if (!spool.withdraw(request.id)) {
        if (errno == ENOENT) continue;
        for (auto& thread : working) thread.join();
        return with_reason(
            absl::FailedPreconditionError("request " + request.id +
                                          " cannot be taken away: " + std::strerror(errno)),
            "SPOOL", "Look at the folder's owner and mode.");
      }
      if (done_before) continue;
      ++busy;
      working.emplace_back([&spool, &busy, &options, request = std::move(request)]() mutable {
        Job job(spool, std::move(request));
        job.run(load_profiles(options.profiles, options.own_profiles));
        --busy;
      });
    }
    if (busy == 0 && requests.empty() && (stop != 0 || !options.watch)) break;
    std::this_thread::sleep_for(kLook);
  }
  for (auto& thread : working) thread.join();
  return absl::OkStatus();
}

}  // namespace odt::flash
