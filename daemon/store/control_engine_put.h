#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "store/body_codec.h"
#include "store/control_engine.h"
#include "store/keys.h"

// How ControlEngine writes one resource or record. For its own .cpp files.
namespace odt::store {

template <typename T>
Status ControlEngine::put(Transaction& tx, Kind kind, const std::string& key, T value) {
  constexpr bool kEvent = std::is_constructible_v<model::EventBody, T>;
  ODT_ASSIGN(const std::optional<Row> row, rows_->get(kind, key));
  ODT_TRY(check_etag(tx, kind, key, value.meta.etag, row ? row->etag : 0));
  model::Meta& meta = value.meta;
  if (row) {
    ODT_ASSIGN(const T stored, from_body<T>(row->body));
    if (meta.create_time_us == 0) meta.create_time_us = stored.meta.create_time_us;
    if (meta.created_by.empty()) meta.created_by = stored.meta.created_by;
  }
  if (meta.create_time_us == 0) meta.create_time_us = tx.time_us;
  if (meta.created_by.empty()) meta.created_by = tx.batch.actor;
  if (meta.gateway_id.is_zero()) meta.gateway_id = identity_.gateway_id;
  if (kEvent) meta.etag = tx.next_seq;
  ODT_TRY(rows_->put(kind, {key, sort_of(value), active_of(value), meta.etag, to_body(value)}));
  if constexpr (kEvent)
    return append(tx, kind, key, std::move(value));
  else
    return {};
}

template <typename T>
Status ControlEngine::put_record(Kind kind, const std::string& key, const T& value) {
  return rows_->put(kind, {key, {}, false, 0, to_body(value)});
}

template <typename E>
Status ControlEngine::append_change(Transaction& tx, Kind kind, const Uuid& parent, E event) {
  ODT_ASSIGN(const std::vector<Row> last, rows_->with_prefix(kind, parent.str(), true));
  event.seq = 1;
  if (!last.empty()) {
    ODT_ASSIGN(const E previous, from_body<E>(last.back().body));
    event.seq = previous.seq + 1;
  }
  if (event.time_us == 0) event.time_us = tx.time_us;
  if (event.actor.empty()) event.actor = tx.batch.actor;
  if (event.command_id.is_zero()) event.command_id = tx.batch.command_id;
  const std::string key = run_event_key(parent, event.seq);
  ODT_TRY(put_record(kind, key, event));
  return append(tx, kind, key, std::move(event));
}

}  // namespace odt::store
