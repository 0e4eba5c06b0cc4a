#include "int_net.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace odt::learn {
namespace {

constexpr int kInputExp = -7;

// Smallest e with value <= limit * 2^e.
int scale_exp(float value, float limit) {
  int e = -30;
  while (e < 20 && value > std::ldexp(limit, e)) ++e;
  return e;
}

float quantile(const Matrix& m, double part) {
  std::vector<float> values(m.data(), m.data() + m.size());
  for (auto& v : values) v = std::abs(v);
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

testing::LayerSpec to_spec(const FloatLayer& l, int in_exp, int w_exp, int out_exp) {
  testing::LayerSpec s;
  s.kind = l.conv ? testing::OpKind::kConv2d : testing::OpKind::kLinear;
  s.relu = l.relu;
  s.trainable = true;
  s.clip_lo = l.relu ? 0 : -128;
  s.clip_hi = l.relu ? 255 : 127;
  s.outputs = static_cast<std::uint32_t>(l.w.cols());
  if (l.conv) s.k_h = s.k_w = static_cast<std::uint16_t>(l.kernel);
  const Matrix w = l.conv ? Matrix(l.w.transpose()) : l.w;
  for (Eigen::Index i = 0; i < w.size(); ++i)
    s.weights.push_back(static_cast<std::int8_t>(
        std::clamp(std::nearbyint(std::ldexp(w.data()[i], -w_exp)), -127.0f, 127.0f)));
  const int k = out_exp - in_exp - w_exp;
  for (Eigen::Index o = 0; o < l.b.size(); ++o) {
    const double half = k > 0 ? std::ldexp(1.0, k - 1) : 0;  // floor becomes round half up
    s.offsets.push_back(static_cast<std::int32_t>(
        std::nearbyint(std::ldexp(double{l.b[o]}, -(in_exp + w_exp)) + half)));
  }
  s.k.assign(s.outputs, static_cast<std::int8_t>(k));
  return s;
}

[[noreturn]] void refuse(const odt_error_t& err) {
  throw std::runtime_error(std::string("firmware/odt refuses: ") + (err.what ? err.what : "?") +
                           ", got " + std::to_string(err.got) + ", limits " +
                           std::to_string(err.limit_lo) + ".." + std::to_string(err.limit_hi));
}

odt_samples_t open(const std::vector<std::uint8_t>& blob) {
  odt_samples_t s;
  odt_error_t err{};
  if (odt_samples_open(&s, blob.data(), static_cast<std::uint32_t>(blob.size()), &err) != ODT_OK)
    refuse(err);
  return s;
}

std::uint32_t count_correct(odt_trainer_t* t, const odt_samples_t& s) {
  std::uint32_t correct = 0;
  std::uint64_t loss = 0;
  if (odt_trainer_eval(t, &s, 0, s.count, &correct, &loss, nullptr) != ODT_OK)
    throw std::runtime_error("firmware/odt does not evaluate");
  return correct;
}

// A trainer and its memory.
struct Trainer {
  Trainer(const odt_model_t& m, const odt_run_spec_t& spec) {
    odt_trainer_plan(&m, &spec, true, &plan);
    arena.resize((plan.total_bytes + 7) / 8);
    odt_error_t err{};
    if (odt_trainer_init(&t, &m, &spec, true, arena.data(),
                         static_cast<std::uint32_t>(arena.size() * 8), &err) != ODT_OK)
      refuse(err);
  }
  odt_trainer_t t;
  odt_memory_plan_t plan{};
  std::vector<std::uint64_t> arena;
};

// Adds a step's precision to the figures of a run.
void count_precision(const odt_model_t& m, const odt_step_record_t& step, IntResult& r) {
  double bits = 0, all = 0, work = 0, all_work = 0;
  std::uint32_t bytes = 0;
  for (std::uint32_t i = 0; i < m.n_layers; ++i) {
    const odt_op_t& op = m.ops[m.layer_op[i]];
    const double n = op.n_weights, k = step.layers[i].k;
    const double positions = m.tensors[op.out].count / static_cast<double>(op.n_out);
    bits += n * k;
    all += 32 * n;
    work += n * positions * k;
    all_work += 32 * n * positions;
    bytes += op.n_weights * (k > 8 ? 2 : 1);
  }
  r.memory_ratio = std::max(r.memory_ratio, bits / all);
  r.energy_ratio += work / all_work;
  r.resident_bytes = std::max(r.resident_bytes, bytes);
}

}  // namespace

std::vector<std::uint8_t> quantise(FloatNet& net, const Matrix& calibration, const QuantOptions& o,
                                   double src_accuracy) {
  net.forward(calibration);
  testing::NetSpec spec;
  const FloatLayer& first = net.layers[0];
  if (first.conv) {
    const auto side = static_cast<std::uint16_t>(first.side);
    spec.input_dims = {1, side, side};
  } else {
    spec.input_dims = {static_cast<std::uint16_t>(first.w.rows())};
  }
  int in_exp = kInputExp;
  for (std::size_t i = 0; i < net.layers.size(); ++i) {
    const FloatLayer& l = net.layers[i];
    const int w_exp = scale_exp(l.w.cwiseAbs().maxCoeff(), o.weight_limit);
    int out_exp =
        scale_exp(quantile(net.acts()[i], 0.999), l.relu ? o.hidden_range : o.logit_range);
    if (o.logit_exp && i + 1 == net.layers.size()) out_exp = *o.logit_exp;
    out_exp = std::clamp(out_exp, in_exp + w_exp, in_exp + w_exp + 31);
    spec.layers.push_back(to_spec(l, in_exp, w_exp, out_exp));
    if (l.conv) {
      testing::LayerSpec flat;
      flat.kind = testing::OpKind::kFlatten;
      spec.layers.push_back(flat);
    }
    in_exp = out_exp;
  }
  spec.n_classes = static_cast<std::uint16_t>(net.layers.back().w.cols());
  const auto level = [in_exp](float v) {
    return static_cast<std::int8_t>(
        std::clamp(std::floor(std::ldexp(v, -in_exp) + 0.5f), -128.0f, 127.0f));
  };
  for (std::uint16_t c = 0; c < spec.n_classes; ++c) {
    spec.target_correct.push_back(level(net.target_correct[c]));
    spec.target_wrong.push_back(level(net.target_wrong[c]));
  }
  spec.ce_scale = static_cast<std::uint16_t>(
      std::clamp(std::nearbyint(std::ldexp(1.4426950408889634 * 256, in_exp)), 1.0, 65535.0));
  spec.src_total = 10000;
  spec.src_correct = static_cast<std::uint32_t>(std::lround(src_accuracy * 10000));
  return testing::build_image(spec);
}

odt_run_spec_t plain_run(int k, std::array<int, 3> mu) {
  odt_run_spec_t s{};
  s.rule_set = ODT_RULE_NITI;
  s.loss = ODT_LOSS_MSE;
  s.shift_source = ODT_SHIFT_EXACT;
  for (std::size_t i = 0; i < 3; ++i) s.mu_weight[i] = static_cast<std::int8_t>(mu[i]);
  s.mu_offset = 1;
  s.k = static_cast<std::uint8_t>(k);
  s.batch = 8;
  s.epochs = 10;
  s.sr_seed = 1;
  std::memset(s.class_weights, 64, sizeof s.class_weights);
  return s;
}

IntNet::IntNet(std::vector<std::uint8_t> image)
    : image_(std::move(image)), model_(std::make_unique<odt_model_t>()) {
  odt_error_t err{};
  if (odt_model_open(model_.get(), image_.data(), static_cast<std::uint32_t>(image_.size()),
                     &err) != ODT_OK)
    refuse(err);
}

std::uint32_t IntNet::correct(const Set& set) const {
  odt_run_spec_t spec = plain_run(8, {0, 0, 0});
  spec.train_samples = 1;
  spec.batch = 1;
  Trainer trainer(*model_, spec);
  const auto blob = set.blob();
  return count_correct(&trainer.t, open(blob));
}

double IntNet::accuracy(const Set& set) const {
  return static_cast<double>(correct(set)) / set.count;
}

IntResult IntNet::train(odt_run_spec_t spec, const Set& train, const Set* heldout, const Set& test,
                        std::uint32_t seed) const {
  const auto train_blob = train.blob(), test_blob = test.blob();
  std::vector<std::uint8_t> heldout_blob;
  if (heldout) heldout_blob = heldout->blob();
  const odt_samples_t s_train = open(train_blob), s_test = open(test_blob);
  spec.train_samples = train.count;
  spec.heldout_samples = heldout ? heldout->count : 0;
  spec.order_seed = seed;
  Trainer trainer(*model_, spec);
  odt_trainer_t* t = &trainer.t;
  IntResult result;
  result.plan = trainer.plan;
  const auto guard_count = [&] { return heldout ? count_correct(t, open(heldout_blob)) : 0; };
  const std::uint32_t held = spec.heldout_samples;
  std::uint32_t best = guard_count();
  if (heldout) result.heldout_start = static_cast<double>(best) / held;
  odt_trainer_set_start(t, best, held);
  odt_error_t err{};
  while (!odt_trainer_done(t)) {
    odt_step_record_t step;
    while (!odt_trainer_epoch_complete(t)) {
      if (odt_trainer_step_resident(t, &s_train, &step, &err) != ODT_OK) refuse(err);
      count_precision(*model_, step, result);
    }
    const std::uint32_t correct = guard_count();
    best = std::max(best, correct);
    odt_epoch_record_t epoch;
    if (odt_trainer_end_epoch(t, correct, held, &epoch, &err) != ODT_OK) refuse(err);
    result.alarms |= epoch.alarms;
    result.epochs.push_back(epoch);
  }
  if (heldout) result.heldout_best = static_cast<double>(best) / held;
  result.steps = odt_trainer_step_count(t);
  result.energy_ratio /= result.steps;
  result.after = static_cast<double>(count_correct(t, s_test)) / test.count;
  return result;
}

}  // namespace odt::learn
