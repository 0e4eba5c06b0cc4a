#include <absl/strings/str_cat.h>

#include <algorithm>

#include "fleet/registry.h"

// What people change of boards.
namespace odt::fleet {
namespace {

constexpr std::size_t kMaxLabels = 64;  // of one board
constexpr std::size_t kMaxPlace = 64;   // bytes

}  // namespace

// It may stand in a command line of a power profile: nothing there takes it for an option.
Status Registry::check_place(const std::string& place, const BoardUid& except) const {
  if (place.empty()) return absl::OkStatus();
  const bool control = std::any_of(place.begin(), place.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) == 0x7F;
  });
  if (place.size() > kMaxPlace || control || place.front() == '-')
    return with_reason(absl::InvalidArgumentError(absl::StrCat(
                           "place: ", place.size(), " bytes; 1 to ", kMaxPlace,
                           " without control characters, not beginning with '-', are allowed")),
                       "BAD_PLACE", "Choose another, as \"rig 7\".", "place");
  for (const auto& [uid, entry] : boards_)
    if (uid != except && entry.stored && entry.board.place == place)
      return with_reason(
          absl::AlreadyExistsError("place '" + place + "' is that of board " + entry.board.name),
          "PLACE_TAKEN",
          "Move that board first (odtctl board place " + entry.board.name +
              " \"\"), or put this one there instead: odtctl board replace " + entry.board.name +
              " BOARD.",
          "place");
  return absl::OkStatus();
}

asio::awaitable<Result<model::Board>> Registry::edit(CallContext ctx, BoardUid uid,
                                                     BoardEdit edit) {
  const auto self = shared_from_this();
  auto guard = co_await board_writes_.lock();
  const auto it = boards_.find(uid);
  if (it == boards_.end() || !it->second.stored)
    co_return absl::NotFoundError("board " + uid.hex() + " is not known");
  model::Board value = it->second.board;
  if (edit.name) {
    const std::string& name = *edit.name;
    if (name.empty() || name.size() > 64 || sanitize_name(name, 64) != name)
      co_return absl::InvalidArgumentError(
          "name: 1 to 64 letters, digits, '.', '_' or '-' are allowed");
    if (name_taken(name, uid))
      co_return absl::AlreadyExistsError("name '" + name + "' belongs to another board");
    value.name = name;
  }
  std::vector<store::Change> extra;
  if (edit.place && *edit.place != value.place) {
    const Status place = check_place(*edit.place, uid);
    if (!place.ok()) co_return place;
    model::LabEvent event;
    event.board = uid;
    event.kind = model::LabKind::kPlaced;
    event.previous = value.place;
    event.place = *edit.place;
    extra.push_back(store::AppendLabEvent{std::move(event)});
    value.place = *edit.place;
  }
  for (const auto& [key, text] : edit.set_labels) {
    if (key.empty() || key.size() > 64 || text.size() > 256)
      co_return absl::InvalidArgumentError("label: key of 1 to 64, value of at most 256 bytes");
    value.labels[key] = text;
  }
  for (const auto& key : edit.remove_labels) value.labels.erase(key);
  if (value.labels.size() > kMaxLabels)
    co_return absl::InvalidArgumentError("labels: the board would have " +
                                         std::to_string(value.labels.size()) + "; limit " +
                                         std::to_string(kMaxLabels));
  value.meta.etag = edit.etag;
  value.status = it->second.session ? model::BoardStatus::kOnline : model::BoardStatus::kOffline;
  auto stored =
      co_await put_board(value, ctx.actor, ctx.command_id, ctx.request_id, std::move(extra));
  if (!stored.ok()) co_return stored.status();
  BoardEntry& entry = boards_[uid];
  entry.board.name = value.name;
  entry.board.place = value.place;
  entry.board.labels = value.labels;
  entry.board.meta = stored->meta;
  publish_view();
  co_return live(entry);
}

std::vector<BoardUid> Registry::reserved() const {
  std::vector<BoardUid> out;
  for (const auto& [uid, entry] : boards_)
    if (entry.stored && !entry.board.reservation.owner.empty()) out.push_back(uid);
  return out;
}

asio::awaitable<Result<std::vector<model::Board>>> Registry::change(CallContext ctx,
                                                                    std::vector<BoardUid> uids,
                                                                    Edit edit) {
  const auto self = shared_from_this();
  auto guard = co_await board_writes_.lock();
  std::vector<model::Board> values;
  for (const BoardUid& uid : uids) {
    const auto it = boards_.find(uid);
    if (it == boards_.end() || !it->second.stored)
      co_return with_reason(absl::NotFoundError("board " + uid.hex() + " is not known"),
                            "BOARD_NOT_FOUND", "List the boards: odtctl board list.");
    values.push_back(it->second.board);
    values.back().meta.etag = 0;
    values.back().status =
        it->second.session ? model::BoardStatus::kOnline : model::BoardStatus::kOffline;
  }
  std::vector<model::Board*> pointers;
  for (auto& value : values) pointers.push_back(&value);
  auto extra = edit(pointers);
  if (!extra.ok()) co_return extra.status();
  store::Batch batch;
  batch.actor = ctx.actor;
  batch.command_id = ctx.command_id;
  batch.request_id = ctx.request_id;
  if (!batch.request_id.empty()) batch.response = uids.front().str();
  for (const auto& value : values) {
    batch.changes.push_back(store::PutBoard{value});
    std::get<store::PutBoard>(batch.changes.back()).value.link = {};
  }
  for (auto& change : *extra) batch.changes.push_back(std::move(change));
  auto events = co_await control_.commit(std::move(batch));
  if (!events.ok()) co_return events.status();
  std::vector<model::Board> out;
  for (const auto& value : values) {
    BoardEntry& entry = boards_[value.uid];
    entry.board.place = value.place;
    entry.board.labels = value.labels;
    entry.board.reservation = value.reservation;
    entry.board.maintenance = value.maintenance;
    entry.board.target_snapshot = value.target_snapshot;
    entry.board.power.last_us = value.power.last_us;
    for (const auto& event : *events)
      if (const auto* body = std::get_if<model::Board>(&event.body); body && body->uid == value.uid)
        entry.board.meta = body->meta;
    out.push_back(live(entry));
  }
  publish_view();
  co_return out;
}

}  // namespace odt::fleet
