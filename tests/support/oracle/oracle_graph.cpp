#include "oracle_graph.h"

namespace odt::testing {

OracleGraph::OracleGraph(const NetSpec& net) : net_(net), dims_(tensor_dims(net)) {
  readers_.resize(dims_.size());
  needed_.assign(dims_.size(), false);
  for (size_t i = 0; i < net_.layers.size(); i++) {
    reads_.push_back({first_input(net_, i)});
    if (op(i).in1 >= 0) reads_[i].push_back(static_cast<size_t>(op(i).in1));
    bool needed = op(i).trainable;
    for (int which = 0; which < inputs(i); which++) {
      readers_[input(i, which)].push_back({i, which});
      if (needed_[input(i, which)]) needed = true;
    }
    needed_[i + 1] = needed;
  }
}

int OracleGraph::cut() const {
  size_t first = 0;
  while (!op(first).trainable) first++;
  int found = -1;
  for (size_t t = 0; t <= first; t++) {
    bool crosses = false;
    for (const Reader& r : readers_[t]) crosses = crosses || r.op >= first;
    if (!crosses) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(t);
  }
  return found;
}

size_t OracleGraph::positions(size_t i) const { return size(i + 1) / op(i).outputs; }

void OracleGraph::products(size_t i, const WeightLink& fn) const {
  const LayerSpec& l = op(i);
  const std::vector<uint16_t>&in = dims(input(i, 0)), &out = dims(i + 1);
  if (l.kind == OpKind::kLinear) {
    for (size_t a = 0; a < in[0]; a++)
      for (size_t o = 0; o < out[0]; o++) fn(a * out[0] + o, a, o);
    return;
  }
  int cg = in[0] / l.groups, og = out[0] / l.groups;
  for (int o = 0; o < out[0]; o++)
    for (int oy = 0; oy < out[1]; oy++)
      for (int ox = 0; ox < out[2]; ox++)
        for (int c = 0; c < cg; c++)
          for (int ky = 0; ky < l.k_h; ky++)
            for (int kx = 0; kx < l.k_w; kx++) {
              int iy = oy * l.stride_h + ky * l.dil_h - l.pad_t;
              int ix = ox * l.stride_w + kx * l.dil_w - l.pad_l;
              if (iy < 0 || iy >= in[1] || ix < 0 || ix >= in[2]) continue;
              int channel = (o / og) * cg + c;
              fn(static_cast<size_t>(((o * cg + c) * l.k_h + ky) * l.k_w + kx),
                 static_cast<size_t>((channel * in[1] + iy) * in[2] + ix),
                 static_cast<size_t>((o * out[1] + oy) * out[2] + ox));
            }
}

void OracleGraph::windows(size_t i, const Link& fn) const {
  const LayerSpec& l = op(i);
  const std::vector<uint16_t>&in = dims(input(i, 0)), &out = dims(i + 1);
  for (int c = 0; c < out[0]; c++)
    for (int oy = 0; oy < out[1]; oy++)
      for (int ox = 0; ox < out[2]; ox++)
        for (int ky = 0; ky < l.k_h; ky++)
          for (int kx = 0; kx < l.k_w; kx++) {
            int iy = oy * l.stride_h + ky - l.pad_t, ix = ox * l.stride_w + kx - l.pad_l;
            if (iy < 0 || iy >= in[1] || ix < 0 || ix >= in[2]) continue;
            fn(0, static_cast<size_t>((c * in[1] + iy) * in[2] + ix),
               static_cast<size_t>((c * out[1] + oy) * out[2] + ox));
          }
}

void OracleGraph::links(size_t i, const Link& fn) const {
  const std::vector<uint16_t>&in = dims(input(i, 0)), &out = dims(i + 1);
  switch (op(i).kind) {
    case OpKind::kMaxPool:
    case OpKind::kAvgPool:
      return windows(i, fn);
    case OpKind::kGap: {
      size_t plane = size(input(i, 0)) / in[0];
      for (size_t a = 0; a < size(input(i, 0)); a++) fn(0, a, a / plane);
      return;
    }
    case OpKind::kResize:
      for (size_t c = 0; c < out[0]; c++)
        for (size_t y = 0; y < out[1]; y++)
          for (size_t x = 0; x < out[2]; x++) {
            size_t iy = y * in[1] / out[1], ix = x * in[2] / out[2];
            fn(0, (c * in[1] + iy) * in[2] + ix, (c * out[1] + y) * out[2] + x);
          }
      return;
    case OpKind::kConcat:
      for (size_t a = 0; a < size(input(i, 0)); a++) fn(0, a, a);
      for (size_t a = 0; a < size(input(i, 1)); a++) fn(1, a, size(input(i, 0)) + a);
      return;
    case OpKind::kAdd:
      for (size_t a = 0; a < size(i + 1); a++) {
        fn(0, a, a);
        fn(1, a, a);
      }
      return;
    case OpKind::kFlatten:
    case OpKind::kPrequant:
      for (size_t a = 0; a < size(i + 1); a++) fn(0, a, a);
      return;
    case OpKind::kConv2d:
    case OpKind::kLinear:
      return;
  }
}

std::vector<size_t> OracleGraph::max_sources(size_t i, const Values& x) const {
  std::vector<size_t> from(size(i + 1));
  std::vector<bool> seen(size(i + 1), false);
  links(i, [&](int, size_t in, size_t out) {
    if (!seen[out] || x[in] > x[from[out]]) from[out] = in;
    seen[out] = true;
  });
  return from;
}

int64_t OracleGraph::area(size_t i) const {
  if (op(i).kind == OpKind::kAvgPool) return int64_t{op(i).k_h} * op(i).k_w;
  const std::vector<uint16_t>& in = dims(input(i, 0));
  return int64_t{in[1]} * in[2];
}

}  // namespace odt::testing
