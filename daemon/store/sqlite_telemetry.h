#pragma once

#include <map>
#include <memory>

#include "store/sqlite_db.h"
#include "store/store.h"

namespace odt::store {

// telemetry.db: synchronous=NORMAL, one row a frame. Concurrency: one thread.
class SqliteTelemetryStore final : public TelemetryStore {
 public:
  // quota_bytes: upper bound of the file; at least 1 MiB. Errors: DATA_LOSS (corrupt),
  // FAILED_PRECONDITION (newer schema), those of SqliteDb.
  static Result<std::unique_ptr<SqliteTelemetryStore>> open(const std::string& path,
                                                            std::uint64_t quota_bytes);
  Status append(const std::vector<model::TelemetryFrame>& frames) override;
  Result<Frames> read(const Range& range) override;
  Result<std::uint64_t> size_bytes() override;
  Result<std::uint64_t> erase(const Uuid& run) override;

 private:
  explicit SqliteTelemetryStore(std::unique_ptr<SqliteDb> db) : db_(std::move(db)) {}
  Status prepare();
  Status set_quota(std::uint64_t quota_bytes);
  Status append_all(const std::vector<model::TelemetryFrame>& frames);
  Status append_one(const model::TelemetryFrame& frame);
  Status insert(std::int64_t run, const model::TelemetryFrame& frame);
  // Numbers of run and source, made where missing.
  Result<std::int64_t> run_number(const Uuid& run, bool create);
  Result<std::int64_t> source_number(const BoardUid& uid, std::uint64_t boot_id);
  Result<std::optional<model::TelemetryFrame>> stored(std::int64_t run,
                                                      const model::TelemetryFrame& frame);
  Status read_row(Statement& statement, model::TelemetryFrame& frame);

  std::unique_ptr<SqliteDb> db_;
  Statement find_run_, add_run_, find_source_, add_source_, insert_, get_;
  Statement count_attempt_, count_newest_, range_attempt_, range_newest_;
  std::map<Uuid, std::int64_t> runs_;
  std::map<std::pair<BoardUid, std::uint64_t>, std::int64_t> sources_;
};

}  // namespace odt::store
