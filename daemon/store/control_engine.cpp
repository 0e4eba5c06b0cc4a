#include "store/control_engine.h"

#include <absl/strings/str_cat.h>

#include "base/failpoint.h"
#include "store/body_codec.h"
#include "store/keys.h"

namespace odt::store {
namespace {

constexpr std::int64_t kRequestMemoryUs = 24LL * 3600 * 1000 * 1000;

// "<hex of sort>.<hex of key>" of the last item shown.
std::string page_token(const Row& row) {
  const auto hex = [](const std::string& raw) {
    return to_hex(reinterpret_cast<const std::uint8_t*>(raw.data()), raw.size());
  };
  return hex(row.sort) + "." + hex(row.key);
}

Result<Rows::Position> parse_page_token(const std::string& token) {
  const std::size_t dot = token.find('.');
  if (dot != std::string::npos) {
    const auto sort = from_hex(std::string_view(token).substr(0, dot));
    const auto key = from_hex(std::string_view(token).substr(dot + 1));
    if (sort.ok() && key.ok())
      return Rows::Position{std::string(sort->begin(), sort->end()),
                            std::string(key->begin(), key->end())};
  }
  return absl::InvalidArgumentError("page_token is not one that a list gave; begin without it");
}

}  // namespace

ControlEngine::ControlEngine(std::unique_ptr<Rows> rows, const Clock& clock, Identity identity)
    : rows_(std::move(rows)), clock_(clock), identity_(identity) {}

Status ControlEngine::load() {
  ODT_ASSIGN(const Rows::SeqRange range, rows_->event_range());
  next_seq_ = range.next;
  return {};
}

template <typename T>
Result<T> ControlEngine::get(Kind kind, const std::string& key, const std::string& shown) {
  ODT_ASSIGN(const std::optional<Row> row, rows_->get(kind, key));
  if (!row) return absl::NotFoundError(absl::StrCat("no ", shown, " ", show_key(kind, key)));
  return from_body<T>(row->body);
}

Result<std::vector<Row>> ControlEngine::page_rows(Kind kind, const ListQuery& q, bool descending,
                                                  std::string& next_token) {
  if (q.page_size < 1 || q.page_size > 1000)
    return absl::InvalidArgumentError(
        absl::StrCat("page_size is ", q.page_size, "; it must be 1 to 1000"));
  std::optional<Rows::Position> after;
  if (!q.page_token.empty()) {
    ODT_ASSIGN(after, parse_page_token(q.page_token));
  }
  ODT_ASSIGN(std::vector<Row> rows, rows_->list(kind, after, descending, q.page_size + 1));
  if (rows.size() > q.page_size) {
    rows.pop_back();
    next_token = page_token(rows.back());
  }
  return rows;
}

template <typename T>
Result<Page<T>> ControlEngine::page_of(Kind kind, const ListQuery& q, bool descending,
                                       Result<T> (*convert)(const Row&)) {
  Page<T> page;
  ODT_ASSIGN(const std::vector<Row> rows, page_rows(kind, q, descending, page.next_token));
  for (const Row& row : rows) {
    ODT_ASSIGN(T value, convert(row));
    page.items.push_back(std::move(value));
  }
  return page;
}
template Result<Page<TrashItem>> ControlEngine::page_of(Kind kind, const ListQuery& q,
                                                        bool descending,
                                                        Result<TrashItem> (*convert)(const Row&));

template <typename T>
Result<Page<T>> ControlEngine::list(Kind kind, const ListQuery& q, bool descending) {
  return page_of<T>(kind, q, descending, [](const Row& row) { return from_body<T>(row.body); });
}

template <typename T>
Result<std::vector<T>> ControlEngine::all(Result<std::vector<Row>> rows) {
  ODT_TRY(rows.status());
  std::vector<T> values;
  for (const Row& row : *rows) {
    ODT_ASSIGN(T value, from_body<T>(row.body));
    values.push_back(std::move(value));
  }
  return values;
}

Result<model::Board> ControlEngine::board(const BoardUid& uid) {
  return get<model::Board>(Kind::kBoard, uid.str(), "board");
}
Result<Page<model::Board>> ControlEngine::boards(const ListQuery& q) {
  return list<model::Board>(Kind::kBoard, q, false);
}
Result<Page<model::Port>> ControlEngine::ports(const ListQuery& q) {
  return list<model::Port>(Kind::kPort, q, false);
}
Result<model::Port> ControlEngine::port(const std::string& path) {
  return get<model::Port>(Kind::kPort, path, "port");
}
Result<model::Model> ControlEngine::model(const Hash& hash) {
  return get<model::Model>(Kind::kModel, hash.str(), "model");
}
Result<Page<model::Model>> ControlEngine::models(const ListQuery& q) {
  return list<model::Model>(Kind::kModel, q, true);
}
Result<model::Dataset> ControlEngine::dataset(const Uuid& id) {
  return get<model::Dataset>(Kind::kDataset, id.str(), "dataset");
}
Result<Page<model::Dataset>> ControlEngine::datasets(const ListQuery& q) {
  return list<model::Dataset>(Kind::kDataset, q, true);
}
Result<model::DerivedSamples> ControlEngine::derived(const Hash& content, const Hash& model) {
  return get<model::DerivedSamples>(Kind::kDerived, derived_key(content, model),
                                    "derived samples of dataset content and model");
}
Result<model::Snapshot> ControlEngine::snapshot(const Hash& hash) {
  return get<model::Snapshot>(Kind::kSnapshot, hash.str(), "snapshot");
}
Result<Page<model::Snapshot>> ControlEngine::snapshots(const ListQuery& q) {
  return list<model::Snapshot>(Kind::kSnapshot, q, true);
}
Result<model::Evaluation> ControlEngine::evaluation(const Uuid& id) {
  return get<model::Evaluation>(Kind::kEvaluation, id.str(), "evaluation");
}
Result<Page<model::Evaluation>> ControlEngine::evaluations(const ListQuery& q) {
  return list<model::Evaluation>(Kind::kEvaluation, q, true);
}
Result<model::Job> ControlEngine::job(const Uuid& id) {
  return get<model::Job>(Kind::kJob, id.str(), "job");
}
Result<Page<model::Job>> ControlEngine::jobs(const ListQuery& q) {
  return list<model::Job>(Kind::kJob, q, true);
}
Result<model::Run> ControlEngine::run(const Uuid& id) {
  return get<model::Run>(Kind::kRun, id.str(), "run");
}
Result<Page<model::Run>> ControlEngine::runs(const ListQuery& q) {
  return list<model::Run>(Kind::kRun, q, true);
}
Result<std::vector<model::Run>> ControlEngine::active_runs() {
  return all<model::Run>(rows_->active(Kind::kRun));
}
Result<std::vector<model::RunEvent>> ControlEngine::run_events(const Uuid& run) {
  return all<model::RunEvent>(rows_->with_prefix(Kind::kRunEvent, run.str(), false));
}
Result<std::vector<model::EpochResult>> ControlEngine::epochs(const Uuid& run) {
  return all<model::EpochResult>(rows_->with_prefix(Kind::kEpoch, run.str(), false));
}
Result<model::Campaign> ControlEngine::campaign(const Uuid& id) {
  return get<model::Campaign>(Kind::kCampaign, id.str(), "campaign");
}
Result<Page<model::Campaign>> ControlEngine::campaigns(const ListQuery& q) {
  return list<model::Campaign>(Kind::kCampaign, q, true);
}
Result<std::vector<model::Campaign>> ControlEngine::active_campaigns() {
  return all<model::Campaign>(rows_->active(Kind::kCampaign));
}
Result<std::vector<model::CampaignEvent>> ControlEngine::campaign_events(const Uuid& id) {
  return all<model::CampaignEvent>(rows_->with_prefix(Kind::kCampaignEvent, id.str(), false));
}
Result<std::vector<model::CampaignUnit>> ControlEngine::campaign_units(const Uuid& id) {
  return all<model::CampaignUnit>(rows_->with_prefix(Kind::kCampaignUnit, id.str(), false));
}
Result<std::vector<model::CampaignRound>> ControlEngine::campaign_rounds(const Uuid& id) {
  return all<model::CampaignRound>(rows_->with_prefix(Kind::kCampaignRound, id.str(), false));
}
Result<model::Alert> ControlEngine::alert(const Uuid& id) {
  return get<model::Alert>(Kind::kAlert, id.str(), "alert");
}
Result<Page<model::Alert>> ControlEngine::alerts(const ListQuery& q) {
  return list<model::Alert>(Kind::kAlert, q, true);
}
Result<model::AlertSettings> ControlEngine::alert_settings() {
  return get<model::AlertSettings>(Kind::kAlertSettings, kAlertSettingsKey, "settings of");
}
Result<Page<model::Setting>> ControlEngine::scoped_settings(const ListQuery& q) {
  return list<model::Setting>(Kind::kScopedSetting, q, false);
}
Result<model::Setting> ControlEngine::scoped_setting(const model::Setting& which) {
  return get<model::Setting>(Kind::kScopedSetting, setting_key(which), "setting");
}
std::string scoped_setting_key(const model::Setting& which) { return setting_key(which); }
Result<model::Upload> ControlEngine::upload(const Uuid& id) {
  return get<model::Upload>(Kind::kUpload, id.str(), "upload");
}

Result<std::vector<model::LabEvent>> ControlEngine::lab_events(const BoardUid& uid) {
  return all<model::LabEvent>(rows_->with_prefix(Kind::kLabEvent, lab_event_prefix(uid), false));
}

Result<std::vector<model::BoardCommand>> ControlEngine::open_commands(const BoardUid& uid) {
  ODT_ASSIGN(std::vector<model::BoardCommand> commands,
             all<model::BoardCommand>(rows_->active(Kind::kCommand)));
  std::erase_if(commands, [&](const model::BoardCommand& c) { return c.uid != uid; });
  return commands;
}

Result<std::string> ControlEngine::setting(const std::string& key) {
  ODT_ASSIGN(const std::optional<Row> row, rows_->get(Kind::kSetting, key));
  if (!row) return absl::NotFoundError("no setting " + key);
  return row->body;
}

Result<std::string> ControlEngine::find_request(const std::string& actor,
                                                const std::string& request_id) {
  ODT_ASSIGN(std::optional<std::string> response,
             rows_->request(actor, request_id, clock_.now_us() - kRequestMemoryUs));
  if (!response) return absl::NotFoundError("request " + request_id + " is new");
  return *response;
}

Status ControlEngine::check_request(const Transaction& tx) {
  if (tx.batch.request_id.empty()) return {};
  ODT_TRY(rows_->forget_requests(tx.time_us - kRequestMemoryUs));
  ODT_ASSIGN(const std::optional<std::string> known,
             rows_->request(tx.batch.actor, tx.batch.request_id, tx.time_us - kRequestMemoryUs));
  if (known)
    return absl::AlreadyExistsError("request " + tx.batch.request_id + " was carried out before");
  return rows_->put_request(tx.batch.actor, tx.batch.request_id, tx.time_us, tx.batch.response);
}

Status ControlEngine::carry_out(Transaction& tx) {
  ODT_TRY(check_request(tx));
  for (const Change& change : tx.batch.changes)
    ODT_TRY(std::visit([&](const auto& c) { return apply(tx, c); }, change));
  return {};
}

Result<std::vector<model::Event>> ControlEngine::commit(Batch batch) {
  Transaction tx{batch, clock_.now_us(), next_seq_, {}, {}};
  ODT_TRY(rows_->begin());
  Status status = carry_out(tx);
  fail_here("control.commit");
  if (status.ok()) status = rows_->commit();
  if (!status.ok()) {
    rows_->rollback();
    return status;
  }
  fail_here("control.committed");
  next_seq_ = tx.next_seq;
  return std::move(tx.events);
}

Result<model::EventBody> ControlEngine::body_of(const EventRow& event) {
  std::optional<Row> row;
  if (!event.deleted) {
    ODT_ASSIGN(row, rows_->get(event.kind, event.key));
  }
  if (!row) {
    for (const KindName& k : kKindNames)
      if (k.kind == event.kind) return model::Deleted{k.name, event.key};
    // A run, or a record of one that was purged.
    if (event.kind == Kind::kRun || event.kind == Kind::kRunEvent || event.kind == Kind::kEpoch)
      return model::Deleted{"run", event.key.substr(0, Uuid().str().size())};
    if (event.kind == Kind::kLabEvent)  // too old to be kept
      return model::Deleted{"lab_event", event.key};
    return absl::DataLossError(
        absl::StrCat("control.db: event ", event.seq, " refers to a record that is not there"));
  }
  const auto read = [&]<typename T>(T) -> Result<model::EventBody> {
    ODT_ASSIGN(T value, from_body<T>(row->body));
    return model::EventBody(std::move(value));
  };
  switch (event.kind) {
    case Kind::kBoard:
      return read(model::Board());
    case Kind::kPort:
      return read(model::Port());
    case Kind::kModel:
      return read(model::Model());
    case Kind::kDataset:
      return read(model::Dataset());
    case Kind::kSnapshot:
      return read(model::Snapshot());
    case Kind::kRun:
      return read(model::Run());
    case Kind::kRunEvent:
      return read(model::RunEvent());
    case Kind::kEpoch:
      return read(model::EpochResult());
    case Kind::kJob:
      return read(model::Job());
    case Kind::kEvaluation:
      return read(model::Evaluation());
    case Kind::kCampaign:
      return read(model::Campaign());
    case Kind::kCampaignEvent:
      return read(model::CampaignEvent());
    case Kind::kAlert:
      return read(model::Alert());
    case Kind::kAlertSettings:
      return read(model::AlertSettings());
    case Kind::kScopedSetting:
      return read(model::Setting());
    case Kind::kLabEvent:
      return read(model::LabEvent());
    case Kind::kWarning:
      return read(model::Warning());
    default:
      return absl::DataLossError(absl::StrCat("control.db: event ", event.seq, " is of kind ",
                                              static_cast<int>(event.kind)));
  }
}

Result<std::int64_t> ControlEngine::first_event_seq() {
  ODT_ASSIGN(const Rows::SeqRange range, rows_->event_range());
  return range.first;
}

Result<std::vector<model::Event>> ControlEngine::events_from(std::int64_t first,
                                                             std::uint32_t limit) {
  ODT_ASSIGN(const Rows::SeqRange range, rows_->event_range());
  if (first < range.first)
    return absl::OutOfRangeError(absl::StrCat("events from ", first, " on are asked for; kept are ",
                                              range.first, " to ", range.next - 1));
  ODT_ASSIGN(const std::vector<EventRow> rows, rows_->events(first, limit));
  std::vector<model::Event> events;
  events.reserve(rows.size());
  for (const EventRow& row : rows) {
    ODT_ASSIGN(model::EventBody body, body_of(row));
    events.push_back({row.seq, row.time_us, row.actor, row.command_id, std::move(body)});
  }
  return events;
}

}  // namespace odt::store
