#include "cli/lab_view.h"

#include <absl/strings/str_cat.h>

#include "cli/lookup.h"
#include "cli/text.h"
#include "odt/api/v1/types.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

std::string with_note(std::string text, const std::string& note) {
  return note.empty() ? text : text + ": " + note;
}

std::string power_text(const v1::PowerResult& r) {
  std::string out =
      absl::StrCat(r.automatic() ? "power cycled by itself" : "power cycled", " by profile '",
                   r.profile(), "' in ", duration_text(std::int64_t{r.took_ms()} * 1000));
  if (!r.ok()) return out + "; it FAILED: " + r.reason().text();
  return with_note(std::move(out), r.reason().text());
}

}  // namespace

std::string use_text(const v1::Board& b) {
  if (b.has_maintenance()) return "maintenance";
  if (!b.has_reservation()) return "-";
  return b.reservation().owner() + " until " + date_text(b.reservation().expire_time_us());
}

std::vector<std::vector<std::string>> lab_rows(const v1::Board& b) {
  std::vector<std::vector<std::string>> out;
  if (b.has_reservation())
    out.push_back({"reserved", with_note("by " + b.reservation().owner() + " until " +
                                             date_text(b.reservation().expire_time_us()),
                                         b.reservation().note())});
  if (b.has_maintenance())
    out.push_back({"maintenance", with_note("since " + date_text(b.maintenance().since_time_us()) +
                                                " by " + b.maintenance().actor(),
                                            b.maintenance().note())});
  if (!b.target_snapshot().empty())
    out.push_back({"meant to hold", hex(b.target_snapshot()).substr(0, 16)});
  if (b.has_power())
    out.push_back({"power", absl::StrCat("profile '", b.power().profile(), "'",
                                         b.power().automatic() ? ", automatic" : "",
                                         b.power().running() ? ", under way" : "",
                                         b.power().last_time_us() == 0
                                             ? ""
                                             : ", last " + date_text(b.power().last_time_us()))});
  return out;
}

std::string event_text(const v1::LabEvent& e, const Names& names) {
  const std::string until = " until " + date_text(e.expire_time_us());
  switch (e.kind()) {
    case v1::LabEvent::KIND_RESERVED:
      return with_note("reserved for " + e.owner() + until, e.note());
    case v1::LabEvent::KIND_EXTENDED:
      return "reservation of " + e.owner() + " extended" + until;
    case v1::LabEvent::KIND_RELEASED:
      return "released; it was " + e.owner() + "'s";
    case v1::LabEvent::KIND_EXPIRED:
      return "the reservation of " + e.owner() + " has expired";
    case v1::LabEvent::KIND_TAKEN_OVER:
      return with_note("taken over from " + e.previous() + " for " + e.owner() + until, e.note());
    case v1::LabEvent::KIND_MAINTENANCE_ON:
      return with_note("maintenance begins", e.note());
    case v1::LabEvent::KIND_MAINTENANCE_OFF:
      return with_note("maintenance is over", e.note());
    case v1::LabEvent::KIND_PLACED:
      return "placed at '" + e.place() + "', before at '" + e.previous() + "'";
    case v1::LabEvent::KIND_REPLACED:
      return "replaced by " + names.board(e.other_uid()) + " at '" + e.place() + "'";
    case v1::LabEvent::KIND_REPLACES:
      return "replaces " + names.board(e.other_uid()) + " at '" + e.place() + "'";
    case v1::LabEvent::KIND_POWER_CYCLED:
      return power_text(e.power());
    default:
      return "?";
  }
}

}  // namespace odt::cli
