// Credentials and the audit log in ControlEngine.
#include "store/control_engine_put.h"

namespace odt::store {
namespace {

constexpr std::uint32_t kMostPruned = 2000;

}  // namespace

Status ControlEngine::apply(Transaction& tx, const PutCredential& c) {
  if (c.value.id.is_zero()) return absl::InvalidArgumentError("credential has no key");
  return put(tx, Kind::kCredential, c.value.id.str(), c.value);
}

Result<std::vector<model::Credential>> ControlEngine::credentials() {
  ODT_ASSIGN(const std::vector<Row> found,
             rows_->list(Kind::kCredential, std::nullopt, false, 100'000));
  std::vector<model::Credential> out;
  for (const Row& row : found) {
    ODT_ASSIGN(model::Credential one, from_body<model::Credential>(row.body));
    out.push_back(std::move(one));
  }
  return out;
}

// 0: there is none.
Result<std::uint64_t> ControlEngine::last_audit() {
  ODT_ASSIGN(const std::vector<Row> last, rows_->list(Kind::kAudit, std::nullopt, true, 1));
  if (last.empty()) return std::uint64_t{0};
  ODT_ASSIGN(const auto entry, from_body<model::AuditEntry>(last.front().body));
  return entry.seq;
}

Status ControlEngine::apply(Transaction& tx, const AppendAudit& c) {
  model::AuditEntry entry = c.value;
  ODT_ASSIGN(const std::uint64_t last, last_audit());
  entry.seq = last + 1;
  if (entry.time_us == 0) entry.time_us = tx.time_us;
  return put_record(Kind::kAudit, big_endian(entry.seq, 8), entry);
}

// The newest one stays in any case: its number is what the next one counts from.
Status ControlEngine::apply(Transaction&, const PruneAudit& c) {
  ODT_ASSIGN(const std::uint64_t last, last_audit());
  std::optional<Rows::Position> after;
  // Mostly the oldest one stays, and the others need not be read.
  for (std::uint32_t limit : {1u, kMostPruned}) {
    ODT_ASSIGN(const std::vector<Row> oldest, rows_->list(Kind::kAudit, after, false, limit));
    for (const Row& row : oldest) {
      ODT_ASSIGN(const auto entry, from_body<model::AuditEntry>(row.body));
      const bool over = c.keep != 0 && entry.seq + c.keep <= last;
      if (entry.seq == last || (!over && entry.time_us >= c.before_us)) return {};
      ODT_TRY(rows_->erase(Kind::kAudit, row.key));
      after = Rows::Position{row.sort, row.key};
    }
  }
  return {};
}

Result<Page<model::AuditEntry>> ControlEngine::audit(const ListQuery& q) {
  Page<model::AuditEntry> page;
  ODT_ASSIGN(const std::vector<Row> found, page_rows(Kind::kAudit, q, true, page.next_token));
  for (const Row& row : found) {
    ODT_ASSIGN(model::AuditEntry entry, from_body<model::AuditEntry>(row.body));
    page.items.push_back(std::move(entry));
  }
  return page;
}

}  // namespace odt::store
