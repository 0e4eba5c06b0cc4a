#include <algorithm>

#include "api/convert_parts.h"

// Lab life of boards as messages.
namespace odt::api {
namespace {

// Clean, but its lines stay lines.
std::string clean_lines(const std::string& text) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    out += clean_text(text.substr(begin, end - begin));
    if (end < text.size()) out += '\n';
    begin = end + 1;
  }
  return out;
}

}  // namespace

void add_lab(const model::Board& board, v1::Board& out) {
  if (!board.reservation.owner.empty()) {
    auto& r = *out.mutable_reservation();
    r.set_owner(clean_text(board.reservation.owner));
    r.set_note(clean_text(board.reservation.note));
    r.set_actor(clean_text(board.reservation.actor));
    r.set_since_time_us(board.reservation.since_us);
    r.set_expire_time_us(board.reservation.expire_us);
  }
  if (board.maintenance.on()) {
    auto& m = *out.mutable_maintenance();
    m.set_note(clean_text(board.maintenance.note));
    m.set_actor(clean_text(board.maintenance.actor));
    m.set_since_time_us(board.maintenance.since_us);
  }
  out.set_target_snapshot(id_bytes(board.target_snapshot));
  if (!board.power.profile.empty()) {
    auto& p = *out.mutable_power();
    p.set_profile(clean_text(board.power.profile));
    p.set_automatic(board.power.automatic);
    p.set_running(board.power.running);
    p.set_last_time_us(board.power.last_us);
  }
}

v1::PowerResult to_proto(const model::PowerResult& result) {
  v1::PowerResult out;
  out.set_profile(clean_text(result.profile));
  out.set_automatic(result.automatic);
  out.set_ok(result.ok);
  out.set_exit_code(result.exit_code);
  out.set_output(clean_lines(result.output));
  out.set_took_ms(result.took_ms);
  if (!result.reason.code.empty()) set_reason(result.reason, out.mutable_reason());
  return out;
}

v1::LabEvent to_proto(const model::LabEvent& event) {
  v1::LabEvent out;
  out.set_board_uid(event.board.str());
  out.set_seq(event.seq);
  out.set_time_us(event.time_us);
  out.set_kind(static_cast<v1::LabEvent::Kind>(event.kind));
  out.set_actor(clean_text(event.actor));
  out.set_command_id(id_bytes(event.command_id));
  out.set_owner(clean_text(event.owner));
  out.set_note(clean_text(event.note));
  out.set_expire_time_us(event.expire_us);
  out.set_previous(clean_text(event.previous));
  out.set_other_uid(event.other.str());
  out.set_place(clean_text(event.place));
  if (event.kind == model::LabKind::kPowerCycled) *out.mutable_power() = to_proto(event.power);
  return out;
}

}  // namespace odt::api
