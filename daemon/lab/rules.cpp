#include "lab/rules.h"

#include <absl/strings/str_cat.h>
#include <absl/time/time.h>

#include <algorithm>

namespace odt::lab {
namespace {

using model::LabEvent;
using model::LabKind;

std::string utc(std::int64_t us) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromUnixMicros(us), absl::UTCTimeZone());
}

std::string span(std::int64_t us) {
  const std::int64_t s = std::max<std::int64_t>(1, us / 1'000'000);
  if (s < 120) return absl::StrCat(s, " s");
  if (s < 120 * 60) return absl::StrCat(s / 60, " min");
  if (s < 48 * 3600) return absl::StrCat(s / 3600, " h");
  return absl::StrCat(s / 86'400, " days");
}

// left: also for how long, which changes all the time.
std::string reserved_text(const model::Board& board, std::optional<std::int64_t> left_us) {
  const auto& r = board.reservation;
  return absl::StrCat("board ", board.name, " is reserved by ", r.owner, " until ",
                      utc(r.expire_us), left_us ? " (for another " + span(*left_us) + ")" : "",
                      r.note.empty() ? "" : ": " + r.note);
}

Status reserved_by_other(const model::Board& board, std::int64_t now_us) {
  return with_reason(
      absl::FailedPreconditionError(reserved_text(board, board.reservation.expire_us - now_us)),
      "BOARD_RESERVED",
      "Wait until then, ask " + board.reservation.owner +
          " to release it, or take another board; --owner NAME says whom you work "
          "for; an admin may take it over: odtctl board reserve " +
          board.name + " --take-over.");
}

Status check_duration(std::uint32_t seconds) {
  if (seconds >= 1 && seconds <= kMaxReservation_s) return absl::OkStatus();
  return with_reason(
      absl::InvalidArgumentError(absl::StrCat("duration_s is ", seconds, "; 1 to ",
                                              kMaxReservation_s, " (30 days) are allowed")),
      "BAD_DURATION", "Choose a time in that range; it can be extended.", "duration_s");
}

bool is_others(const model::Board& board, const std::string& whose, std::int64_t now_us) {
  return board.reservation.active(now_us) && board.reservation.owner != whose;
}

Status check_take_over(const model::Board& board, const CallContext& ctx, bool take_over,
                       std::int64_t now_us) {
  if (!is_others(board, ctx.whose(), now_us)) return absl::OkStatus();
  if (!take_over) return reserved_by_other(board, now_us);
  if (ctx.admin) return absl::OkStatus();
  return with_reason(absl::PermissionDeniedError("taking a board over from " +
                                                 board.reservation.owner + " needs the role admin"),
                     "NEEDS_ADMIN", "Ask " + board.reservation.owner + ", or an admin.");
}

LabEvent event_of(const model::Board& board, LabKind kind) {
  LabEvent event;
  event.board = board.uid;
  event.kind = kind;
  event.owner = board.reservation.owner;
  event.note = board.reservation.note;
  event.expire_us = board.reservation.expire_us;
  return event;
}

}  // namespace

Status may_use(const model::Board& board, const std::string& whose, std::int64_t now_us) {
  return is_others(board, whose, now_us) ? reserved_by_other(board, now_us) : absl::OkStatus();
}

model::Reason hold(const model::Board& board, const model::Run& run, std::int64_t now_us) {
  if (board.maintenance.on())
    return {"BOARD_IN_MAINTENANCE",
            absl::StrCat("board ", board.name, " is in maintenance since ",
                         utc(board.maintenance.since_us), ", by ", board.maintenance.actor,
                         board.maintenance.note.empty() ? "" : ": " + board.maintenance.note),
            "It begins when that is over: odtctl board maintenance " + board.name + " off."};
  if (is_others(board, run.whose(), now_us))
    return {"BOARD_RESERVED", reserved_text(board, std::nullopt),
            "It begins when the reservation is over or released."};
  return {};
}

Result<LabEvent> reserve(model::Board& board, const CallContext& ctx, const ReserveAsk& ask,
                         std::int64_t now_us) {
  ODT_TRY(check_duration(ask.duration_s));
  ODT_TRY(check_take_over(board, ctx, ask.take_over, now_us));
  const bool taken = is_others(board, ctx.whose(), now_us);
  const std::string before = taken ? board.reservation.owner : std::string();
  board.reservation = {ctx.whose(), ask.note, ctx.actor, now_us,
                       now_us + std::int64_t{ask.duration_s} * 1'000'000};
  LabEvent event = event_of(board, taken ? LabKind::kTakenOver : LabKind::kReserved);
  event.previous = before;
  return event;
}

Result<LabEvent> extend(model::Board& board, const CallContext& ctx, std::uint32_t duration_s,
                        std::int64_t now_us) {
  ODT_TRY(check_duration(duration_s));
  if (!board.reservation.active(now_us))
    return with_reason(absl::FailedPreconditionError("board " + board.name + " is not reserved"),
                       "NOT_RESERVED",
                       "It may have expired. Reserve it: odtctl board reserve " + board.name + ".");
  ODT_TRY(check_take_over(board, ctx, false, now_us));
  board.reservation.expire_us = now_us + std::int64_t{duration_s} * 1'000'000;
  return event_of(board, LabKind::kExtended);
}

Result<std::optional<LabEvent>> release(model::Board& board, const CallContext& ctx, bool take_over,
                                        std::int64_t now_us) {
  if (!board.reservation.active(now_us)) return std::optional<LabEvent>();
  ODT_TRY(check_take_over(board, ctx, take_over, now_us));
  LabEvent event = event_of(board, LabKind::kReleased);
  board.reservation = {};
  return std::optional<LabEvent>(std::move(event));
}

LabEvent expire(model::Board& board) {
  LabEvent event = event_of(board, LabKind::kExpired);
  board.reservation = {};
  return event;
}

std::optional<LabEvent> set_maintenance(model::Board& board, const CallContext& ctx, bool on,
                                        const std::string& note, std::int64_t now_us) {
  if (on == board.maintenance.on() && (!on || note == board.maintenance.note)) return std::nullopt;
  LabEvent event;
  event.board = board.uid;
  event.kind = on ? LabKind::kMaintenanceOn : LabKind::kMaintenanceOff;
  event.note = note;
  if (!on) {
    board.maintenance = {};
  } else {
    board.maintenance.note = note;
    board.maintenance.actor = ctx.whose();
    if (board.maintenance.since_us == 0) board.maintenance.since_us = now_us;
  }
  return event;
}

Result<Replacement> replace(model::Board& old_board, model::Board& new_board) {
  if (!new_board.place.empty())
    return with_reason(absl::FailedPreconditionError("board " + new_board.name + " stands at '" +
                                                     new_board.place + "' already"),
                       "PLACE_TAKEN",
                       "Free it first: odtctl board place " + new_board.name + " \"\".");
  Replacement out;
  out.of_old.board = out.of_new.other = old_board.uid;
  out.of_new.board = out.of_old.other = new_board.uid;
  out.of_old.kind = LabKind::kReplaced;
  out.of_new.kind = LabKind::kReplaces;
  out.of_old.place = out.of_new.place = old_board.place;
  new_board.place = std::exchange(old_board.place, {});
  for (auto& [key, value] : old_board.labels) new_board.labels[key] = value;
  old_board.labels.clear();
  if (!old_board.target_snapshot.is_zero())
    new_board.target_snapshot = std::exchange(old_board.target_snapshot, Hash{});
  return out;
}

}  // namespace odt::lab
