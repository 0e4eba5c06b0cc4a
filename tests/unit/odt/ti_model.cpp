#include "ti_model.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace odt::testing {
namespace {

size_t elem(uint8_t dtype) { return dtype == ODT_S16 ? 2 : 1; }

// Kinds without weights.
void describe_plain(const odt_model_t& m, const odt_op_t& op, const TiLayer& mem,
                    IntLayerDesc_t& d) {
  const odt_tensor_t &in = m.tensors[op.in0], &out = m.tensors[op.out];
  static const std::map<int, IntLayerType_t> kTypes = {
      {ODT_OP_MAXPOOL, INT_LAYER_MAXPOOL}, {ODT_OP_AVGPOOL, INT_LAYER_AVGPOOL},
      {ODT_OP_GAP, INT_LAYER_GAP},         {ODT_OP_ADD, INT_LAYER_ADD},
      {ODT_OP_CONCAT, INT_LAYER_CONCAT},   {ODT_OP_RESIZE, INT_LAYER_RESIZE},
      {ODT_OP_FLATTEN, INT_LAYER_FLATTEN}};
  d.type = kTypes.at(op.kind);
  d.act_dtype = out.dtype;
  if (op.kind == ODT_OP_ADD) {
    if (op.flags & ODT_OP_FLAG_RELU) d.type = INT_LAYER_ADD_RELU;
    d.add = {{op.offset[0], op.offset[1]}};
  } else if (op.kind != ODT_OP_CONCAT && op.kind != ODT_OP_FLATTEN) {
    IntPool_t& q = d.pool;
    q = {};
    q.offset = mem.offset.data();
    q.mult = mem.mult.empty() ? nullptr : mem.mult.data();
    q.k = mem.k.data();
    q.n_ch = static_cast<uint16_t>(op.n_out);
    q.input_h = in.dims[1];
    q.input_w = in.dims[2];
    q.out_h = out.ndim == 3 ? out.dims[1] : uint16_t{1};
    q.out_w = out.ndim == 3 ? out.dims[2] : uint16_t{1};
    q.kH = op.k_h;
    q.kW = op.k_w;
    q.stride_h = op.stride_h == 1 ? uint16_t{0} : op.stride_h;
    q.stride_w = op.stride_w;
    q.pad_h = op.pad_t;
    q.pad_w = op.pad_l;
  }
}

IntLayerDesc_t describe_layer(const odt_model_t& m, const odt_op_t& op, TiLayer& mem,
                              uint16_t batch) {
  const odt_tensor_t &in = m.tensors[op.in0], &out = m.tensors[op.out];
  const bool relu = (op.flags & ODT_OP_FLAG_RELU) != 0, conv = op.kind == ODT_OP_CONV2D;
  mem.weights.assign(op.weights, op.weights + op.n_weights);
  mem.offset.assign(op.offset, op.offset + op.n_out);
  if (op.k_out != nullptr) mem.k.assign(op.k_out, op.k_out + op.n_out);
  if (op.mult != nullptr) mem.mult.assign(op.mult, op.mult + op.n_out);
  mem.act.assign(batch * out.count * elem(out.dtype), 0xA5);
  if (relu) mem.mask.assign(batch * ((out.count + 7) / 8), 0xA5);
  const int8_t* mult = op.mult != nullptr ? mem.mult.data() : nullptr;
  IntLayerDesc_t d{};
  d.type = conv ? (relu ? INT_LAYER_CONV2D_RELU : INT_LAYER_CONV2D)
                : (relu ? INT_LAYER_LINEAR_RELU : INT_LAYER_LINEAR);
  d.in_size = static_cast<uint16_t>(in.count);
  d.out_size = static_cast<uint16_t>(out.count);
  d.clip_lo = op.clip_lo;
  d.clip_hi = op.clip_hi;
  d.act_buf = mem.act.data();
  d.relu_mask = relu ? mem.mask.data() : nullptr;
  if (out.dtype != (relu ? ODT_U8 : ODT_S8)) d.act_dtype = out.dtype;
  if (!conv && op.kind != ODT_OP_LINEAR) {
    describe_plain(m, op, mem, d);
    return d;
  }
  if (!conv) {
    d.linear = {mem.weights.data(), mem.offset.data(), mult, mem.k.data()};
    return d;
  }
  IntConv_t& c = d.conv;
  c = {};
  c.weights = mem.weights.data();
  c.offset = mem.offset.data();
  c.mult = mult;
  c.k = mem.k.data();
  c.n_filters = static_cast<uint16_t>(op.n_out);
  c.conv_out_h = out.dims[1];
  c.conv_out_w = out.dims[2];
  c.kH = static_cast<uint8_t>(op.k_h);
  c.kW = static_cast<uint8_t>(op.k_w);
  c.stride_h = static_cast<uint8_t>(op.stride_h);
  c.stride_w = static_cast<uint8_t>(op.stride_w);
  c.pad_h = static_cast<uint8_t>(op.pad_t);
  c.pad_w = static_cast<uint8_t>(op.pad_l);
  c.input_h = in.dims[1];
  c.input_w = in.dims[2];
  // As TI's files have it (0), where it can be.
  c.dil_h = static_cast<uint8_t>(op.dil_h == 1 ? 0 : op.dil_h);
  c.dil_w = static_cast<uint8_t>(op.dil_w == 1 ? 0 : op.dil_w);
  c.groups = op.groups == 1 ? uint16_t{0} : op.groups;
  return d;
}

}  // namespace

bool TiModel::fits(const odt_model_t& model) { return model.cut != ODT_NO_TENSOR; }

TiModel::TiModel(const odt_model_t& model, uint16_t batch) : model_(model) {
  memory.resize(model.n_ops);
  layers.reserve(model.n_ops);
  std::vector<int> layer_of(model.n_tensors, -1);  // tensors that layers write
  // A FLATTEN is a layer only where others read its input too and that has a delta.
  const uint64_t needed = odt_needed(&model);
  const auto skipped = [&](uint32_t i) {
    return model.ops[i].kind == ODT_OP_FLATTEN && (odt_passes(&model, i) || !((needed >> i) & 1u));
  };
  for (uint16_t i = model.first_trainable_op; i < model.n_ops; i++) {
    const odt_op_t& op = model.ops[i];
    if (skipped(i)) {
      layer_of[op.out] = layer_of[op.in0];
      continue;
    }
    IntLayerDesc_t d = describe_layer(model, op, memory[i], batch);
    const auto link = [&](uint16_t tensor) {
      return layer_of[tensor] < 0 ? static_cast<uint16_t>(INT_FROM_INPUT)
                                  : static_cast<uint16_t>(layer_of[tensor] + 1);
    };
    const bool two = op.kind == ODT_OP_ADD || op.kind == ODT_OP_CONCAT;
    d.in0 = link(op.in0);
    // As TI's files have it, where it can be.
    if (d.in0 == (layers.empty() ? INT_FROM_INPUT : layers.size())) d.in0 = 0;
    if (two) d.in1 = link(op.in1);
    memory[i].delta.assign(batch * model.tensors[op.out].count * elem(model.tensors[op.out].dtype),
                           0x3C);
    d.delta_buf = memory[i].delta.data();
    layer_of[op.out] = static_cast<int>(layers.size());
    layers.push_back(d);
  }
  size_t widest = layers[0].in_size;
  for (const auto& m : memory) widest = std::max(widest, m.act.size() / batch);
  for (auto& g : grad_) g.assign(batch * widest, 0x5A);
  for (uint16_t t = 0; t < model.n_tensors; t++)
    values_.emplace_back(model.tensors[t].count * elem(model.tensors[t].dtype) / 4 + 1);
  ctx.n_layers = static_cast<uint16_t>(layers.size());
  ctx.layers = layers.data();
  ctx.grad_buf[0] = grad_[0].data();
  ctx.grad_buf[1] = grad_[1].data();
  ctx.mu_weight = ctx.mu_offset = 1;
  const uint8_t dtype = model.tensors[model.cut].dtype;
  ctx.input_type = dtype == ODT_U8    ? INT_INPUT_UINT8
                   : dtype == ODT_S16 ? INT_INPUT_INT16
                                      : INT_INPUT_INT8;
}

uint32_t TiModel::input_bytes() const {
  const odt_tensor_t& t = model_.tensors[model_.cut];
  return static_cast<uint32_t>(t.count * elem(t.dtype));
}

std::vector<uint8_t> TiModel::frozen(const std::vector<uint8_t>& samples, uint32_t n) const {
  if (model_.cut == model_.input) return samples;
  std::vector<void*> values;
  for (auto& v : values_) values.push_back(v.data());
  const odt_ti_frozen_t f = {model_.ops,   model_.tensors, model_.first_trainable_op,
                             model_.input, model_.cut,     values.data()};
  std::vector<uint8_t> out(n * input_bytes());
  const uint32_t len = model_.tensors[model_.input].count;
  for (uint32_t b = 0; b < n; b++)
    odt_ti_frozen_run(&f, samples.data() + b * len, out.data() + b * input_bytes());
  return out;
}

void TiModel::loss_values(const std::vector<std::vector<int64_t>>& targets) {
  const size_t n = n_classes();
  for (size_t b = 0; b < targets.size(); b++)
    for (size_t c = 0; c < n; c++)
      ctx.grad_buf[0][b * n + c] =
          static_cast<int8_t>(std::clamp<int64_t>(logits()[b * n + c] - targets[b][c], -128, 127));
}

void TiModel::loss(const odt_model_t& model, const std::vector<int>& labels) {
  const int n = static_cast<int>(n_classes());
  for (size_t b = 0; b < labels.size(); b++) {
    for (int c = 0; c < n; c++) {
      const size_t at = b * static_cast<size_t>(n) + static_cast<size_t>(c);
      const int target = c == labels[b] ? model.target_correct[c] : model.target_wrong[c];
      ctx.grad_buf[0][at] = static_cast<int8_t>(std::clamp(logits()[at] - target, -128, 127));
    }
  }
}

std::vector<uint8_t> TiModel::everything() const {
  std::vector<uint8_t> out;
  const auto add = [&](const void* p, size_t n) {
    const auto* bytes = static_cast<const uint8_t*>(p);
    out.insert(out.end(), bytes, bytes + n);
  };
  for (const TiLayer& l : memory) {
    add(l.act.data(), l.act.size());
    add(l.mask.data(), l.mask.size());
    add(l.weights.data(), l.weights.size());
    add(l.offset.data(), l.offset.size() * 4);
  }
  return out;
}

}  // namespace odt::testing
