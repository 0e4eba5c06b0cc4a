#include "compiler/ir.h"

namespace odt::compiler {

std::uint64_t count_of(const Shape& shape) {
  std::uint64_t n = 1;
  for (auto d : shape) n *= d;
  return n;
}

Storage storage_of(std::int32_t lo, std::int32_t hi) {
  if (lo >= 0 && hi <= 255) return Storage::kU8;
  return lo >= -128 && hi <= 127 ? Storage::kS8 : Storage::kS16;
}

Storage storage_of_tensor(const Network& net, std::uint16_t tensor) {
  while (tensor > 0) {
    const Layer& l = net.layers[tensor - 1u];
    if (net.arithmetic == Arithmetic::kDfp16) return Storage::kS16;
    const bool keeps = l.kind == LayerKind::kMaxPool || l.kind == LayerKind::kResize ||
                       l.kind == LayerKind::kFlatten;
    if (!keeps) return storage_of(l.clip_lo, l.clip_hi);
    tensor = l.in0;
  }
  return net.input_storage;
}

ValueRange range_of_tensor(const Network& net, std::uint16_t tensor) {
  while (tensor > 0) {
    const Layer& l = net.layers[tensor - 1u];
    const bool keeps = l.kind == LayerKind::kMaxPool || l.kind == LayerKind::kResize ||
                       l.kind == LayerKind::kFlatten;
    if (!keeps) return {l.clip_lo, l.clip_hi};
    tensor = l.in0;
  }
  if (net.prequant) return {net.prequant->clip_lo, net.prequant->clip_hi};
  if (net.input_storage == Storage::kU8) return {0, 255};
  return net.input_storage == Storage::kS8 ? ValueRange{-128, 127} : ValueRange{-32768, 32767};
}

std::string flatten_name(const Layer& front) { return front.name + "/Flatten"; }

void connect_chain(Network& net) {
  for (std::size_t n = 0; n < net.layers.size(); ++n) {
    net.layers[n].in0 = static_cast<std::uint16_t>(n);
    net.layers[n].in1 = kNoTensor;
  }
}

bool is_chain(const Network& net) {
  for (std::size_t n = 0; n < net.layers.size(); ++n)
    if (net.layers[n].in0 != n || net.layers[n].in1 != kNoTensor) return false;
  return true;
}

std::string shown(const std::string& text) {
  std::string out;
  for (char c : text.substr(0, 64)) out += c >= ' ' && c <= '~' ? c : '?';
  if (text.size() > 64) out += "...";
  return out;
}

}  // namespace odt::compiler
