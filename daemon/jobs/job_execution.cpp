#include <absl/strings/str_cat.h>
#include <string.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "jobs/child.h"
#include "jobs/job_runner_impl.h"

namespace odt::jobs {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kProgressEvery{250};
constexpr std::size_t kMaxMessage = 200, kMaxReason = 2000;

// Worker text reaches logs and terminals: one printable line.
std::string printable(const std::string& text, std::size_t limit) {
  std::string out;
  for (char c : text.substr(0, limit))
    out += static_cast<unsigned char>(c) >= ' ' && c != 127 ? c : ' ';
  return out;
}

model::Reason reason_of(const Status& status) {
  const std::string text(status.message());
  return {absl::StatusCodeToString(status.code()), text, ""};
}

model::Reason crash_reason(const ChildEnd& end, std::chrono::seconds deadline) {
  if (end.kind == ChildEnd::Kind::kDeadline)
    return {"DEADLINE_EXCEEDED", absl::StrCat("the job took longer than ", deadline.count(), " s"),
            "use less data or fewer epochs, or raise the limit of jobs"};
  if (end.kind == ChildEnd::Kind::kSignal)
    return {"WORKER_CRASHED",
            absl::StrCat("odt-worker ended by signal ", end.code, " (", ::strsignal(end.code), ")",
                         end.error.empty() ? "" : ": ", end.error),
            "the daemon goes on; report this with the input file"};
  return {"WORKER_FAILED",
          absl::StrCat("odt-worker ended with code ", end.code, " and no result",
                       end.error.empty() ? "" : ": ", end.error),
          end.code == 127 ? "check that odt-worker is installed beside odtd" : ""};
}

}  // namespace

void JobRunner::Impl::loop() {
  while (true) {
    Job job;
    auto state = std::make_shared<Running>();
    {
      std::unique_lock lock(mutex);
      wake.wait(lock, [this] { return stopping || !queue.empty(); });
      if (stopping) return;
      job = std::move(queue.front());
      queue.pop_front();
      running[job.id] = state;
    }
    run(job, *state);
    const std::lock_guard lock(mutex);
    running.erase(job.id);
  }
}

void JobRunner::Impl::put(Job job) {
  control.commit(one_change(store::PutJob{std::move(job)}), [](const auto&) {});
}

void JobRunner::Impl::run(Job job, Running& state) {
  job.state = Job::State::kRunning;
  job.message = "starting";
  put(job);
  const std::string folder = folder_of(job.id);
  std::error_code ec;
  fs::remove_all(folder, ec);
  fs::create_directories(folder, ec);
  const WorkContext context{control, blobs, clock, folder};
  if (ec)
    fail(job, {"FAILED_PRECONDITION", absl::StrCat("cannot make ", folder, ": ", ec.message()),
               "check the data directory and the free space"});
  else if (auto st = carry_out(context, job, state); !st.ok())
    fail(job, reason_of(st));
  fs::remove_all(folder, ec);
}

Status JobRunner::Impl::carry_out(const WorkContext& context, Job& job, Running& state) {
  json work;
  ODT_ASSIGN(work, prepare_work(context, job));
  work["result"] = "result.json";
  const std::string file = context.folder + "/job.json";
  std::ofstream(file) << text_of(work);
  ChildEnd end;
  ODT_ASSIGN(end,
             run_child({options.worker_path, file, options.memory_limit_bytes, options.deadline},
                       state.stop, [&](const std::string& line) { progress(job, state, line); }));
  if (end.kind == ChildEnd::Kind::kStopped) {
    if (state.cancelled) {
      end_job(job, Job::State::kCancelled, "cancelled", {});
    }
    return absl::OkStatus();
  }
  std::ifstream in(context.folder + "/result.json");
  const json result = in ? json::parse(in, nullptr, false) : json();
  if (!result.is_object() || end.kind != ChildEnd::Kind::kExit || end.code > 1) {
    fail(job, crash_reason(end, options.deadline));
    return absl::OkStatus();
  }
  if (!result.value("ok", false)) {
    const json error = result.value("error", json::object());
    fail(job, {error.value("code", "UNKNOWN"), error.value("message", "no message"), ""});
    return absl::OkStatus();
  }
  std::vector<store::Change> changes;
  ODT_ASSIGN(changes, register_work(context, result, job));
  return succeed(job, std::move(changes));
}

void JobRunner::Impl::progress(Job& job, Running& state, const std::string& line) {
  const json j = json::parse(line, nullptr, false);
  if (!j.is_object() || !j.contains("progress") || !j["progress"].is_number_unsigned()) return;
  job.progress_permille = std::min(j["progress"].get<std::uint32_t>(), 1000u);
  if (j.contains("message") && j["message"].is_string())
    job.message = printable(j["message"].get<std::string>(), kMaxMessage);
  const auto now = std::chrono::steady_clock::now();
  if (now - state.last_progress < kProgressEvery) return;
  state.last_progress = now;
  put(job);
}

Status JobRunner::Impl::succeed(Job job, std::vector<store::Change> changes) {
  job.state = Job::State::kSucceeded;
  job.progress_permille = 1000;
  job.message = "done";
  const Status st = control.call_sync([&](ControlStore& s) -> Status {
    if (job.kind == Job::Kind::kReplay) {
      store::Change verdict;
      ODT_ASSIGN(verdict, verdict_change(s, job));
      changes.push_back(std::move(verdict));
    }
    keep_frozen(s, changes);
    store::Batch batch;
    batch.changes = std::move(changes);
    batch.changes.push_back(store::PutJob{job});
    batch.actor = job.meta.created_by;
    return s.commit(std::move(batch)).status();
  });
  if (st.ok()) finished(job, {});
  return st;
}

void JobRunner::Impl::fail(Job job, model::Reason reason) {
  reason.text = printable(reason.text, kMaxReason);
  end_job(job, Job::State::kFailed, "failed", std::move(reason));
}

void JobRunner::Impl::end_job(Job job, Job::State state, const std::string& message,
                              model::Reason reason) {
  job.state = state;
  job.message = message;
  job.reason = std::move(reason);
  put(job);
  const bool cancelled = state == Job::State::kCancelled;
  finished(job, cancelled ? absl::CancelledError("the job was cancelled")
                          : absl::FailedPreconditionError(job.reason.text));
}

void JobRunner::Impl::finished(const Job& job, const Status& status) {
  std::vector<Done<model::DerivedSamples>> waiting;
  DeriveKey key;
  {
    const std::lock_guard lock(mutex);
    const auto it = derive_jobs.find(job.id);
    if (it == derive_jobs.end()) return;
    key = it->second;
    waiting = std::move(waiters[key]);
    waiters.erase(key);
    derive_jobs.erase(it);
  }
  Result<model::DerivedSamples> answer = absl::UnknownError("");
  if (!status.ok())
    answer = status;
  else
    answer = control.call_sync(
        [key](ControlStore& s) { return s.derived(std::get<0>(key), std::get<1>(key)); });
  for (auto& done : waiting) done(answer);
}

}  // namespace odt::jobs
