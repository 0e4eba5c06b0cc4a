#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/json.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

struct Options {
  std::string run;
  bool telemetry = false, snapshot = false;
  std::uint32_t limit = 0;  // events; 0: until interrupted
};

std::string describe(const v1::Event& event) {
  switch (event.what_case()) {
    case v1::Event::kBoard:
      return "board " + event.board().name() + " " + status_word(event.board().status());
    case v1::Event::kPort:
      return "port " + event.port().path() + " " + port_word(event.port().state());
    case v1::Event::kModel:
      return "model " + event.model().name() + " " + hex(event.model().hash()).substr(0, 12);
    case v1::Event::kDataset:
      return "dataset " + event.dataset().name();
    case v1::Event::kSnapshot:
      return "snapshot " + hex(event.snapshot().hash()).substr(0, 12);
    case v1::Event::kRun:
      return absl::StrCat("run ", hex(event.run().id()), " ", state_word(event.run().state()),
                          " step ", event.run().steps_done(), "/", event.run().steps_total());
    case v1::Event::kRunEvent:
      return "run " + hex(event.run_event().run_id()) + " " + state_word(event.run_event().from()) +
             " -> " + state_word(event.run_event().to()) + " " + event.run_event().cause();
    case v1::Event::kEpoch:
      return absl::StrCat("run ", hex(event.epoch().run_id()), " epoch ", event.epoch().epoch() + 1,
                          " loss ", loss_text(event.epoch().loss()), " held-out ",
                          event.epoch().has_heldout_loss()
                              ? "loss " + loss_text(event.epoch().heldout_loss())
                              : accuracy_text(event.epoch().heldout()));
    case v1::Event::kJob:
      return "job " + hex(event.job().id()) + " " + job_word(event.job()) + " " +
             event.job().message();
    case v1::Event::kEvaluation:
      return "evaluation " + hex(event.evaluation().id()) + " " +
             score_text(event.evaluation().accuracy(), event.evaluation().loss(),
                        event.evaluation().outputs());
    case v1::Event::kDeleted:
      return event.deleted().kind() + " " + hex(event.deleted().key()) + " deleted";
    case v1::Event::kWarning:
      return "WARNING " + event.warning().reason().text() + "; " +
             event.warning().reason().remedy();
    case v1::Event::kAlert:
      return "alert " + event.alert().subject() + " " +
             without_prefix(v1::AlertState_Name(event.alert().state()), "ALERT_STATE_") + " " +
             event.alert().reason().text();
    case v1::Event::kSetting:
      return "setting " + event.setting().key() + " = " + event.setting().value();
    case v1::Event::kAlertSettings:
      return "rules and silences of alerts";
    default:
      return "?";
  }
}

std::string describe(const v1::TelemetryFrame& f) {
  std::string out = absl::StrCat("step ", f.step());
  if (f.gap() != 0) return absl::StrCat(out, " and ", f.gap() - 1, " more have no record");
  if (f.loss().count() != 0) absl::StrAppend(&out, " loss ", loss_text(f.loss()));
  absl::StrAppend(&out, " right ", f.correct(), " shifts");
  for (const auto& layer : f.layers()) absl::StrAppend(&out, " ", layer.shift());
  return out;
}

Result<v1::WatchRequest> build(Context& context, const Options& o) {
  v1::WatchRequest request;
  v1::Topic& topic = *request.add_topics();
  if (o.run.empty()) {
    if (o.telemetry) return absl::InvalidArgumentError("--telemetry needs --run");
    topic.set_kind(v1::Topic::KIND_ALL_EVENTS);
    topic.set_lossless(true);
    return request;
  }
  ODT_ASSIGN(const v1::Run run, find_run(context, o.run));
  topic.set_kind(v1::Topic::KIND_RUN);
  topic.set_key(run.id());
  topic.set_lossless(true);
  if (o.telemetry) {
    v1::Topic& frames = *request.add_topics();
    frames.set_kind(v1::Topic::KIND_TELEMETRY);
    frames.set_key(run.id());
    frames.set_lossless(true);
  }
  return request;
}

// Prints what comes; counts what it printed.
class Printer {
 public:
  Printer(Context& context, const Options& options) : context_(context), o_(options) {}
  bool operator()(const v1::WatchResponse& response) {
    for (const v1::Event& event : response.events()) {
      if (event.event_seq() == 0 && !o_.snapshot) continue;  // how things are, no change
      if (!go_on()) return false;
      if (context_.json) context_.print_json(event);
      const std::string time = event.time_us() == 0 ? "now     " : clock_text(event.time_us());
      context_.say(absl::StrCat(time, "  ", event.event_seq(), "  ", describe(event)));
    }
    for (const v1::TelemetryFrame& frame : response.telemetry()) {
      if (!go_on()) return false;
      if (context_.json) context_.print_json(frame);
      context_.say(clock_text(frame.time_us()) + "  " + describe(frame));
    }
    if (response.dropped() != 0)
      context_.note(absl::StrCat(response.dropped(), " telemetry frames left out"));
    if (response.resync()) context_.note("too far behind; beginning afresh");
    return o_.limit == 0 || printed_ < o_.limit;
  }

 private:
  bool go_on() { return o_.limit == 0 || printed_++ < o_.limit; }
  Context& context_;
  const Options& o_;
  std::uint32_t printed_ = 0;
};

Status watch(Context& context, const Options& o) {
  ODT_ASSIGN(const v1::WatchRequest request, build(context, o));
  ODT_ASSIGN(Client * client, context.client());
  context.interrupt.on_interrupt([client] { client->cancel_watch(); });
  bool resync = false, done = false;
  Printer printer(context, o);
  Status status;
  do {
    resync = false;
    status = client->watch(request, [&](const v1::WatchResponse& response) {
      resync = response.resync();
      done = !printer(response);
      return !done;
    });
  } while (status.ok() && resync && !done && !context.interrupt.seen());
  context.interrupt.on_interrupt({});
  if (context.interrupt.seen()) return with_exit(absl::CancelledError(""), kExitInterrupted);
  return status;
}

}  // namespace

void add_watch(CLI::App& app, Context& context) {
  const auto o = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("watch", "Every change as it happens, until Ctrl-C");
  verb->add_option("--run", o->run, "Only this run");
  verb->add_flag("--telemetry", o->telemetry, "Its steps too");
  verb->add_flag("--snapshot", o->snapshot, "First how everything is now");
  verb->add_option("--limit", o->limit, "End after N lines");
  verb->callback([&context, o] { context.action = [&context, o] { return watch(context, *o); }; });
}

}  // namespace odt::cli
