#include "api/watch_topics.h"

#include <algorithm>
#include <map>

#include "api/api_convert.h"
#include "api/errors.h"

namespace odt::api {
namespace {

constexpr std::uint32_t kDefaultHz = 4;
constexpr std::uint32_t kMaxHz = 60;
// Newest resources of a kind in a snapshot; older ones are read through the lists.
constexpr std::uint32_t kSnapshotPage = 1000;
constexpr std::size_t kSnapshotEpochs = 100;  // of a run; ListEpochs has them all

struct Wants {
  const WatchTopic& topic;

  bool is(TopicKind kind) const { return topic.kind == kind; }
  bool run(const Uuid& id) const {
    return is(TopicKind::kRuns) || (is(TopicKind::kRun) && topic.run == id);
  }
  bool operator()(const model::Board&) const { return is(TopicKind::kFleet); }
  bool operator()(const model::Port&) const { return is(TopicKind::kFleet); }
  bool operator()(const model::Model&) const { return is(TopicKind::kLibrary); }
  bool operator()(const model::Dataset&) const { return is(TopicKind::kLibrary); }
  bool operator()(const model::Snapshot&) const { return is(TopicKind::kLibrary); }
  bool operator()(const model::Evaluation&) const { return is(TopicKind::kLibrary); }
  bool operator()(const model::Job&) const { return is(TopicKind::kJobs); }
  bool operator()(const model::Campaign&) const { return is(TopicKind::kCampaigns); }
  bool operator()(const model::CampaignEvent&) const { return is(TopicKind::kCampaigns); }
  bool operator()(const model::Alert&) const { return is(TopicKind::kAlerts); }
  bool operator()(const model::AlertSettings&) const { return is(TopicKind::kAlerts); }
  bool operator()(const model::Setting&) const { return is(TopicKind::kSettings); }
  bool operator()(const model::LabEvent&) const { return is(TopicKind::kLab); }
  bool operator()(const model::Run& v) const { return run(v.id); }
  bool operator()(const model::RunEvent& v) const {
    return is(TopicKind::kRun) && topic.run == v.run_id;
  }
  bool operator()(const model::EpochResult& v) const {
    return is(TopicKind::kRun) && topic.run == v.run_id;
  }
  bool operator()(const model::Deleted& v) const {
    if (v.kind == "board" || v.kind == "port") return is(TopicKind::kFleet);
    if (v.kind == "run")
      return is(TopicKind::kRuns) || (is(TopicKind::kRun) && topic.run.str() == v.key);
    if (v.kind == "campaign") return is(TopicKind::kCampaigns);
    if (v.kind == "setting") return is(TopicKind::kSettings);
    return is(TopicKind::kLibrary);
  }
  bool operator()(const model::Warning& v) const { return is(TopicKind::kFleet) || run(v.run_id); }
};

struct Key {
  std::int64_t seq;
  std::string operator()(const model::Board& v) const { return "board" + v.uid.str(); }
  std::string operator()(const model::Port& v) const { return "port" + v.path; }
  std::string operator()(const model::Model& v) const { return "model" + v.hash.str(); }
  std::string operator()(const model::Dataset& v) const { return "dataset" + v.id.str(); }
  std::string operator()(const model::Snapshot& v) const { return "snapshot" + v.hash.str(); }
  std::string operator()(const model::Evaluation& v) const { return "evaluation" + v.id.str(); }
  std::string operator()(const model::Job& v) const { return "job" + v.id.str(); }
  std::string operator()(const model::Campaign& v) const { return "campaign" + v.id.str(); }
  std::string operator()(const model::Run& v) const { return "run" + v.id.str(); }
  std::string operator()(const model::Alert& v) const { return "alert" + v.id.str(); }
  std::string operator()(const model::AlertSettings&) const { return "alerts"; }
  std::string operator()(const model::Setting& v) const {
    return "setting" + store::scoped_setting_key(v);
  }
  std::string operator()(const model::Deleted& v) const { return v.kind + v.key; }
  template <typename Appended>
  std::string operator()(const Appended&) const {
    return "seq" + std::to_string(seq);
  }
};

class SnapshotBuilder {
 public:
  SnapshotBuilder(store::ControlStore& store, const training::FleetView& view)
      : store_(store), view_(view) {}

  Status add(const WatchTopic& topic) {
    switch (topic.kind) {
      case TopicKind::kFleet:
        return fleet();
      case TopicKind::kRuns:
        return runs();
      case TopicKind::kRun:
        return run(topic.run);
      case TopicKind::kLibrary:
        return library();
      case TopicKind::kJobs:
        return page(store_.jobs({kSnapshotPage, ""}));
      case TopicKind::kCampaigns:
        return page(store_.campaigns({kSnapshotPage, ""}));
      case TopicKind::kAlerts:
        return alerts();
      case TopicKind::kSettings:
        return page(store_.scoped_settings({kSnapshotPage, ""}));
      case TopicKind::kAllEvents:
        ODT_TRY(alerts());
        ODT_TRY(page(store_.scoped_settings({kSnapshotPage, ""})));
        ODT_TRY(fleet());
        ODT_TRY(runs());
        ODT_TRY(library());
        ODT_TRY(page(store_.campaigns({kSnapshotPage, ""})));
        return page(store_.jobs({kSnapshotPage, ""}));
      case TopicKind::kTelemetry:
      case TopicKind::kLab:  // from now on
        break;
    }
    return absl::OkStatus();
  }
  std::vector<EventPtr> take() { return std::move(events_); }

 private:
  void put(model::EventBody body) {
    model::Event event;
    event.body = std::move(body);
    // Two topics may want the same resource.
    if (const auto key = conflation_key(event); key != "seq0" && !seen_.insert({key, true}).second)
      return;
    events_.push_back(std::make_shared<v1::Event>(to_proto(event)));
  }
  template <typename T>
  Status page(Result<store::Page<T>> read) {
    ODT_TRY(read);
    for (auto& item : read->items) put(std::move(item));
    return absl::OkStatus();
  }
  Status fleet() {
    for (const auto& board : view_.boards) put(board);
    for (const auto& port : view_.ports) put(port);
    std::string token;
    do {
      ODT_ASSIGN(auto read, store_.boards({kSnapshotPage, token}));
      for (auto& board : read.items) put(std::move(board));
      token = read.next_token;
    } while (!token.empty());
    return page(store_.ports({kSnapshotPage, ""}));
  }
  Status runs() {
    ODT_TRY(page(store_.runs({kSnapshotPage, ""})));
    ODT_ASSIGN(auto active, store_.active_runs());
    for (auto& item : active) put(std::move(item));
    return absl::OkStatus();
  }
  Status run(const Uuid& id) {
    Result<model::Run> found = store_.run(id);
    if (absl::IsNotFound(found.status())) return absl::OkStatus();
    ODT_TRY(found);
    put(std::move(*found));
    ODT_ASSIGN(auto changes, store_.run_events(id));
    for (auto& change : changes) put(std::move(change));
    ODT_ASSIGN(auto epochs, store_.epochs(id));
    const std::size_t old = epochs.size() - std::min(epochs.size(), kSnapshotEpochs);
    for (std::size_t i = old; i < epochs.size(); ++i) put(std::move(epochs[i]));
    return absl::OkStatus();
  }
  Status alerts() {
    const auto settings = store_.alert_settings();
    if (settings.ok())
      put(*settings);
    else if (!absl::IsNotFound(settings.status()))
      return settings.status();
    return page(store_.alerts({kSnapshotPage, ""}));
  }
  Status library() {
    ODT_TRY(page(store_.models({kSnapshotPage, ""})));
    ODT_TRY(page(store_.datasets({kSnapshotPage, ""})));
    return page(store_.snapshots({kSnapshotPage, ""}));
  }

  store::ControlStore& store_;
  const training::FleetView& view_;
  std::vector<EventPtr> events_;
  std::map<std::string, bool> seen_;
};

}  // namespace

Result<WatchTopic> parse_topic(const v1::Topic& in) {
  WatchTopic topic;
  if (!v1::Topic::Kind_IsValid(in.kind()) || in.kind() == v1::Topic::KIND_UNSPECIFIED)
    return bad_field("topics.kind", "unknown value " + std::to_string(in.kind()));
  topic.kind = static_cast<TopicKind>(in.kind());
  if (topic.kind == TopicKind::kTelemetry && in.key().empty()) {
    if (!in.lossless())
      return bad_field("topics.lossless", "false; telemetry of all runs (no key) is lossless");
  } else if (topic.kind == TopicKind::kRun || topic.kind == TopicKind::kTelemetry) {
    ODT_ASSIGN(topic.run, uuid_field(in.key(), "topics.key"));
  } else if (!in.key().empty()) {
    return bad_field("topics.key", "only KIND_RUN and KIND_TELEMETRY have a key");
  }
  if (in.max_rate_hz() > kMaxHz)
    return bad_field("topics.max_rate_hz", std::to_string(in.max_rate_hz()) + "; limit 60");
  topic.lossless = in.lossless();
  topic.interval =
      std::chrono::milliseconds(1000 / (in.max_rate_hz() == 0 ? kDefaultHz : in.max_rate_hz()));
  topic.from_attempt = in.from_attempt();
  topic.from_step = in.from_step();
  return topic;
}

bool wants(const WatchTopic& topic, const model::Event& event) {
  return topic.kind == TopicKind::kAllEvents || std::visit(Wants{topic}, event.body);
}

std::string conflation_key(const model::Event& event) {
  return std::visit(Key{event.seq}, event.body);
}

Result<std::vector<EventPtr>> take_snapshot(store::ControlStore& store,
                                            const training::FleetView& view,
                                            const std::vector<WatchTopic>& topics) {
  SnapshotBuilder builder(store, view);
  for (const auto& topic : topics) ODT_TRY(builder.add(topic));
  return builder.take();
}

}  // namespace odt::api
