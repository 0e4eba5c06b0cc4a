#include "cli/follow.h"

#include <absl/strings/str_cat.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "cli/context.h"
#include "cli/json.h"
#include "cli/labels.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;
using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{60};  // with an odtd that went away

// Tries again while odtd is away. False: give up with `status`.
class Patience {
 public:
  explicit Patience(Context& context) : context_(context) {}
  void good() { since_ = {}; }
  bool again(const Status& status) {
    if (!unreachable(status) && !absl::IsUnavailable(status) && !absl::IsCancelled(status))
      return false;
    const auto now = Clock::now();
    if (since_ == Clock::time_point()) {
      since_ = now;
      context_.note("odtd is away; trying again for a minute");
    }
    return now - since_ < kPatience && !context_.interrupt.wait(std::chrono::milliseconds(500));
  }

 private:
  Context& context_;
  Clock::time_point since_;
};

class RunFollower {
 public:
  RunFollower(Context& context, std::string id) : context_(context), id_(std::move(id)) {}

  Status follow() {
    ODT_ASSIGN(Client * client, context_.client());
    context_.interrupt.on_interrupt([client] { client->cancel_watch(); });
    const Status status = watch_to_the_end(*client);
    context_.interrupt.on_interrupt({});
    context_.end_progress();
    if (ended(run_.state())) return end();
    if (context_.interrupt.seen()) return detach();
    return status;
  }

 private:
  Status watch_to_the_end(Client& client) {
    Patience patience(context_);
    while (!context_.interrupt.seen()) {
      Status status = client.watch(request(), [&](const v1::WatchResponse& response) {
        patience.good();
        for (const v1::Event& event : response.events()) show(event);
        return !ended(run_.state());
      });
      if (ended(run_.state())) return {};
      // The server ends a stream that is too far behind; a fresh one begins with a snapshot.
      if (!status.ok() && !patience.again(status)) return status;
      if (status.ok() && context_.interrupt.wait(std::chrono::milliseconds(200))) break;
    }
    return {};
  }

  v1::WatchRequest request() const {
    v1::WatchRequest request;
    v1::Topic& topic = *request.add_topics();
    topic.set_kind(v1::Topic::KIND_RUN);
    topic.set_key(id_);
    topic.set_lossless(true);
    return request;
  }

  void show(const v1::Event& event) {
    if (event.has_run() && event.run().id() == id_) {
      run_ = event.run();
      if (run_.effective().best_on_host() && !said_best_on_host_ && !ended(run_.state())) {
        said_best_on_host_ = true;
        context_.say(run_.spec().hyper().best_on_host()
                         ? "best weights kept on the host"
                         : "best weights kept on the host: the board has room for one copy");
      }
      if (run_.placement() != placement_) {
        placement_ = run_.placement();
        if (!placement_.empty()) context_.say("placement: " + placement_);
      }
      show_progress();
    } else if (event.has_run_event() && event.run_event().run_id() == id_) {
      if (!transitions_.insert(event.run_event().seq()).second) return;
      print(event);
      show_transition(event.run_event());
    } else if (event.has_epoch() && event.epoch().run_id() == id_) {
      const v1::EpochResult& epoch = event.epoch();
      if (!epochs_.emplace(epoch.attempt(), epoch.epoch()).second) return;
      print(event);
      show_epoch(epoch);
    } else if (event.has_warning()) {
      context_.note("warning: " + event.warning().reason().text());
    }
  }

  void print(const v1::Event& event) {
    if (context_.json) context_.print_json(event);
  }

  void show_transition(const v1::RunEvent& event) {
    std::string line = state_word(event.to());
    if (!event.cause().empty()) line += "  (" + event.cause() + ")";
    context_.say(clock_text(event.time_us()) + "  " + line);
  }

  void show_epoch(const v1::EpochResult& epoch) {
    std::string line = absl::StrCat("epoch ", epoch.epoch() + 1);
    if (run_.effective().has_epochs()) line += absl::StrCat("/", run_.effective().epochs());
    const v1::Outputs& outputs = run_.outputs();
    if (has_classes(outputs)) line += "  loss " + loss_text(epoch.loss());
    line += "  train " + score_text(epoch.train(), epoch.loss(), outputs);
    if (epoch.heldout().total() != 0 || epoch.heldout_loss().count() != 0)
      line += "  held-out " + score_text(epoch.heldout(), epoch.heldout_loss(), outputs);
    line += absl::StrCat("  step ", epoch.step());
    if (run_.steps_total() != 0) line += absl::StrCat("/", run_.steps_total());
    if (epoch.step_us() != 0) line += "  " + duration_text(epoch.step_us()) + "/step";
    if (epoch.alarms() & 1) line += "  ALARM dead layer";
    if (epoch.alarms() & 2) line += "  ALARM saturation";
    if (epoch.alarms() & 4) line += "  ALARM stuck";
    context_.say(clock_text(epoch.time_us()) + "  " + line);
  }

  void show_progress() {
    if (run_.steps_total() == 0 || ended(run_.state())) return;
    context_.progress(
        absl::StrCat(state_word(run_.state()), "  step ", run_.steps_done(), "/",
                     run_.steps_total(), "  ", percent(run_.steps_done(), run_.steps_total()),
                     run_.eta_time_us() != 0 ? "  ends " + eta_text(run_) : std::string()));
  }

  Status end() {
    if (context_.json)
      context_.print_json(run_);
    else
      show_result(context_, run_);
    if (run_.state() == v1::RUN_STATE_SUCCEEDED) return {};
    std::string text = "run " + state_word(run_.state());
    if (!run_.reason().text().empty()) text += ": " + clean(run_.reason().text());
    return with_exit(with_reason(absl::UnknownError(text), clean(run_.reason().code()),
                                 clean(run_.reason().remedy())),
                     kExitRunFailed);
  }

  Status detach() {
    const std::string id = hex(id_);
    context_.note("detached; the run goes on. Watch it: odtctl run watch " + id +
                  "   Stop it: odtctl run cancel " + id);
    return with_exit(absl::CancelledError(""), kExitInterrupted);
  }

  Context& context_;
  std::string id_;
  v1::Run run_;
  bool said_best_on_host_ = false;
  std::string placement_;  // as said last
  std::set<std::uint32_t> transitions_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> epochs_;
};

// A run without classes: its losses.
void show_errors(Context& context, const v1::Run& run) {
  const v1::Outputs& outputs = run.outputs();
  const auto change = [&](const v1::Loss& from, const v1::Loss& to) {
    return score_text({}, from, outputs) + " -> " + score_text({}, to, outputs);
  };
  if (run.before_loss().count() != 0 || run.after_loss().count() != 0)
    context.say(absl::StrCat("test      ", change(run.before_loss(), run.after_loss()), "  (",
                             run.after_loss().count(), " samples)"));
  if (run.heldout_best_loss().count() != 0)
    context.say(absl::StrCat("held-out  ",
                             change(run.heldout_start_loss(), run.heldout_best_loss()),
                             "  (best at step ", run.best_step(), ")"));
  context.say("mse       " + error_unit(outputs));
}

}  // namespace

Status follow_run(Context& context, const std::string& run_id) {
  return RunFollower(context, run_id).follow();
}

void show_result(Context& context, const v1::Run& run) {
  std::string line = state_word(run.state());
  if (run.end_time_us() != 0 && run.start_time_us() != 0)
    line += " after " + duration_text(run.end_time_us() - run.start_time_us());
  context.say(line);
  if (run.before().total() != 0 || run.after().total() != 0)
    context.say(absl::StrCat("test      ", accuracy_text(run.before()), " -> ",
                             accuracy_text(run.after()), "  (", run.after().correct(), " of ",
                             run.after().total(), ")"));
  if (run.heldout_best().total() != 0)
    context.say(absl::StrCat("held-out  ", accuracy_text(run.heldout_start()), " -> ",
                             accuracy_text(run.heldout_best()), "  (best at step ", run.best_step(),
                             ")"));
  if (!has_classes(run.outputs())) show_errors(context, run);
  if (!run.verdict_text().empty()) context.say("guard     " + run.verdict_text());
  if (!run.final_weights_hash().empty()) context.say("weights   " + hex(run.final_weights_hash()));
  if (!run.final_state_hash().empty()) context.say("state     " + hex(run.final_state_hash()));
}

Result<v1::Job> wait_for_job(Context& context, const v1::Job& started) {
  v1::Job job = started;
  Patience patience(context);
  v1::GetJobRequest request;
  request.set_id(started.id());
  while (!ended(job)) {
    context.progress_bar(job.progress_permille(), absl::StrCat(job_word(job), "  ", job.message()));
    if (context.interrupt.wait(std::chrono::milliseconds(200))) {
      context.note("interrupted; the job goes on. Look at it: odtctl job show " + hex(job.id()));
      return with_exit(absl::CancelledError(""), kExitInterrupted);
    }
    auto response = context.call<v1::GetJobResponse>(request);
    if (response.ok()) {
      patience.good();
      job = response->job();
    } else if (!patience.again(response.status())) {
      return response.status();
    }
  }
  context.end_progress();
  if (job.state() == v1::Job::STATE_SUCCEEDED) return job;
  std::string text = job_word(job);
  const std::string& why = job.reason().text().empty() ? job.message() : job.reason().text();
  if (!why.empty()) text += ": " + clean(why);
  return with_exit(with_reason(absl::UnknownError(text), clean(job.reason().code()),
                               clean(job.reason().remedy())),
                   kExitRunFailed);
}

}  // namespace odt::cli
