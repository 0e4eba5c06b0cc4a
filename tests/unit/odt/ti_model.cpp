#include "ti_model.h"

#include <algorithm>
#include <cstring>

namespace odt::testing {
namespace {

size_t elem(uint8_t dtype) { return dtype == ODT_S16 ? 2 : 1; }

IntLayerDesc_t describe_layer(const odt_model_t& m, const odt_op_t& op, TiLayer& mem,
                              uint16_t batch) {
  const odt_tensor_t &in = m.tensors[op.in0], &out = m.tensors[op.out];
  const bool relu = (op.flags & ODT_OP_FLAG_RELU) != 0, conv = op.kind == ODT_OP_CONV2D;
  mem.weights.assign(op.weights, op.weights + op.n_weights);
  mem.offset.assign(op.offset, op.offset + op.n_out);
  mem.k.assign(op.k_out, op.k_out + op.n_out);
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

TiModel::TiModel(const odt_model_t& model, uint16_t batch) : model_(model) {
  size_t widest = 0;
  memory.resize(model.n_ops);
  for (uint16_t i = model.first_trainable_op; i < model.n_ops; i++) {
    const odt_op_t& op = model.ops[i];
    if (op.kind == ODT_OP_FLATTEN) continue;
    layers.push_back(describe_layer(model, op, memory[i], batch));
    const odt_tensor_t& out = model.tensors[op.out];
    widest = std::max(widest, out.count * elem(out.dtype));
  }
  widest = std::max<size_t>(widest, layers[0].in_size);
  for (auto& g : grad_) g.assign(batch * widest, 0x5A);
  for (uint16_t t = 0; t < model.n_tensors; t++)
    values_.emplace_back(model.tensors[t].count * elem(model.tensors[t].dtype) / 4 + 1);
  ctx.n_layers = static_cast<uint16_t>(layers.size());
  ctx.layers = layers.data();
  ctx.grad_buf[0] = grad_[0].data();
  ctx.grad_buf[1] = grad_[1].data();
  ctx.mu_weight = ctx.mu_offset = 1;
  const uint8_t dtype = model.tensors[model.ops[model.first_trainable_op].in0].dtype;
  ctx.input_type = dtype == ODT_U8    ? INT_INPUT_UINT8
                   : dtype == ODT_S16 ? INT_INPUT_INT16
                                      : INT_INPUT_INT8;
}

uint32_t TiModel::input_bytes() const {
  const odt_tensor_t& t = model_.tensors[model_.ops[model_.first_trainable_op].in0];
  return static_cast<uint32_t>(t.count * elem(t.dtype));
}

std::vector<uint8_t> TiModel::frozen(const std::vector<uint8_t>& samples, uint32_t n) const {
  if (model_.first_trainable_op == 0) return samples;
  std::vector<void*> values;
  for (auto& v : values_) values.push_back(v.data());
  const odt_ti_frozen_t f = {model_.ops,
                             model_.tensors,
                             model_.first_trainable_op,
                             model_.input,
                             model_.ops[model_.first_trainable_op].in0,
                             values.data()};
  std::vector<uint8_t> out(n * input_bytes());
  const uint32_t len = model_.tensors[model_.input].count;
  for (uint32_t b = 0; b < n; b++)
    odt_ti_frozen_run(&f, samples.data() + b * len, out.data() + b * input_bytes());
  return out;
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
