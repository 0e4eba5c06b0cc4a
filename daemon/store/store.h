#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/access.h"
#include "model/event.h"

// The store: domain types in and out, no SQL, no row ids. Two implementations pass one conformance
// suite: SQLite (sqlite_store.h) and memory (memory_store.h).
//
// Concurrency: every object here belongs to one thread (the store thread of its database); see
// store_thread.h for the queue in front of it.
namespace odt::store {

struct Identity {
  GatewayId gateway_id;           // made with the data directory
  std::uint64_t store_epoch = 0;  // new at creation, restore or clone
};

// Changes of one transaction. Each put replaces the whole resource (key inside), sets meta.etag and
// numbers an event; RunEvent, EpochResult and Warning are appended.
struct PutBoard {
  model::Board value;
};
struct PutPort {
  model::Port value;
};
struct PutModel {
  model::Model value;
};
struct PutDataset {
  model::Dataset value;
};
struct PutSnapshot {
  model::Snapshot value;
};  // an alias it takes is taken from whoever had it (also an event)
struct PutEvaluation {
  model::Evaluation value;
};
struct PutJob {
  model::Job value;
};
// The run's new state with its transition in the same transaction. FAILED_PRECONDITION where the
// stored state is not `event.from`, or the transition is illegal (model::is_legal_transition).
struct TransitionRun {
  model::Run value;
  model::RunEvent event;
};
// Progress, checkpoint, desired, verdict: anything but `state`, which must equal the stored one.
struct UpdateRun {
  model::Run value;
};
struct CreateRun {
  model::Run value;
  std::string actor;
};
// (run, attempt, epoch) unique: an equal record is ignored (no event); a different one is
// DATA_LOSS.
struct AppendEpoch {
  model::EpochResult value;
};
struct AppendWarning {
  model::Warning value;
};
struct CreateCampaign {
  model::Campaign value;
  std::vector<model::CampaignUnit> units;
  std::string actor;
};
// As TransitionRun and UpdateRun, by model::is_legal_transition of campaigns.
struct TransitionCampaign {
  model::Campaign value;
  model::CampaignEvent event;
};
struct UpdateCampaign {
  model::Campaign value;
};
// No events: a change of the campaign goes with them.
struct PutCampaignUnit {
  model::CampaignUnit value;
};
struct PutCampaignRound {
  model::CampaignRound value;
};
struct PutCommand {
  model::BoardCommand value;
};  // no event
struct PutDerived {
  model::DerivedSamples value;
};  // no event
struct PutUpload {
  model::Upload value;
};  // no event
struct PutAlert {
  model::Alert value;
};
struct PutAlertSettings {
  model::AlertSettings value;
};
struct PutScopedSetting {
  model::Setting value;
};
// The newest kLabEventsKept of a board stay; seq, time and actor are set here.
struct AppendLabEvent {
  model::LabEvent value;
};
inline constexpr std::uint32_t kLabEventsKept = 1000;
struct PutSetting {
  std::string key, value;
};  // no event
struct PutCredential {
  model::Credential value;
};  // no event
// Of the entries only what has gone by: there is no change that alters or removes one, but for
// retention. seq is the store's to give. No event.
struct AppendAudit {
  model::AuditEntry value;
};
// The newest `keep` stay of those that are not older than before_us. At most 2,000 go at a time.
struct PruneAudit {
  std::int64_t before_us = 0;
  std::uint64_t keep = 0;
};
// kind: "board", "port", "model", "dataset", "snapshot", "upload", "campaign" (one that is over;
// its units and rounds go too), "setting" (key: scoped_setting_key). NOT_FOUND; FAILED_PRECONDITION
// while referred to by an active run or campaign, and of a model by snapshots.
struct Delete {
  std::string kind;
  std::string key;
};

// Delete with undo, for boards, models, datasets, snapshots and runs: the thing leaves every list
// and its key is free, but Untrash brings it back until Purge. FAILED_PRECONDITION <KIND>_IN_USE:
// used by an active run; a model by snapshots or any run; a dataset by any run. etag: as in Batch.
// Event: Deleted.
struct Trash {
  std::string kind;
  std::string key;
  std::int64_t etag = 0;
};
// ALREADY_EXISTS: there is a new one with the key. Aliases of a snapshot that others have taken
// stay with them. Event: the resource.
struct Untrash {
  std::string kind;
  std::string key;
};
// For good, with what hangs on it (a run's events and epochs, samples derived of a dataset or
// model). A run's telemetry has to be erased before: afterwards nothing names it. NOT_FOUND: not
// in the trash. No event.
struct Purge {
  std::string kind;
  std::string key;
};
// Trash that is older goes by itself.
inline constexpr std::int64_t kTrashKeptUs = 30LL * 24 * 3600 * 1'000'000;

using Change =
    std::variant<PutBoard, PutPort, PutModel, PutDataset, PutSnapshot, PutEvaluation, PutJob,
                 TransitionRun, UpdateRun, CreateRun, AppendEpoch, AppendWarning, PutCommand,
                 PutDerived, PutUpload, PutSetting, Delete, Trash, Untrash, Purge, CreateCampaign,
                 TransitionCampaign, UpdateCampaign, PutCampaignUnit, PutCampaignRound, PutAlert,
                 PutAlertSettings, PutScopedSetting, AppendLabEvent, PutCredential, AppendAudit,
                 PruneAudit>;

// Key of a setting by scope for Delete and model::Deleted.
std::string scoped_setting_key(const model::Setting& which);

struct Batch {
  std::vector<Change> changes;
  std::string actor = "odtd";
  Uuid command_id;
  // Not empty: remembered 24 h with `response`; see ControlStore::find_request.
  std::string request_id;
  std::string response;
};

template <typename T>
struct Page {
  std::vector<T> items;
  std::string next_token;  // empty: the end
};
struct ListQuery {
  std::uint32_t page_size = 100;  // 1..1000
  std::string page_token;
};

struct TrashItem {
  std::string kind, key;
  std::string name;  // for people; empty: it had none
  std::int64_t trashed_time_us = 0;
  std::string trashed_by;
  std::vector<Hash> blobs;  // that it names, by the text of its body
};

class ControlStore {
 public:
  virtual ~ControlStore() = default;

  virtual Identity identity() const = 0;
  virtual std::int64_t next_seq() const = 0;  // number that the next event will get, from 1

  // All or nothing, durable when it returns. Returns the events as numbered, in order. etag: where
  // value.meta.etag is not 0 and differs from the stored one: ABORTED.
  virtual Result<std::vector<model::Event>> commit(Batch batch) = 0;

  virtual Result<model::Board> board(const BoardUid& uid) = 0;
  virtual Result<Page<model::Board>> boards(const ListQuery& q) = 0;  // by name
  virtual Result<Page<model::Port>> ports(const ListQuery& q) = 0;
  virtual Result<model::Port> port(const std::string& path) = 0;
  virtual Result<model::Model> model(const Hash& hash) = 0;
  virtual Result<Page<model::Model>> models(const ListQuery& q) = 0;  // newest first, as all below
  virtual Result<model::Dataset> dataset(const Uuid& id) = 0;
  virtual Result<Page<model::Dataset>> datasets(const ListQuery& q) = 0;
  virtual Result<model::DerivedSamples> derived(const Hash& content, const Hash& model) = 0;
  virtual Result<model::Snapshot> snapshot(const Hash& hash) = 0;
  virtual Result<Page<model::Snapshot>> snapshots(const ListQuery& q) = 0;
  virtual Result<model::Evaluation> evaluation(const Uuid& id) = 0;
  virtual Result<Page<model::Evaluation>> evaluations(const ListQuery& q) = 0;
  virtual Result<model::Job> job(const Uuid& id) = 0;
  virtual Result<Page<model::Job>> jobs(const ListQuery& q) = 0;
  virtual Result<model::Run> run(const Uuid& id) = 0;
  virtual Result<Page<model::Run>> runs(const ListQuery& q) = 0;
  virtual Result<std::vector<model::Run>> active_runs() = 0;  // not final, oldest first
  virtual Result<std::vector<model::RunEvent>> run_events(const Uuid& run) = 0;
  virtual Result<std::vector<model::EpochResult>> epochs(const Uuid& run) = 0;
  virtual Result<model::Campaign> campaign(const Uuid& id) = 0;
  virtual Result<Page<model::Campaign>> campaigns(const ListQuery& q) = 0;
  virtual Result<std::vector<model::Campaign>> active_campaigns() = 0;  // not final, oldest first
  virtual Result<std::vector<model::CampaignEvent>> campaign_events(const Uuid& campaign) = 0;
  virtual Result<std::vector<model::CampaignUnit>> campaign_units(const Uuid& campaign) = 0;
  virtual Result<std::vector<model::CampaignRound>> campaign_rounds(const Uuid& campaign) = 0;
  virtual Result<model::Alert> alert(const Uuid& id) = 0;
  virtual Result<Page<model::Alert>> alerts(const ListQuery& q) = 0;
  virtual Result<model::AlertSettings> alert_settings() = 0;  // NOT_FOUND: never changed
  // By scope, target, key.
  virtual Result<Page<model::Setting>> scoped_settings(const ListQuery& q) = 0;
  virtual Result<model::Setting> scoped_setting(const model::Setting& which) = 0;
  virtual Result<std::vector<model::LabEvent>> lab_events(const BoardUid& uid) = 0;  // oldest first
  virtual Result<std::vector<model::BoardCommand>> open_commands(
      const BoardUid& uid) = 0;  // intent, sent, unknown
  virtual Result<model::Upload> upload(const Uuid& id) = 0;
  virtual Result<std::string> setting(const std::string& key) = 0;   // NOT_FOUND
  virtual Result<std::vector<model::Credential>> credentials() = 0;  // all, oldest first
  virtual Result<Page<model::AuditEntry>> audit(const ListQuery& q) = 0;

  virtual Result<Page<TrashItem>> trash(const ListQuery& q) = 0;  // newest first
  virtual Result<TrashItem> trash_item(const std::string& kind, const std::string& key) = 0;
  // Every SHA-256 that anything kept names, trash included: what garbage collection leaves alone.
  // without: (kind, key) of items of the trash to leave out, with what hangs on them: as if purged.
  virtual Result<std::set<Hash>> named_hashes(
      const std::set<std::pair<std::string, std::string>>& without = {}) = 0;

  // Response remembered for (actor, request_id). NOT_FOUND: new.
  virtual Result<std::string> find_request(const std::string& actor,
                                           const std::string& request_id) = 0;

  virtual Result<std::int64_t> first_event_seq() = 0;  // oldest that is kept
  // Events with seq in [first, first + limit), bodies as they are now (append-only ones as
  // written). OUT_OF_RANGE where `first` is older than what is kept.
  virtual Result<std::vector<model::Event>> events_from(std::int64_t first,
                                                        std::uint32_t limit) = 0;
};

// Series of a run: numbers are those of the API's SeriesKind, and say what the values are.
enum class SeriesKind : std::uint8_t { kLoss = 1, kCorrect = 2, kBits = 3, kShift = 4, kK = 5 };
struct SeriesQuery {
  Uuid run;
  std::uint32_t attempt = 0, first_step = 0, last_step = 0xFFFFFFFF;  // as in Range
  std::uint32_t buckets = 200;                                        // at most
  std::vector<SeriesKind> kinds;                                      // empty: all
  std::vector<std::uint32_t> layers;                                  // empty: all
};
struct Series {
  SeriesKind kind = SeriesKind::kLoss;
  std::uint32_t layer = 0;
  std::vector<std::int64_t> min, max, sum;  // by bucket; 0 where there is no value
  std::vector<std::uint32_t> count;         // empty: as SeriesAnswer::count
};
// Exactly what the records that read() gives have; those of gaps have no values.
struct SeriesAnswer {
  std::uint32_t first_step = 0, last_step = 0;  // of the records in the range
  std::vector<std::uint32_t> bucket_first;      // steps; multiples of 16 where buckets are wider
  std::vector<std::uint32_t> count;             // records by bucket
  std::uint64_t points = 0, gap_steps = 0;
  std::uint64_t thinned_points = 0;  // of points, known by rollups only
  std::vector<Series> series;        // loss, correct, then layer by layer
};

class TelemetryStore {
 public:
  virtual ~TelemetryStore() = default;

  // One transaction. A frame equal to the stored record of (run, attempt, step) is ignored; a
  // different one is DATA_LOSS and nothing is written. RESOURCE_EXHAUSTED: quota or disk full.
  virtual Status append(const std::vector<model::TelemetryFrame>& frames) = 0;
  // Ascending by step; attempt 0: the newest attempt that has the step. At most max_frames evenly
  // chosen.
  struct Range {
    Uuid run;
    std::uint32_t attempt = 0, first_step = 0, last_step = 0xFFFFFFFF, max_frames = 2000;
  };
  struct Frames {
    std::vector<model::TelemetryFrame> frames;
    std::uint32_t total = 0;
  };
  virtual Result<Frames> read(const Range& range) = 0;
  // The first records of the range, about max_frames, none left out between them.
  struct Part {
    std::vector<model::TelemetryFrame> frames;
    std::uint64_t next_step = 0;  // the range's rest begins here; past 2^32: there is none
    // Of the run, by thin and erase since the start: where it is another than a part before had,
    // there are records missing between them.
    std::uint64_t cuts = 0;
  };
  virtual Result<Part> read_part(const Range& range) = 0;
  virtual Result<SeriesAnswer> series(const SeriesQuery& query) = 0;
  struct Use {
    std::uint64_t raw_frames = 0, thinned_frames = 0;
    std::uint64_t raw_bytes = 0, rollup_bytes = 0;
  };
  virtual Result<Use> use(const Uuid& run) = 0;
  virtual Result<Use> use_of_all() = 0;
  // Drops the raw records of a run that gets no more of them; rollups stay. Bytes freed.
  virtual Result<std::uint64_t> thin(const Uuid& run) = 0;
  virtual Result<std::uint64_t> runs_thinned() = 0;
  // used: without pages that are free for new records.
  struct Room {
    std::uint64_t file_bytes = 0, used_bytes = 0, quota_bytes = 0;
  };
  virtual Result<Room> room() = 0;
  virtual Result<std::uint64_t> size_bytes() = 0;
  // All records of a run, for good. How many they were.
  virtual Result<std::uint64_t> erase(const Uuid& run) = 0;
};

// Blobs: files by SHA-256 under one folder; written temp + fsync + rename. Thread-safe.
class BlobStore {
 public:
  virtual ~BlobStore() = default;
  virtual Result<Hash> put(std::string_view content) = 0;
  // Moves a finished file in. INVALID_ARGUMENT where its hash differs.
  virtual Status adopt(const std::string& path, const Hash& hash) = 0;
  virtual Result<std::string> get(const Hash& hash) = 0;  // NOT_FOUND
  virtual Result<std::string> path(const Hash& hash) = 0;
  virtual bool has(const Hash& hash) = 0;
  struct Entry {
    Hash hash;
    std::uint64_t bytes = 0;
    std::int64_t written_us = 0;  // or asked for by put, adopt or has, the later
  };
  virtual Result<std::vector<Entry>> list() = 0;
  // Where it was neither written nor asked for since; false: kept, or not there.
  virtual Result<bool> remove_unused(const Hash& hash, std::int64_t since_us) = 0;
};

}  // namespace odt::store
