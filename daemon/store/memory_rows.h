#pragma once

#include <functional>
#include <map>
#include <utility>

#include "store/rows.h"

namespace odt::store {

// Rows in ordered maps; a rollback undoes change by change. Inside of the room.
class MemoryRows final : public Rows {
 public:
  Status begin() override;
  Status commit() override;
  void rollback() override;
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

 private:
  struct Request {
    std::int64_t time_us = 0;
    std::string response;
  };
  using RequestKey = std::pair<std::string, std::string>;

  std::map<std::pair<Kind, std::string>, Row> rows_;
  std::vector<EventRow> events_;
  std::map<RequestKey, Request> requests_;
  std::vector<std::function<void()>> undo_;
};

}  // namespace odt::store
