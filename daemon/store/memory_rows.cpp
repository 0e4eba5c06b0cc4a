#include "store/memory_rows.h"

#include <algorithm>

namespace odt::store {
namespace {

// Restores one entry of a map to what it was.
template <typename Map>
std::function<void()> undo_of(Map& map, const typename Map::key_type& key) {
  const auto it = map.find(key);
  if (it == map.end()) return [&map, key] { map.erase(key); };
  return [&map, key, old = it->second] { map[key] = old; };
}

}  // namespace

Status MemoryRows::begin() {
  undo_.clear();
  return {};
}

Status MemoryRows::commit() {
  undo_.clear();
  return {};
}

void MemoryRows::rollback() {
  for (auto it = undo_.rbegin(); it != undo_.rend(); ++it) (*it)();
  undo_.clear();
}

Result<std::optional<Row>> MemoryRows::get(Kind kind, const std::string& key) {
  const auto it = rows_.find({kind, key});
  if (it == rows_.end()) return std::optional<Row>();
  return std::optional<Row>(it->second);
}

Status MemoryRows::put(Kind kind, const Row& row) {
  undo_.push_back(undo_of(rows_, {kind, row.key}));
  rows_[{kind, row.key}] = row;
  return {};
}

Status MemoryRows::erase(Kind kind, const std::string& key) {
  undo_.push_back(undo_of(rows_, {kind, key}));
  rows_.erase({kind, key});
  return {};
}

Result<std::vector<Row>> MemoryRows::list(Kind kind, const std::optional<Position>& after,
                                          bool descending, std::uint32_t limit) {
  const auto before = [descending](const std::string& sort_a, const std::string& key_a,
                                   const std::string& sort_b, const std::string& key_b) {
    return descending ? std::tie(sort_b, key_b) < std::tie(sort_a, key_a)
                      : std::tie(sort_a, key_a) < std::tie(sort_b, key_b);
  };
  std::vector<Row> out;
  for (auto it = rows_.lower_bound({kind, ""}); it != rows_.end() && it->first.first == kind; ++it)
    if (!after || before(after->sort, after->key, it->second.sort, it->second.key))
      out.push_back(it->second);
  std::sort(out.begin(), out.end(),
            [&](const Row& a, const Row& b) { return before(a.sort, a.key, b.sort, b.key); });
  if (out.size() > limit) out.resize(limit);
  return out;
}

Result<std::vector<Row>> MemoryRows::with_prefix(Kind kind, const std::string& prefix, bool last) {
  std::vector<Row> out;
  for (auto it = rows_.lower_bound({kind, prefix});
       it != rows_.end() && it->first.first == kind && it->first.second.starts_with(prefix); ++it)
    out.push_back(it->second);
  if (last && out.size() > 1) out.erase(out.begin(), out.end() - 1);
  return out;
}

Result<std::vector<Row>> MemoryRows::active(Kind kind) {
  std::vector<Row> out;
  for (auto it = rows_.lower_bound({kind, ""}); it != rows_.end() && it->first.first == kind; ++it)
    if (it->second.active) out.push_back(it->second);
  return out;
}

Status MemoryRows::each(const std::function<void(Kind, const Row&)>& seen) {
  for (const auto& [key, row] : rows_) seen(key.first, row);
  return {};
}

Status MemoryRows::append_event(const EventRow& event) {
  undo_.push_back([this] { events_.pop_back(); });
  events_.push_back(event);
  return {};
}

Result<std::vector<EventRow>> MemoryRows::events(std::int64_t first, std::uint32_t limit) {
  std::vector<EventRow> out;
  for (auto i = static_cast<std::size_t>(first - 1); i < events_.size() && out.size() < limit; ++i)
    out.push_back(events_[i]);
  return out;
}

Result<Rows::SeqRange> MemoryRows::event_range() {
  return SeqRange{1, static_cast<std::int64_t>(events_.size()) + 1};
}

Result<std::optional<std::string>> MemoryRows::request(const std::string& actor,
                                                       const std::string& request_id,
                                                       std::int64_t not_before_us) {
  const auto it = requests_.find({actor, request_id});
  if (it == requests_.end() || it->second.time_us < not_before_us)
    return std::optional<std::string>();
  return std::optional<std::string>(it->second.response);
}

Status MemoryRows::put_request(const std::string& actor, const std::string& request_id,
                               std::int64_t time_us, const std::string& response) {
  undo_.push_back(undo_of(requests_, {actor, request_id}));
  requests_[{actor, request_id}] = {time_us, response};
  return {};
}

Status MemoryRows::forget_requests(std::int64_t before_us) {
  for (auto it = requests_.begin(); it != requests_.end();) {
    if (it->second.time_us >= before_us) {
      ++it;
      continue;
    }
    undo_.push_back(undo_of(requests_, it->first));
    it = requests_.erase(it);
  }
  return {};
}

}  // namespace odt::store
