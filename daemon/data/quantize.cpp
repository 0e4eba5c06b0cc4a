#include "data/quantize.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace odt::data {

std::uint32_t InputStage::count() const {
  std::uint32_t n = 1;
  for (auto d : shape) n *= d;
  return n;
}

namespace {

Status check(const InputStage& in) {
  const auto bad = [](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("manifest: input: ", what));
  };
  if (in.shape.empty()) return bad("no shape");
  std::uint64_t count = 1;
  for (auto d : in.shape) {
    count *= d;
    if (count < 1 || count > kMaxSampleValues) return bad("shape out of range");
  }
  if (in.mult.size() != in.offset.size() || in.k.size() != in.offset.size())
    return bad("offset, mult and k have different lengths");
  if (in.has_prequant() && count % in.offset.size() != 0) return bad("channels do not divide it");
  for (auto k : in.k)
    if (k > 31) return bad(absl::StrCat("k ", k, "; expected 0..31"));
  for (auto o : in.offset)
    if (!std::isfinite(o) || std::abs(o) > 1e6f) return bad("offset out of range");
  return absl::OkStatus();
}

}  // namespace

Result<InputStage> parse_input_stage(std::string_view manifest_json) {
  try {
    const auto json = nlohmann::json::parse(manifest_json).at("input");
    InputStage in;
    in.shape = json.at("shape").get<std::vector<std::uint32_t>>();
    const auto dtype = json.at("dtype").get<std::string>();
    in.dtype = dtype == "u8" ? Dtype::kU8 : dtype == "i16" ? Dtype::kS16 : Dtype::kS8;
    if (const auto& p = json.at("prequant"); !p.is_null()) {
      in.offset = p.at("offset").get<std::vector<float>>();
      in.mult = p.at("mult").get<std::vector<std::int16_t>>();
      in.k = p.at("k").get<std::vector<std::uint8_t>>();
      in.clip_lo = p.at("clip_lo").get<std::int32_t>();
      in.clip_hi = p.at("clip_hi").get<std::int32_t>();
      if (in.offset.empty()) return absl::InvalidArgumentError("manifest: input: no channels");
    }
    ODT_TRY(check(in));
    return in;
  } catch (const nlohmann::json::exception& e) {
    return absl::InvalidArgumentError(absl::StrCat("manifest: input: ", e.what()));
  }
}

std::int32_t quantize_int(const InputStage& in, std::uint32_t channel, std::int32_t x) {
  // nearbyint rounds half to even in the default mode, which nothing here changes.
  const auto offset = static_cast<std::int64_t>(std::nearbyint(double{in.offset[channel]} * 256));
  const std::int64_t y =
      ((std::int64_t{x} * 256 + offset) * in.mult[channel]) >> (in.k[channel] + 8);
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(y, in.clip_lo, in.clip_hi));
}

std::int32_t quantize_float(const InputStage& in, std::uint32_t channel, float x) {
  volatile float y = x + in.offset[channel];  // volatile: no fused multiply-add
  y = y * static_cast<float>(in.mult[channel]);
  y = y * std::ldexp(1.0f, -static_cast<int>(in.k[channel]));
  const float floored = std::floor(y);
  return static_cast<std::int32_t>(
      std::clamp(floored, static_cast<float>(in.clip_lo), static_cast<float>(in.clip_hi)));
}

Result<std::vector<std::uint8_t>> quantize_samples(const InputStage& in, const Dataset& d,
                                                   std::uint32_t first, std::uint32_t n) {
  const std::uint32_t len = d.sample_len();
  if (len != in.count())
    return absl::InvalidArgumentError(absl::StrCat(
        "the dataset has ", len, " values per sample ([", absl::StrJoin(d.shape, ","),
        "]); the model takes ", in.count(), " ([", absl::StrJoin(in.shape, ","), "])"));
  if (!in.has_prequant() && d.dtype != in.dtype)
    return absl::InvalidArgumentError(
        absl::StrCat("the model has no PREQUANT block and takes ", dtype_name(in.dtype),
                     " values; the dataset has ", dtype_name(d.dtype)));
  const std::size_t width = dtype_bytes(in.dtype);
  std::vector<std::uint8_t> out(std::size_t{n} * len * width);
  if (!in.has_prequant()) {
    std::copy_n(d.values.begin() + static_cast<std::ptrdiff_t>(std::size_t{first} * len * width),
                out.size(), out.begin());
    return out;
  }
  const std::uint32_t per_channel = len / static_cast<std::uint32_t>(in.offset.size());
  for (std::uint32_t s = 0; s < n; ++s)
    for (std::uint32_t i = 0; i < len; ++i) {
      const float x = d.value(first + s, i);
      const std::uint32_t channel = i / per_channel;
      const std::int32_t y = d.dtype == Dtype::kF32
                                 ? quantize_float(in, channel, x)
                                 : quantize_int(in, channel, static_cast<std::int32_t>(x));
      const std::size_t at = (std::size_t{s} * len + i) * width;
      out[at] = static_cast<std::uint8_t>(y);
      if (width == 2) out[at + 1] = static_cast<std::uint8_t>(y >> 8);
    }
  return out;
}

}  // namespace odt::data
