#include "api/export_text.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

namespace odt::api {
namespace {

const char* loss_kind(model::LossKind kind) {
  switch (kind) {
    case model::LossKind::kMse:
      return "mse";
    case model::LossKind::kCe:
      return "ce";
    default:
      return "";
  }
}

void add_csv(std::string& out, const model::TelemetryFrame& f) {
  absl::StrAppend(&out, f.step, ",", f.attempt, ",", f.time_us, ",", f.board_uid.hex(), ",",
                  f.boot_id, ",", f.event_id, ",", f.loss.sum, ",", static_cast<int>(f.loss.exp2),
                  ",", f.loss.count);
  absl::StrAppend(&out, ",", loss_kind(f.loss.kind), ",", f.correct, ",", f.gap);
  for (const model::LayerStep& layer : f.layers)
    absl::StrAppend(&out, ",", static_cast<int>(layer.bits), ",", static_cast<int>(layer.shift),
                    ",", static_cast<int>(layer.k));
  out += '\n';
}

void add_json(std::string& out, const model::TelemetryFrame& f) {
  absl::StrAppend(&out, "{\"step\":", f.step, ",\"attempt\":", f.attempt,
                  ",\"time_us\":", f.time_us, ",\"board\":\"", f.board_uid.hex(),
                  "\",\"boot_id\":\"", f.boot_id, "\"");
  absl::StrAppend(&out, ",\"event_id\":", f.event_id, ",\"loss\":{\"sum\":", f.loss.sum,
                  ",\"exp2\":", static_cast<int>(f.loss.exp2), ",\"count\":", f.loss.count,
                  ",\"kind\":\"", loss_kind(f.loss.kind), "\"},\"correct\":", f.correct);
  if (f.gap != 0) absl::StrAppend(&out, ",\"gap\":", f.gap);
  out += ",\"layers\":[";
  const char* comma = "";
  for (const model::LayerStep& layer : f.layers) {
    absl::StrAppend(&out, comma, "{\"bits\":", static_cast<int>(layer.bits),
                    ",\"shift\":", static_cast<int>(layer.shift),
                    ",\"k\":", static_cast<int>(layer.k), "}");
    comma = ",";
  }
  out += "]}\n";
}

}  // namespace

std::string ExportText::header(const std::vector<model::TelemetryFrame>& frames) const {
  if (!csv_)
    return absl::StrCat("{\"run\":\"", run_.hex(),
                        "\",\"complete\":", thinned_ == 0 ? "true" : "false",
                        ",\"thinned_records\":", thinned_, "}\n");
  std::string out = absl::StrCat("# run ", run_.hex(), "\n");
  if (thinned_ != 0)
    absl::StrAppend(&out, "# NOT COMPLETE: of ", thinned_,
                    " records only rollups are left (the run was thinned)\n");
  std::size_t layers = 0;
  for (const auto& f : frames) layers = std::max(layers, f.layers.size());
  out +=
      "step,attempt,time_us,board,boot_id,event_id,loss_sum,loss_exp2,loss_count,loss_kind,"
      "correct,gap";
  for (std::size_t i = 0; i < layers; ++i)
    absl::StrAppend(&out, ",bits_", i, ",shift_", i, ",k_", i);
  return out + "\n";
}

Result<std::optional<std::string>> Export::next(store::TelemetryStore& telemetry) {
  if (next_step_ > range_.last_step) return std::optional<std::string>();
  const bool first = !text_;
  if (first) {
    ODT_ASSIGN(const auto use, telemetry.use(range_.run));
    text_.emplace(range_.run, csv_, use.thinned_frames);
  }
  range_.first_step = static_cast<std::uint32_t>(next_step_);
  ODT_ASSIGN(const auto part, telemetry.read_part(range_));
  if (first) cuts_ = part.cuts;
  if (part.cuts != cuts_) return overtaken(telemetry);
  next_step_ = part.next_step;
  return std::optional<std::string>(text_->part(part.frames));
}

Status Export::overtaken(store::TelemetryStore& telemetry) const {
  ODT_ASSIGN(const auto use, telemetry.use(range_.run));
  const std::string text =
      absl::StrCat("run ", range_.run.hex(), " was ",
                   use.raw_frames + use.thinned_frames == 0 ? "purged" : "thinned",
                   " while it was exported: the file ends before step ", range_.first_step);
  if (use.raw_frames + use.thinned_frames == 0) return absl::NotFoundError(text);
  return with_reason(absl::AbortedError(text), "TELEMETRY_THINNED",
                     "export it again for what is left; pin a run to keep its raw records");
}

std::string ExportText::part(const std::vector<model::TelemetryFrame>& frames) {
  std::string out;
  if (!begun_) out = header(frames);
  begun_ = true;
  for (const model::TelemetryFrame& frame : frames)
    csv_ ? add_csv(out, frame) : add_json(out, frame);
  return out;
}

}  // namespace odt::api
