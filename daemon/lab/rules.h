#pragma once

#include <optional>
#include <string>

#include "base/call.h"
#include "model/board.h"
#include "model/run.h"

// Reservations, maintenance and replacement of boards. Pure: each changes the board and says what
// has happened to it, or leaves it as it is. Times are UTC of the host.
namespace odt::lab {

inline constexpr std::uint32_t kMaxReservation_s = 30 * 86'400;
inline constexpr std::size_t kMaxNote = 200, kMaxOwner = 64;  // bytes

// FAILED_PRECONDITION BOARD_RESERVED where it is kept for somebody else: who, until when, what to
// do.
Status may_use(const model::Board& board, const std::string& whose, std::int64_t now_us);
// Why a run that waits does not begin; code empty: it may.
model::Reason hold(const model::Board& board, const model::Run& run, std::int64_t now_us);
inline bool is_hold(const model::Reason& reason) {
  return reason.code == "BOARD_RESERVED" || reason.code == "BOARD_IN_MAINTENANCE";
}

// Errors: INVALID_ARGUMENT (duration), BOARD_RESERVED, PERMISSION_DENIED (take_over, not admin).
struct ReserveAsk {
  std::uint32_t duration_s = 0;
  std::string note;
  bool take_over = false;
};
Result<model::LabEvent> reserve(model::Board& board, const CallContext& ctx, const ReserveAsk& ask,
                                std::int64_t now_us);
// Also NOT_RESERVED.
Result<model::LabEvent> extend(model::Board& board, const CallContext& ctx,
                               std::uint32_t duration_s, std::int64_t now_us);
// Nothing: it was free.
Result<std::optional<model::LabEvent>> release(model::Board& board, const CallContext& ctx,
                                               bool take_over, std::int64_t now_us);
model::LabEvent expire(model::Board& board);

// Nothing: it was so already.
std::optional<model::LabEvent> set_maintenance(model::Board& board, const CallContext& ctx, bool on,
                                               const std::string& note, std::int64_t now_us);

// Place, labels and target snapshot of the old one to the new one, whose other labels stay.
// Errors: FAILED_PRECONDITION PLACE_TAKEN (the new one stands elsewhere).
struct Replacement {
  model::LabEvent of_old, of_new;
};
Result<Replacement> replace(model::Board& old_board, model::Board& new_board);

}  // namespace odt::lab
