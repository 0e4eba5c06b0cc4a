#include "lab/power_runner.h"

#include <absl/strings/str_cat.h>
#include <string.h>
#include <unistd.h>

#include "jobs/child.h"

namespace odt::lab {
namespace {

constexpr std::size_t kMaxOutput = 2000;

void keep_last(std::string& text) {
  if (text.size() > kMaxOutput) text.erase(0, text.size() - kMaxOutput);
}

void judge(const jobs::ChildEnd& end, const std::string& program, std::uint32_t timeout_s,
           model::PowerResult& out) {
  using Kind = jobs::ChildEnd::Kind;
  const char* look = "Run the command by hand as the user of odtd.";
  if (end.kind == Kind::kExit) {
    out.exit_code = end.code;
    out.ok = end.code == 0;
    if (!out.ok)
      out.reason = {"POWER_FAILED", absl::StrCat(program, " ended with exit code ", end.code),
                    look};
  } else if (end.kind == Kind::kDeadline) {
    out.reason = {"POWER_TIMEOUT",
                  absl::StrCat(program, " was killed after ", timeout_s, " s without an end"),
                  "Raise timeout_s of the profile, or see why the command hangs."};
  } else if (end.kind == Kind::kStopped) {
    out.reason = {"POWER_STOPPED", "odtd stops; " + program + " was killed",
                  "See that the board has power, then try again."};
  } else {
    out.reason = {"POWER_FAILED", absl::StrCat(program, " was ended by signal ", end.code), look};
  }
}

}  // namespace

model::PowerResult run_power_command(const std::vector<std::string>& argv, std::uint32_t timeout_s,
                                     const std::atomic<bool>& stop) {
  model::PowerResult out;
  const std::string& program = argv.front();
  if (::access(program.c_str(), X_OK) != 0) {
    out.reason = {"POWER_NO_PROGRAM", program + ": " + ::strerror(errno),
                  "Install it, or correct the profile in odtd's configuration."};
    return out;
  }
  jobs::ChildSpec spec;
  spec.program = program;
  if (argv.size() > 1) spec.argument = argv[1];
  if (argv.size() > 2) spec.more.assign(argv.begin() + 2, argv.end());
  spec.deadline = std::chrono::seconds(timeout_s);
  std::string said;
  const auto begin = std::chrono::steady_clock::now();
  const auto end = jobs::run_child(spec, stop, [&said](const std::string& line) {
    said += line.substr(line.size() > kMaxOutput ? line.size() - kMaxOutput : 0) + "\n";
    keep_last(said);
  });
  out.took_ms = static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                               std::chrono::steady_clock::now() - begin)
                                               .count());
  if (!end.ok()) {
    out.reason = {"POWER_FAILED", std::string(end.status().message()), "Try again."};
    return out;
  }
  out.output = said + end->error;
  keep_last(out.output);
  judge(*end, program, timeout_s, out);
  return out;
}

void PowerRunner::run(std::vector<std::string> argv, std::uint32_t timeout_s,
                      std::function<void(model::PowerResult)> done) {
  const std::lock_guard lock(mutex_);
  works_.remove_if([](Work& work) {
    if (work.over) work.thread.join();
    return work.over.load();
  });
  if (stopping_) {
    model::PowerResult out;
    out.reason = {"POWER_STOPPED", "odtd stops", "Try again when it is back."};
    return done(std::move(out));
  }
  Work& work = works_.emplace_back();
  work.thread = std::thread([this, &work, argv = std::move(argv), timeout_s, done] {
    done(run_power_command(argv, timeout_s, stopping_));
    work.over = true;
  });
}

void PowerRunner::stop() {
  stopping_ = true;
  const std::lock_guard lock(mutex_);
  for (auto& work : works_)
    if (work.thread.joinable()) work.thread.join();
  works_.clear();
}

}  // namespace odt::lab
