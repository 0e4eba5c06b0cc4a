#include "store/sqlite_rows.h"

#include <absl/strings/str_cat.h>

#include "store/body_codec.h"

namespace odt::store {
namespace {

std::int64_t number(Kind kind) { return static_cast<std::int64_t>(kind); }

// Above every key with this prefix: what follows a prefix is at most 8 bytes long.
std::string end_of_prefix(const std::string& prefix) { return prefix + std::string(16, '\xFF'); }

constexpr const char* kColumns = "SELECT key, sort, active, etag, version, body FROM resource ";

}  // namespace

Result<std::unique_ptr<SqliteRows>> SqliteRows::create(std::unique_ptr<SqliteDb> db) {
  std::unique_ptr<SqliteRows> rows(new SqliteRows(std::move(db)));
  SqliteRows& r = *rows;
  const std::string c = kColumns;
  const std::pair<Statement*, std::string> statements[] = {
      {&r.get_, c + "WHERE kind=?1 AND key=?2"},
      {&r.put_,
       "INSERT OR REPLACE INTO resource (kind, key, sort, active, etag, version, body) "
       "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"},
      {&r.erase_, "DELETE FROM resource WHERE kind=?1 AND key=?2"},
      {&r.list_up_,
       c + "WHERE kind=?1 AND (?2=0 OR (sort, key) > (?3, ?4)) ORDER BY sort, key LIMIT ?5"},
      {&r.list_down_, c + "WHERE kind=?1 AND (?2=0 OR (sort, key) < (?3, ?4)) "
                          "ORDER BY sort DESC, key DESC LIMIT ?5"},
      {&r.prefix_up_, c + "WHERE kind=?1 AND key>=?2 AND key<?3 ORDER BY key"},
      {&r.prefix_last_, c + "WHERE kind=?1 AND key>=?2 AND key<?3 ORDER BY key DESC LIMIT 1"},
      {&r.active_, c + "WHERE kind=?1 AND active=1 ORDER BY key"},
      {&r.append_event_,
       "INSERT INTO event (seq, time_us, actor, command_id, kind, key, deleted) "
       "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"},
      {&r.events_,
       "SELECT seq, time_us, actor, command_id, kind, key, deleted FROM event "
       "WHERE seq>=?1 ORDER BY seq LIMIT ?2"},
      {&r.request_,
       "SELECT response FROM request WHERE actor=?1 AND request_id=?2 AND time_us>=?3"},
      {&r.put_request_,
       "INSERT OR REPLACE INTO request (actor, request_id, time_us, response) "
       "VALUES (?1, ?2, ?3, ?4)"},
      {&r.forget_, "DELETE FROM request WHERE time_us<?1"},
      {&r.meta_, "SELECT value FROM meta WHERE key=?1"},
      {&r.put_meta_, "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)"},
  };
  for (const auto& [statement, sql] : statements) {
    ODT_ASSIGN(*statement, r.db_->prepare(sql));
  }
  return rows;
}

Result<std::vector<Row>> SqliteRows::read_rows(Statement& statement) {
  std::vector<Row> rows;
  while (true) {
    ODT_ASSIGN(const bool more, statement.step());
    if (!more) break;
    if (statement.column_int(4) > kBodyVersion) {
      const std::int64_t version = statement.column_int(4);
      statement.reset();
      return absl::FailedPreconditionError(
          absl::StrCat(db_->path(), ": a record has layout version ", version,
                       ", this odtd supports ", kBodyVersion, "; install the newer odt-fleet"));
    }
    rows.push_back({statement.column_bytes(0), statement.column_bytes(1),
                    statement.column_int(2) != 0, statement.column_int(3),
                    statement.column_bytes(5)});
  }
  statement.reset();
  return rows;
}

Result<std::optional<Row>> SqliteRows::get(Kind kind, const std::string& key) {
  get_.bind(1, number(kind)).bind_blob(2, key);
  ODT_ASSIGN(std::vector<Row> rows, read_rows(get_));
  if (rows.empty()) return std::optional<Row>();
  return std::optional<Row>(std::move(rows.front()));
}

Status SqliteRows::put(Kind kind, const Row& row) {
  return put_.bind(1, number(kind))
      .bind_blob(2, row.key)
      .bind_blob(3, row.sort)
      .bind(4, row.active ? 1 : 0)
      .bind(5, row.etag)
      .bind(6, kBodyVersion)
      .bind_blob(7, row.body)
      .run();
}

Status SqliteRows::erase(Kind kind, const std::string& key) {
  return erase_.bind(1, number(kind)).bind_blob(2, key).run();
}

Result<std::vector<Row>> SqliteRows::list(Kind kind, const std::optional<Position>& after,
                                          bool descending, std::uint32_t limit) {
  Statement& statement = descending ? list_down_ : list_up_;
  statement.bind(1, number(kind)).bind(2, after ? 1 : 0);
  statement.bind_blob(3, after ? after->sort : "").bind_blob(4, after ? after->key : "");
  statement.bind(5, limit);
  return read_rows(statement);
}

Result<std::vector<Row>> SqliteRows::with_prefix(Kind kind, const std::string& prefix, bool last) {
  Statement& statement = last ? prefix_last_ : prefix_up_;
  statement.bind(1, number(kind)).bind_blob(2, prefix).bind_blob(3, end_of_prefix(prefix));
  return read_rows(statement);
}

Result<std::vector<Row>> SqliteRows::active(Kind kind) {
  active_.bind(1, number(kind));
  return read_rows(active_);
}

Status SqliteRows::each(const std::function<void(Kind, const Row&)>& seen) {
  ODT_ASSIGN(Statement all,
             db_->prepare("SELECT kind, key, sort, active, etag, body FROM resource"));
  while (true) {
    ODT_ASSIGN(const bool more, all.step());
    if (!more) return {};
    seen(static_cast<Kind>(all.column_int(0)),
         {all.column_bytes(1), all.column_bytes(2), all.column_int(3) != 0, all.column_int(4),
          all.column_bytes(5)});
  }
}

Status SqliteRows::append_event(const EventRow& event) {
  return append_event_.bind(1, event.seq)
      .bind(2, event.time_us)
      .bind_text(3, event.actor)
      .bind_blob(4, event.command_id.str())
      .bind(5, number(event.kind))
      .bind_blob(6, event.key)
      .bind(7, event.deleted ? 1 : 0)
      .run();
}

Result<std::vector<EventRow>> SqliteRows::events(std::int64_t first, std::uint32_t limit) {
  std::vector<EventRow> rows;
  events_.bind(1, first).bind(2, limit);
  while (true) {
    ODT_ASSIGN(const bool more, events_.step());
    if (!more) break;
    EventRow row;
    row.seq = events_.column_int(0);
    row.time_us = events_.column_int(1);
    row.actor = events_.column_bytes(2);
    if (auto id = Uuid::from_bytes(events_.column_bytes(3)); id.ok()) row.command_id = *id;
    row.kind = static_cast<Kind>(events_.column_int(4));
    row.key = events_.column_bytes(5);
    row.deleted = events_.column_int(6) != 0;
    rows.push_back(std::move(row));
  }
  events_.reset();
  return rows;
}

Result<Rows::SeqRange> SqliteRows::event_range() {
  ODT_ASSIGN(const std::int64_t first, db_->query_int("SELECT coalesce(min(seq), 1) FROM event"));
  ODT_ASSIGN(const std::int64_t next, db_->query_int("SELECT coalesce(max(seq), 0)+1 FROM event"));
  return SeqRange{first, next};
}

Result<std::optional<std::string>> SqliteRows::request(const std::string& actor,
                                                       const std::string& request_id,
                                                       std::int64_t not_before_us) {
  request_.bind_text(1, actor).bind_text(2, request_id).bind(3, not_before_us);
  ODT_ASSIGN(const bool row, request_.step());
  std::optional<std::string> response;
  if (row) response = request_.column_bytes(0);
  request_.reset();
  return response;
}

Status SqliteRows::put_request(const std::string& actor, const std::string& request_id,
                               std::int64_t time_us, const std::string& response) {
  return put_request_.bind_text(1, actor)
      .bind_text(2, request_id)
      .bind(3, time_us)
      .bind_blob(4, response)
      .run();
}

Status SqliteRows::forget_requests(std::int64_t before_us) {
  return forget_.bind(1, before_us).run();
}

Result<std::optional<std::string>> SqliteRows::meta(const std::string& key) {
  meta_.bind_text(1, key);
  ODT_ASSIGN(const bool row, meta_.step());
  std::optional<std::string> value;
  if (row) value = meta_.column_bytes(0);
  meta_.reset();
  return value;
}

Status SqliteRows::put_meta(const std::string& key, const std::string& value) {
  return put_meta_.bind_text(1, key).bind_blob(2, value).run();
}

}  // namespace odt::store
