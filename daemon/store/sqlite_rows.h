#pragma once

#include <memory>

#include "store/rows.h"
#include "store/sqlite_db.h"

namespace odt::store {

// Rows in control.db. Inside of the room.
class SqliteRows final : public Rows {
 public:
  static Result<std::unique_ptr<SqliteRows>> create(std::unique_ptr<SqliteDb> db);

  Status begin() override { return db_->begin(); }
  Status commit() override { return db_->commit(); }
  void rollback() override { db_->rollback(); }
  Result<std::optional<Row>> get(Kind kind, const std::string& key) override;
  Status put(Kind kind, const Row& row) override;
  Status erase(Kind kind, const std::string& key) override;
  Result<std::vector<Row>> list(Kind kind, const std::optional<Position>& after, bool descending,
                                std::uint32_t limit) override;
  Result<std::vector<Row>> with_prefix(Kind kind, const std::string& prefix, bool last) override;
  Result<std::vector<Row>> active(Kind kind) override;
  Status each(const std::function<void(Kind, const Row&)>& seen) override;
  Status append_event(const EventRow& event) override;
  Result<std::vector<EventRow>> events(std::int64_t first, std::uint32_t limit) override;
  Result<SeqRange> event_range() override;
  Result<std::optional<std::string>> request(const std::string& actor,
                                             const std::string& request_id,
                                             std::int64_t not_before_us) override;
  Status put_request(const std::string& actor, const std::string& request_id, std::int64_t time_us,
                     const std::string& response) override;
  Status forget_requests(std::int64_t before_us) override;

  // Facts about the database itself (table meta).
  Result<std::optional<std::string>> meta(const std::string& key);
  Status put_meta(const std::string& key, const std::string& value);
  SqliteDb& db() { return *db_; }

 private:
  explicit SqliteRows(std::unique_ptr<SqliteDb> db) : db_(std::move(db)) {}
  Result<std::vector<Row>> read_rows(Statement& statement);

  std::unique_ptr<SqliteDb> db_;
  Statement get_, put_, erase_, list_up_, list_down_, prefix_up_, prefix_last_, active_;
  Statement append_event_, events_, request_, put_request_, forget_, meta_, put_meta_;
};

}  // namespace odt::store
