// Delete with undo, and what garbage collection must leave alone.
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "store/body_codec.h"
#include "store/control_engine_put.h"
#include "store/keys.h"

namespace odt::store {
namespace {

constexpr std::size_t kHashDigits = 64;

Result<TrashKind> kind_of(const std::string& name) {
  for (const TrashKind& k : kTrashed)
    if (name == k.name) return k;
  return absl::InvalidArgumentError("nothing of kind '" + name +
                                    "' has a trash; expected board, model, dataset, snapshot, run");
}

// What stands as exactly 64 hex digits.
template <typename F>
void each_hash(std::string_view text, F&& found) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && absl::ascii_isxdigit(static_cast<unsigned char>(text[end]))) ++end;
    if (end - at == kHashDigits)
      if (const auto hash = hash_from_hex(text.substr(at, kHashDigits)); hash.ok()) found(*hash);
    at = end + 1;
  }
}

// What a job read is free when it is over; what it made is named by what it made.
bool is_over(const std::string& job_body) {
  const auto job = from_body<model::Job>(job_body);
  return job.ok() && job->state >= model::Job::State::kSucceeded;
}

std::string name_of(const model::Board& v) { return v.name; }
std::string name_of(const model::Model& v) { return v.name; }
std::string name_of(const model::Dataset& v) { return v.name; }
std::string name_of(const model::Run& v) { return v.spec.name; }
std::string name_of(const model::Snapshot& v) { return v.aliases.empty() ? "" : v.aliases.front(); }

template <typename T>
Result<std::string> name_in(const std::string& body) {
  ODT_ASSIGN(const T value, from_body<T>(body));
  return name_of(value);
}

Result<std::string> name_in(Kind kind, const std::string& body) {
  switch (kind) {
    case Kind::kBoard:
      return name_in<model::Board>(body);
    case Kind::kModel:
      return name_in<model::Model>(body);
    case Kind::kDataset:
      return name_in<model::Dataset>(body);
    case Kind::kRun:
      return name_in<model::Run>(body);
    default:
      return name_in<model::Snapshot>(body);
  }
}

Result<TrashItem> item_of(const Row& row) {
  ODT_ASSIGN(const TrashRecord record, from_body<TrashRecord>(row.body));
  TrashItem item;
  for (const TrashKind& k : kTrashed)
    if (static_cast<std::uint32_t>(k.kind) == record.kind) item.kind = k.name;
  item.key = row.key.substr(1);
  item.name = record.name;
  item.trashed_time_us = record.time_us;
  item.trashed_by = record.actor;
  each_hash(record.body, [&](const Hash& hash) { item.blobs.push_back(hash); });
  return item;
}

}  // namespace

Status ControlEngine::drop_aliases(const Row& snapshot) {
  ODT_ASSIGN(const model::Snapshot value, from_body<model::Snapshot>(snapshot.body));
  for (const std::string& alias : value.aliases) ODT_TRY(rows_->erase(Kind::kAlias, alias));
  return {};
}

// Not a run's own: those are refused by state.
Status ControlEngine::refuse_if_any_run(Kind kind, const std::string& key) {
  constexpr std::uint32_t kPage = 500;
  std::uint64_t count = 0;
  std::string first;
  for (std::optional<Rows::Position> after;;) {
    ODT_ASSIGN(const std::vector<Row> rows, rows_->list(Kind::kRun, after, true, kPage));
    for (const Row& row : rows) {
      ODT_ASSIGN(const model::Run run, from_body<model::Run>(row.body));
      const bool used = kind == Kind::kModel ? run.spec.model_hash.str() == key
                                             : run.spec.dataset_id.str() == key;
      if (used && count++ == 0) first = run.spec.name.empty() ? run.id.hex() : run.spec.name;
    }
    if (rows.size() < kPage) break;
    after = Rows::Position{rows.back().sort, rows.back().key};
  }
  if (count == 0) return {};
  const bool model = kind == Kind::kModel;
  return with_reason(
      absl::FailedPreconditionError(absl::StrCat(
          model ? "model " : "dataset ", show_key(kind, key), " is used by ", count,
          count == 1 ? " run (" : " runs (the newest: ", first, "), which it describes")),
      model ? "MODEL_IN_USE" : "DATASET_IN_USE", "Delete the runs first, or keep it.");
}

Status ControlEngine::apply(Transaction& tx, const Trash& c) {
  ODT_ASSIGN(const TrashKind kind, kind_of(c.kind));
  ODT_ASSIGN(const std::optional<Row> row, rows_->get(kind.kind, c.key));
  if (!row)
    return absl::NotFoundError(absl::StrCat("no ", c.kind, " ", show_key(kind.kind, c.key)));
  ODT_TRY(check_etag(tx, kind.kind, c.key, c.etag, row->etag));
  if (kind.kind == Kind::kRun && row->active)
    return with_reason(
        absl::FailedPreconditionError("run " + show_key(kind.kind, c.key) + " has not ended"),
        "RUN_IN_USE", "Cancel it or wait for its end.");
  ODT_TRY(with_reason(refuse_if_used(kind.kind, c.key), absl::AsciiStrToUpper(c.kind) + "_IN_USE"));
  if (kind.kind == Kind::kModel || kind.kind == Kind::kDataset)
    ODT_TRY(refuse_if_any_run(kind.kind, c.key));
  TrashRecord record;
  record.kind = static_cast<std::uint32_t>(kind.kind);
  ODT_ASSIGN(record.name, name_in(kind.kind, row->body));
  record.actor = tx.batch.actor;
  record.time_us = tx.time_us;
  record.body = row->body;
  if (kind.kind == Kind::kSnapshot) ODT_TRY(drop_aliases(*row));
  ODT_TRY(rows_->put(Kind::kTrash, {trash_key(kind.kind, c.key),
                                    big_endian(static_cast<std::uint64_t>(tx.time_us), 8), false,
                                    row->etag, to_body(record)}));
  ODT_TRY(rows_->erase(kind.kind, c.key));
  return append(tx, kind.kind, c.key, model::Deleted{c.kind, c.key}, true);
}

template <typename T>
Status ControlEngine::put_back(Transaction& tx, Kind kind, const std::string& key,
                               const std::string& body) {
  ODT_ASSIGN(T value, from_body<T>(body));
  value.meta.etag = 0;
  if constexpr (std::is_same_v<T, model::Snapshot>) {
    std::vector<std::string> free;
    for (const std::string& alias : value.aliases) {
      ODT_ASSIGN(const std::optional<Row> holder, rows_->get(Kind::kAlias, alias));
      if (!holder) free.push_back(alias);
    }
    value.aliases = free;
    ODT_ASSIGN(const std::optional<Row> model, rows_->get(Kind::kModel, value.model_hash.str()));
    if (!model)
      return with_reason(absl::FailedPreconditionError(
                             "weights " + value.hash.hex().substr(0, 12) + " belong to model " +
                             value.model_hash.hex().substr(0, 12) + ", which is not there"),
                         "MODEL_UNKNOWN", "Restore the model first, or add it again.");
    return apply(tx, PutSnapshot{std::move(value)});
  } else {
    return put(tx, kind, key, std::move(value));
  }
}

Status ControlEngine::apply(Transaction& tx, const Untrash& c) {
  ODT_ASSIGN(const TrashKind kind, kind_of(c.kind));
  const std::string key = trash_key(kind.kind, c.key);
  ODT_ASSIGN(const std::optional<Row> row, rows_->get(Kind::kTrash, key));
  const std::string shown = absl::StrCat(c.kind, " ", show_key(kind.kind, c.key));
  if (!row) return absl::NotFoundError("no " + shown + " in the trash");
  ODT_ASSIGN(const std::optional<Row> now, rows_->get(kind.kind, c.key));
  if (now)
    return with_reason(absl::AlreadyExistsError(shown + " is there again"), "REPLACED",
                       "Delete that one first, or purge the one in the trash.");
  ODT_ASSIGN(const TrashRecord record, from_body<TrashRecord>(row->body));
  ODT_TRY(rows_->erase(Kind::kTrash, key));
  switch (kind.kind) {
    case Kind::kBoard:
      return put_back<model::Board>(tx, kind.kind, c.key, record.body);
    case Kind::kModel:
      return put_back<model::Model>(tx, kind.kind, c.key, record.body);
    case Kind::kDataset:
      return put_back<model::Dataset>(tx, kind.kind, c.key, record.body);
    case Kind::kSnapshot:
      return put_back<model::Snapshot>(tx, kind.kind, c.key, record.body);
    default:
      return put_back<model::Run>(tx, kind.kind, c.key, record.body);
  }
}

Status ControlEngine::erase_all(Kind kind, const std::string& prefix) {
  ODT_ASSIGN(const std::vector<Row> rows, rows_->with_prefix(kind, prefix, false));
  for (const Row& row : rows) ODT_TRY(rows_->erase(kind, row.key));
  return {};
}

// What hangs on the key belongs to the new one where the thing is there again.
Status ControlEngine::hanging_on(const TrashKind& kind, const std::string& key,
                                 const TrashRecord& record, RowKeys& found) {
  ODT_ASSIGN(const std::optional<Row> again, rows_->get(kind.kind, key));
  if (again) return {};
  const auto add = [&](Kind of, const std::string& prefix, const std::string& end) -> Status {
    ODT_ASSIGN(const std::vector<Row> rows, rows_->with_prefix(of, prefix, false));
    for (const Row& row : rows)
      if (row.key.ends_with(end)) found.insert({of, row.key});
    return {};
  };
  if (kind.kind == Kind::kRun) {
    ODT_TRY(add(Kind::kRunEvent, key, {}));
    return add(Kind::kEpoch, key, {});
  }
  if (kind.kind == Kind::kBoard) {
    ODT_ASSIGN(const BoardUid uid, BoardUid::from_bytes(key));
    return add(Kind::kLabEvent, lab_event_prefix(uid), {});
  }
  if (kind.kind == Kind::kModel) return add(Kind::kDerived, {}, key);
  if (kind.kind == Kind::kDataset) {
    ODT_ASSIGN(const model::Dataset dataset, from_body<model::Dataset>(record.body));
    return add(Kind::kDerived, dataset.content_hash.str(), {});
  }
  return {};
}

Status ControlEngine::apply(Transaction&, const Purge& c) {
  ODT_ASSIGN(const TrashKind kind, kind_of(c.kind));
  const std::string key = trash_key(kind.kind, c.key);
  ODT_ASSIGN(const std::optional<Row> row, rows_->get(Kind::kTrash, key));
  if (!row)
    return absl::NotFoundError(
        absl::StrCat("no ", c.kind, " ", show_key(kind.kind, c.key), " in the trash"));
  ODT_ASSIGN(const TrashRecord record, from_body<TrashRecord>(row->body));
  ODT_TRY(rows_->erase(Kind::kTrash, key));
  RowKeys gone;
  ODT_TRY(hanging_on(kind, c.key, record, gone));
  for (const auto& [of, row_key] : gone) ODT_TRY(rows_->erase(of, row_key));
  return {};
}

Result<Page<TrashItem>> ControlEngine::trash(const ListQuery& q) {
  return page_of<TrashItem>(Kind::kTrash, q, true, item_of);
}

Result<TrashItem> ControlEngine::trash_item(const std::string& kind, const std::string& key) {
  ODT_ASSIGN(const TrashKind k, kind_of(kind));
  ODT_ASSIGN(const std::optional<Row> row, rows_->get(Kind::kTrash, trash_key(k.kind, key)));
  if (!row)
    return absl::NotFoundError(
        absl::StrCat("no ", kind, " ", show_key(k.kind, key), " in the trash"));
  return item_of(*row);
}

Result<std::set<Hash>> ControlEngine::named_hashes(
    const std::set<std::pair<std::string, std::string>>& without) {
  RowKeys left_out;
  for (const auto& [kind, key] : without) {
    ODT_ASSIGN(const TrashKind k, kind_of(kind));
    ODT_ASSIGN(const std::optional<Row> row, rows_->get(Kind::kTrash, trash_key(k.kind, key)));
    if (!row) continue;
    ODT_ASSIGN(const TrashRecord record, from_body<TrashRecord>(row->body));
    left_out.insert({Kind::kTrash, row->key});
    ODT_TRY(hanging_on(k, key, record, left_out));
  }
  std::set<Hash> named;
  ODT_TRY(rows_->each([&](Kind kind, const Row& row) {
    if (kind == Kind::kJob && is_over(row.body)) return;
    if (left_out.contains({kind, row.key})) return;
    each_hash(row.body, [&](const Hash& hash) { named.insert(hash); });
    if (kind != Kind::kAlias) return;
    if (const auto hash = Hash::from_bytes(row.body); hash.ok()) named.insert(*hash);
  }));
  return named;
}

}  // namespace odt::store
