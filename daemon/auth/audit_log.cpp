#include "auth/audit_log.h"

#include "auth/book.h"

namespace odt::auth {
namespace {

constexpr std::int64_t kFloodUs = 10'000'000, kPruneUs = 60'000'000;
constexpr std::int64_t kAuditDayUs = 86'400'000'000;
constexpr std::uint32_t kSingly = 5;
constexpr std::size_t kMostAddresses = 1000;
constexpr char kOthers[] = "others";  // beyond kMostAddresses

}  // namespace

AuditLog::AuditLog(store::ControlThread& control, const Clock& clock, AuditOptions options)
    : control_(control), clock_(clock), options_(options) {}

void AuditLog::add_to(store::Batch& batch, model::AuditEntry entry) {
  entry.time_us = clock_.now_us();
  batch.changes.push_back(store::AppendAudit{std::move(entry)});
}

void AuditLog::append(model::AuditEntry entry, std::function<void(const Status&)> done) {
  store::Batch batch;
  batch.actor = entry.actor;
  add_to(batch, std::move(entry));
  control_.commit(std::move(batch),
                  [done = std::move(done)](const auto& events) { done(events.status()); });
}

bool AuditLog::refused(model::AuditEntry entry) {
  {
    const std::lock_guard lock(mutex_);
    std::string address = address_of(entry.peer);
    if (floods_.size() >= kMostAddresses && !floods_.contains(address)) address = kOthers;
    Flood& flood = floods_[address];
    if (flood.seen == 0) flood.since_us = clock_.now_us();
    if (++flood.seen > kSingly) {
      entry.time_us = clock_.now_us();
      ++flood.held;
      flood.last = std::move(entry);
      return false;
    }
  }
  append(std::move(entry), [](const Status&) {});
  return true;
}

void AuditLog::tick() {
  const std::int64_t now = clock_.now_us();
  store::Batch batch;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = floods_.begin(); it != floods_.end();) {
      Flood& flood = it->second;
      if (now - flood.since_us < kFloodUs) {
        ++it;
        continue;
      }
      if (flood.held > 0) {
        flood.last.times = flood.held;
        batch.changes.push_back(store::AppendAudit{std::move(flood.last)});
      }
      it = floods_.erase(it);
    }
    if (now - pruned_us_ >= kPruneUs) {
      pruned_us_ = now;
      batch.changes.push_back(
          store::PruneAudit{now - std::int64_t{options_.days} * kAuditDayUs, options_.most});
    }
  }
  if (!batch.changes.empty()) control_.commit(std::move(batch), [](const auto&) {});
}

}  // namespace odt::auth
