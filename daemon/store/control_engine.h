#pragma once

#include <map>
#include <memory>
#include <set>

#include "store/rows.h"
#include "store/store.h"

namespace odt::store {

struct TrashKind;
struct TrashRecord;

// The rules of store.h over any Rows: numbering, etags, transitions, aliases, refusals.
//
// Concurrency: one thread. Limitations: a resource that was deleted shows in events_from as
// Deleted, also at the numbers of its earlier changes.
class ControlEngine : public ControlStore {
 public:
  // `identity` and `rows` belong together; next_seq is read from rows by load().
  ControlEngine(std::unique_ptr<Rows> rows, const Clock& clock, Identity identity);
  Status load();

  Identity identity() const override { return identity_; }
  std::int64_t next_seq() const override { return next_seq_; }
  Result<std::vector<model::Event>> commit(Batch batch) override;

  Result<model::Board> board(const BoardUid& uid) override;
  Result<Page<model::Board>> boards(const ListQuery& q) override;
  Result<Page<model::Port>> ports(const ListQuery& q) override;
  Result<model::Port> port(const std::string& path) override;
  Result<model::Model> model(const Hash& hash) override;
  Result<Page<model::Model>> models(const ListQuery& q) override;
  Result<model::Dataset> dataset(const Uuid& id) override;
  Result<Page<model::Dataset>> datasets(const ListQuery& q) override;
  Result<model::DerivedSamples> derived(const Hash& content, const Hash& model) override;
  Result<model::Snapshot> snapshot(const Hash& hash) override;
  Result<Page<model::Snapshot>> snapshots(const ListQuery& q) override;
  Result<model::Evaluation> evaluation(const Uuid& id) override;
  Result<Page<model::Evaluation>> evaluations(const ListQuery& q) override;
  Result<model::Job> job(const Uuid& id) override;
  Result<Page<model::Job>> jobs(const ListQuery& q) override;
  Result<model::Run> run(const Uuid& id) override;
  Result<Page<model::Run>> runs(const ListQuery& q) override;
  Result<std::vector<model::Run>> active_runs() override;
  Result<std::vector<model::RunEvent>> run_events(const Uuid& run) override;
  Result<std::vector<model::EpochResult>> epochs(const Uuid& run) override;
  Result<model::Campaign> campaign(const Uuid& id) override;
  Result<Page<model::Campaign>> campaigns(const ListQuery& q) override;
  Result<std::vector<model::Campaign>> active_campaigns() override;
  Result<std::vector<model::CampaignEvent>> campaign_events(const Uuid& campaign) override;
  Result<std::vector<model::CampaignUnit>> campaign_units(const Uuid& campaign) override;
  Result<std::vector<model::CampaignRound>> campaign_rounds(const Uuid& campaign) override;
  Result<model::Alert> alert(const Uuid& id) override;
  Result<Page<model::Alert>> alerts(const ListQuery& q) override;
  Result<model::AlertSettings> alert_settings() override;
  Result<Page<model::Setting>> scoped_settings(const ListQuery& q) override;
  Result<model::Setting> scoped_setting(const model::Setting& which) override;
  Result<std::vector<model::LabEvent>> lab_events(const BoardUid& uid) override;
  Result<std::vector<model::BoardCommand>> open_commands(const BoardUid& uid) override;
  Result<model::Upload> upload(const Uuid& id) override;
  Result<std::string> setting(const std::string& key) override;
  Result<std::vector<model::Credential>> credentials() override;
  Result<Page<model::AuditEntry>> audit(const ListQuery& q) override;
  Result<Page<TrashItem>> trash(const ListQuery& q) override;
  Result<TrashItem> trash_item(const std::string& kind, const std::string& key) override;
  Result<std::set<Hash>> named_hashes(
      const std::set<std::pair<std::string, std::string>>& without) override;
  Result<std::string> find_request(const std::string& actor,
                                   const std::string& request_id) override;
  Result<std::int64_t> first_event_seq() override;
  Result<std::vector<model::Event>> events_from(std::int64_t first, std::uint32_t limit) override;

 protected:
  Rows& rows() { return *rows_; }

 private:
  // One commit under way.
  struct Transaction {
    const Batch& batch;
    std::int64_t time_us;
    std::int64_t next_seq;
    std::vector<model::Event> events;
    // Etags as they were when the transaction began, of what it has changed since.
    std::map<std::pair<Kind, std::string>, std::int64_t> old_etags;
  };

  template <typename T>
  Result<T> get(Kind kind, const std::string& key, const std::string& shown);
  template <typename T>
  Result<Page<T>> list(Kind kind, const ListQuery& q, bool descending);
  template <typename T>
  Result<Page<T>> page_of(Kind kind, const ListQuery& q, bool descending,
                          Result<T> (*convert)(const Row&));
  Result<std::vector<Row>> page_rows(Kind kind, const ListQuery& q, bool descending,
                                     std::string& next_token);
  template <typename T>
  Result<std::vector<T>> all(Result<std::vector<Row>> rows);

  Status carry_out(Transaction& tx);
  Status check_request(const Transaction& tx);
  Status append(Transaction& tx, Kind kind, const std::string& key, model::EventBody body,
                bool deleted = false);
  Status check_etag(Transaction& tx, Kind kind, const std::string& key, std::int64_t etag,
                    std::int64_t stored);
  // Completes meta from the stored row, checks the etag; numbers an event where T has one.
  template <typename T>
  Status put(Transaction& tx, Kind kind, const std::string& key, T value);
  template <typename T>
  Status put_record(Kind kind, const std::string& key, const T& value);

  Status apply(Transaction& tx, const PutBoard& c);
  Status apply(Transaction& tx, const PutPort& c);
  Status apply(Transaction& tx, const PutModel& c);
  Status apply(Transaction& tx, const PutDataset& c);
  Status apply(Transaction& tx, const PutSnapshot& c);
  Status apply(Transaction& tx, const PutEvaluation& c);
  Status apply(Transaction& tx, const PutJob& c);
  Status apply(Transaction& tx, const TransitionRun& c);
  Status apply(Transaction& tx, const UpdateRun& c);
  Status apply(Transaction& tx, const CreateRun& c);
  Status apply(Transaction& tx, const AppendEpoch& c);
  Status apply(Transaction& tx, const AppendWarning& c);
  Status apply(Transaction& tx, const PutCommand& c);
  Status apply(Transaction& tx, const PutDerived& c);
  Status apply(Transaction& tx, const PutUpload& c);
  Status apply(Transaction& tx, const PutSetting& c);
  Status apply(Transaction& tx, const Delete& c);
  Status apply(Transaction& tx, const Trash& c);
  Status apply(Transaction& tx, const Untrash& c);
  Status apply(Transaction& tx, const Purge& c);
  Status drop_aliases(const Row& snapshot);
  template <typename T>
  Status put_back(Transaction& tx, Kind kind, const std::string& key, const std::string& body);
  Status erase_all(Kind kind, const std::string& prefix);
  // Adds the rows that Purge takes with a thing of the trash.
  using RowKeys = std::set<std::pair<Kind, std::string>>;
  Status hanging_on(const TrashKind& kind, const std::string& key, const TrashRecord& record,
                    RowKeys& found);
  Status refuse_if_any_run(Kind kind, const std::string& key);
  Status apply(Transaction& tx, const CreateCampaign& c);
  Status apply(Transaction& tx, const TransitionCampaign& c);
  Status apply(Transaction& tx, const UpdateCampaign& c);
  Status apply(Transaction& tx, const PutCampaignUnit& c);
  Status apply(Transaction& tx, const PutCampaignRound& c);

  Status apply(Transaction& tx, const PutAlert& c);
  Status apply(Transaction& tx, const PutAlertSettings& c);
  Status apply(Transaction& tx, const PutScopedSetting& c);
  Status apply(Transaction& tx, const AppendLabEvent& c);
  Status apply(Transaction& tx, const PutCredential& c);
  Status apply(Transaction& tx, const AppendAudit& c);
  Status apply(Transaction& tx, const PruneAudit& c);
  Result<std::uint64_t> last_audit();

  // Numbers and completes a record of a state change, and stores it under its parent's key.
  template <typename E>
  Status append_change(Transaction& tx, Kind kind, const Uuid& parent, E event);
  Status delete_campaign_parts(const std::string& campaign);
  Status refuse_if_in_campaign(Kind kind, const std::string& key);
  Status take_alias(Transaction& tx, const std::string& alias, const Hash& by);
  Status refuse_if_used(Kind kind, const std::string& key);
  Status refuse_if_snapshots(const std::string& model);
  Result<model::EventBody> body_of(const EventRow& event);

  std::unique_ptr<Rows> rows_;
  const Clock& clock_;
  Identity identity_;
  std::int64_t next_seq_ = 1;
};

}  // namespace odt::store
