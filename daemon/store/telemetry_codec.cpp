#include "store/telemetry_codec.h"

#include <absl/strings/str_cat.h>

#include "store/bytes.h"

namespace odt::store {
namespace {

constexpr std::uint8_t kVersion = 1;

}  // namespace

std::string encode_frame(const model::TelemetryFrame& frame) {
  std::string out;
  out.push_back(static_cast<char>(kVersion));
  put_varint(out, frame.event_id);
  put_varint(out, zigzag(frame.loss.sum));
  put_varint(out, zigzag(frame.loss.exp2));
  put_varint(out, frame.loss.count);
  put_varint(out, static_cast<std::uint64_t>(frame.loss.kind));
  put_varint(out, frame.correct);
  put_varint(out, frame.gap);
  put_varint(out, frame.layers.size());
  for (const model::LayerStep& layer : frame.layers) {
    out.push_back(static_cast<char>(layer.bits));
    out.push_back(static_cast<char>(layer.shift));
    out.push_back(static_cast<char>(layer.k));
  }
  return out;
}

Status decode_frame(std::string_view data, model::TelemetryFrame& frame) {
  ByteReader in(data);
  const std::uint8_t version = in.byte();
  if (version != kVersion)
    return absl::DataLossError(
        absl::StrCat("telemetry.db: frame layout version ", version, ", supported is ", kVersion));
  frame.event_id = static_cast<std::uint32_t>(in.varint());
  frame.loss.sum = unzigzag(in.varint());
  frame.loss.exp2 = static_cast<std::int8_t>(unzigzag(in.varint()));
  frame.loss.count = static_cast<std::uint32_t>(in.varint());
  frame.loss.kind = static_cast<model::LossKind>(in.varint());
  frame.correct = static_cast<std::uint32_t>(in.varint());
  frame.gap = static_cast<std::uint32_t>(in.varint());
  const std::uint64_t layers = in.varint();
  if (!in.ok() || in.left() != layers * 3)
    return absl::DataLossError(
        absl::StrCat("telemetry.db: a frame of ", data.size(), " bytes is truncated or too long"));
  frame.layers.resize(layers);
  for (model::LayerStep& layer : frame.layers) {
    layer.bits = in.byte();
    layer.shift = static_cast<std::int8_t>(in.byte());
    layer.k = in.byte();
  }
  return {};
}

Merge merge_frame(const model::TelemetryFrame& stored, const model::TelemetryFrame& next) {
  if (stored.gap != 0) {
    if (next.gap == 0 || next.gap > stored.gap) return Merge::kReplace;
    return Merge::kIgnore;
  }
  if (next.gap != 0) return Merge::kIgnore;
  const bool same = stored.loss == next.loss && stored.correct == next.correct &&
                    stored.layers == next.layers && stored.board_uid == next.board_uid;
  return same ? Merge::kIgnore : Merge::kDiverged;
}

model::TelemetryFrame rest_of_gap(const model::TelemetryFrame& gap) {
  model::TelemetryFrame rest = gap;
  rest.step += 1;
  rest.gap -= 1;
  return rest;
}

Status diverged(const model::TelemetryFrame& frame) {
  return absl::DataLossError(absl::StrCat("run ", frame.run_id.hex(), " attempt ", frame.attempt,
                                          " step ", frame.step,
                                          ": telemetry differs from what was recorded"));
}

}  // namespace odt::store
