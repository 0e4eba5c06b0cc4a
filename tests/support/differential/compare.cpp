#include "compare.h"

#include <algorithm>
#include <memory>

namespace odt::testing {
namespace {

struct Engine {
  std::vector<uint8_t> image;
  odt_model_t model{};
  std::vector<uint64_t> arena;
  std::unique_ptr<odt_trainer_t> trainer = std::make_unique<odt_trainer_t>();
  odt_error_t err{};

  std::string failure(const char* call) const {
    return std::string(call) + ": " + (err.what ? err.what : "?") + " index " +
           std::to_string(err.index) + " got " + std::to_string(err.got) + " limits " +
           std::to_string(err.limit_lo) + ".." + std::to_string(err.limit_hi) + " status " +
           std::to_string(err.status);
  }
  bool start(const ComparedRun& run, bool resident, std::string* why) {
    image = build_image(run.net);
    if (odt_model_open(&model, image.data(), static_cast<uint32_t>(image.size()), &err)) {
      *why = failure("open");
      return false;
    }
    if (odt_run_spec_check(&run.spec, &model, &err)) {
      *why = failure("spec");
      return false;
    }
    odt_memory_plan_t plan{};
    odt_trainer_plan(&model, &run.spec, resident, &plan);
    arena.assign(plan.total_bytes / 8 + 1, 0xA5A5A5A5A5A5A5A5u);
    if (odt_trainer_init(trainer.get(), &model, &run.spec, resident, arena.data(), plan.total_bytes,
                         &err)) {
      *why = failure("init");
      return false;
    }
    return true;
  }
  // Takes over state and best of another one.
  bool restore(const Engine& from, bool guard, std::string* why) {
    std::vector<uint8_t> bytes = from.state();
    auto n = static_cast<uint32_t>(bytes.size());
    odt_trainer_t* t = trainer.get();
    if (odt_state_write(t, 0, bytes.data(), n, &err) || odt_state_write_end(t, &err)) {
      *why = failure("state_write");
      return false;
    }
    if (!guard) return true;
    std::vector<uint8_t> best(odt_best_size(from.trainer.get()));
    n = static_cast<uint32_t>(best.size());
    odt_weights_read(from.trainer.get(), true, 0, best.data(), n);
    if (odt_weights_write(t, true, 0, best.data(), n, &err) ||
        odt_weights_write_end(t, true, &err)) {
      *why = failure("weights_write");
      return false;
    }
    return true;
  }
  std::vector<uint8_t> state() const {
    std::vector<uint8_t> out(odt_state_size(trainer.get()));
    odt_state_read(trainer.get(), 0, out.data(), static_cast<uint32_t>(out.size()));
    return out;
  }
};

class Comparison {
 public:
  explicit Comparison(const ComparedRun& run) : run_(run), reference_(reference_of(run)) {}

  Difference go() {
    Difference d;
    if (!resident_.start(run_, true, &d.text) || !streamed_->start(run_, false, &d.text)) {
      d.refused = true;
      return d;
    }
    const odt_run_spec_t& s = run_.spec;
    std::vector<int> all;
    for (int i = 0; i < static_cast<int>(s.train_samples); i++) all.push_back(i);
    blob_ = samples_blob(run_.samples, all);
    if (odt_samples_open(&train_, blob_.data(), static_cast<uint32_t>(blob_.size()), nullptr)) {
      d.text = "samples_open";
      return d;
    }
    if (odt_samples_fit(&train_, &resident_.model, &resident_.err)) {
      d.text = resident_.failure("samples_fit");
      return d;
    }
    d.text = start_frozen();
    if (s.guard) {
      if (has_frozen_) {
        odt_trainer_set_start(frozen_.trainer.get(), score(0), s.heldout_samples);
      }
      odt_trainer_set_start(resident_.trainer.get(), score(0), s.heldout_samples);
      odt_trainer_set_start(streamed_->trainer.get(), score(0), s.heldout_samples);
      best_ = score(0);
      reference_->keep_best();
    }
    for (int i = 0; i < run_.max_steps && d.text.empty(); i++) {
      if (odt_trainer_done(resident_.trainer.get())) break;
      d.text = one_step();
      if (!d.text.empty()) d.text = "step " + std::to_string(i) + ": " + d.text;
    }
    return d;
  }

 private:
  uint32_t score(uint32_t epoch) const { return run_.scores[epoch]; }
  bool lower_is_better() const { return run_.net.task != 0; }

  std::string one_step() {
    odt_trainer_t* t = resident_.trainer.get();
    const odt_run_spec_t& s = run_.spec;
    uint32_t position = t->position;
    std::vector<int> order =
        oracle_order(s.order_seed, odt_trainer_epoch_count(t), static_cast<int>(s.train_samples));
    std::vector<int> batch;
    for (uint32_t j = position; j < s.train_samples && batch.size() < s.batch; j++) {
      batch.push_back(order[j]);
    }
    std::vector<Values> xs, targets;
    std::vector<int> labels;
    for (int i : batch) {
      xs.push_back(run_.samples.values[static_cast<size_t>(i)]);
      labels.push_back(run_.samples.labels[static_cast<size_t>(i)]);
      targets.push_back(run_.samples.targets[static_cast<size_t>(i)]);
    }
    reference_->step(xs, labels, targets);
    odt_step_record_t rec{}, rec2{};
    std::vector<uint8_t> blob = samples_blob(run_.samples, batch);
    odt_samples_t part{};
    odt_samples_open(&part, blob.data(), static_cast<uint32_t>(blob.size()), nullptr);
    if (odt_trainer_step_resident(t, &train_, &rec, &resident_.err)) {
      return resident_.failure("step_resident");
    }
    if (odt_trainer_step(streamed_->trainer.get(), &part, &rec2, &streamed_->err)) {
      return streamed_->failure("step");
    }
    std::string d = record(rec);
    if (d.empty()) d = state("");
    if (d.empty()) d = predictions();
    if (d.empty()) d = frozen_step();
    if (d.empty()) d = steer(static_cast<int>(rec.step));
    if (d.empty() && odt_trainer_epoch_complete(t)) d = end_epoch();
    if (d.empty() && resident_.state() != streamed_->state()) d = "resident is not streamed";
    if (d.empty() && has_frozen_ && resident_.state() != frozen_.state()) {
      d = "frozen samples differ";
    }
    if (d.empty() && static_cast<int>(rec.step) == run_.restore_after) d = restore();
    return d;
  }

  // A third library trains on the cut tensor's values.
  std::string start_frozen() {
    int cut = reference_->cut();
    std::string d = differ("cut", resident_.model.cut, cut < 0 ? ODT_NO_TENSOR : cut);
    if (!d.empty() || cut <= 0 || run_.net.arith == 1) return d;
    if (!frozen_.start(run_, true, &d)) return "frozen: " + d;
    const odt_tensor_t& tensor = frozen_.model.tensors[cut];
    std::vector<Values> values;
    std::vector<uint8_t> out(tensor.count * 2);
    auto dtype = static_cast<DType>(tensor.dtype);
    std::vector<int> all;
    for (size_t i = 0; i < run_.spec.train_samples; i++) {
      values.push_back(reference_->tensor(run_.samples.values[i], cut));
      std::vector<uint8_t> x = value_bytes(run_.samples.dtype, run_.samples.values[i]);
      if (odt_trainer_freeze(frozen_.trainer.get(), x.data(), out.data())) return "freeze";
      std::vector<uint8_t> want = value_bytes(dtype, values.back());
      if (!std::equal(want.begin(), want.end(), out.begin())) return "frozen values";
      all.push_back(static_cast<int>(i));
    }
    frozen_blob_ = samples_blob(frozen_samples(run_.net, run_.samples, dtype, values), all);
    auto bytes = static_cast<uint32_t>(frozen_blob_.size());
    if (odt_samples_open(&frozen_train_, frozen_blob_.data(), bytes, &frozen_.err) ||
        odt_samples_fit(&frozen_train_, &frozen_.model, &frozen_.err)) {
      return frozen_.failure("frozen samples");
    }
    has_frozen_ = true;
    return "";
  }

  std::string frozen_step() {
    odt_step_record_t rec{};
    if (!has_frozen_) return "";
    if (odt_trainer_step_resident(frozen_.trainer.get(), &frozen_train_, &rec, &frozen_.err)) {
      return frozen_.failure("frozen step");
    }
    return differ("frozen loss", rec.loss, reference_->loss());
  }

  // The streamed library goes on as another one with the same state.
  std::string restore() {
    auto fresh = std::make_unique<Engine>();
    std::string why;
    if (!fresh->start(run_, false, &why)) return "restore: " + why;
    if (!fresh->restore(*streamed_, run_.spec.guard, &why)) return why;
    if (fresh->state() != streamed_->state()) return "a restored state differs";
    streamed_ = std::move(fresh);
    return "";
  }

  template <class A, class B>
  static std::string differ(const std::string& what, A engine, B oracle) {
    if (static_cast<int64_t>(engine) == static_cast<int64_t>(oracle)) return "";
    return what + ": engine " + std::to_string(engine) + ", oracle " + std::to_string(oracle);
  }
  static std::string differ(const std::string& what, const Values& engine, const Values& oracle) {
    if (engine.size() != oracle.size()) {
      return differ(what + " count", engine.size(), oracle.size());
    }
    for (size_t i = 0; i < engine.size(); i++) {
      if (engine[i] != oracle[i]) {
        return differ(what + "[" + std::to_string(i) + "]", engine[i], oracle[i]);
      }
    }
    return "";
  }

  std::string record(const odt_step_record_t& rec) {
    std::string d = differ("loss", rec.loss, reference_->loss());
    if (d.empty()) d = differ("correct", rec.correct, reference_->correct());
    std::vector<LayerStep> want = reference_->last_step();
    for (size_t i = 0; i < want.size() && d.empty(); i++) {
      std::string at = "record of layer " + std::to_string(i) + " ";
      d = differ(at + "bits", rec.layers[i].bits, want[i].bits);
      bool some = reference_->layers()[i].m.size() > 0 && want[i].bits != 0;
      if (d.empty() && some) d = differ(at + "shift", rec.layers[i].shift, want[i].shift);
      if (d.empty()) d = differ(at + "k", rec.layers[i].k, want[i].k);
    }
    return d;
  }

  std::string state(const std::string& where) {
    StateView got = read_state(resident_.state());
    if (!got.whole) return where + "the state's length";
    std::vector<LayerView> want = reference_->layers();
    std::string d = differ(where + "layers", got.layers.size(), want.size());
    for (size_t i = 0; i < want.size() && d.empty(); i++) {
      const LayerView &g = got.layers[i], &w = want[i];
      std::string at = where + "layer " + std::to_string(i) + " ";
      auto check = [&](const char* name, auto a, auto b) {
        if (d.empty()) d = differ(at + name, a, b);
      };
      check("offset", g.off, w.off);
      check("weight", g.m, w.m);
      check("k", g.k, w.k);
      check("dtype", g.dtype, w.dtype);
      check("b_prev", g.b_prev, w.b_prev);
      check("k_off", g.k_off, w.k_off);
      check("a", g.a, w.a);
      check("n", g.n, w.n);
      check("a of offsets", g.a_off, w.a_off);
      check("n of offsets", g.n_off, w.n_off);
      check("exponent", g.exponents, w.exponents);
    }
    return d;
  }

  std::string steer(int step) {
    if (odt_trainer_epoch_complete(resident_.trainer.get())) return "";
    for (const Steer& s : run_.steers) {
      if (s.after_step != step) continue;
      for (Engine* e : {&resident_, streamed_.get(), &frozen_}) {
        if (e == &frozen_ && !has_frozen_) continue;
        auto k = static_cast<uint8_t>(s.k);
        if (odt_trainer_set_k(e->trainer.get(), s.layer, k, &e->err)) return e->failure("set_k");
      }
      reference_->set_k(s.layer, s.k);
    }
    return state("after steering: ");
  }

  std::string predictions() {
    size_t n = std::min<size_t>(2, run_.samples.values.size());
    uint32_t correct = 0;
    uint64_t loss = 0, want_loss = 0;
    int want_correct = 0;
    for (size_t i = 0; i < n; i++) {
      want_loss += reference_->evaluate(run_.samples.values[i], run_.samples.labels[i],
                                        run_.samples.targets[i], &want_correct);
    }
    odt_trainer_eval(resident_.trainer.get(), &train_, 0, static_cast<uint32_t>(n), &correct, &loss,
                     nullptr);
    std::string d = differ("evaluated loss", loss, want_loss);
    if (d.empty()) d = differ("evaluated correct", correct, want_correct);
    if (d.empty() && run_.net.task == 2) {
      uint32_t got = 0;
      uint64_t want = reference_->evaluate(run_.samples.values[0], 0, {}, nullptr);
      if (odt_trainer_score(resident_.trainer.get(), train_.data, &got)) return "score";
      d = differ("anomaly score", got, std::min<uint64_t>(want, UINT32_MAX));
    }
    if (!d.empty()) return d;
    if (run_.net.arith == 1) return predictions16();
    std::vector<int8_t> logits(run_.net.n_classes);
    odt_trainer_infer(resident_.trainer.get(), train_.data, logits.data());
    return differ("logit", Values(logits.begin(), logits.end()),
                  reference_->infer(run_.samples.values[0], nullptr));
  }

  std::string predictions16() {
    std::vector<int16_t> logits(run_.net.n_classes);
    int32_t exponent = 0;
    if (odt_trainer_infer16(resident_.trainer.get(), train_.data, logits.data(), &exponent)) {
      return "infer16";
    }
    int want_exponent = 0;
    Values want = reference_->infer(run_.samples.values[0], &want_exponent);
    std::string d = differ("exponent of the logits", exponent, want_exponent);
    return d.empty() ? differ("logit", Values(logits.begin(), logits.end()), want) : d;
  }

  // Rule 1.14, where nothing was rolled back.
  std::string telemetry(const odt_epoch_record_t& rec) {
    std::string d;
    std::vector<OracleLayer> layers = reference_->telemetry();
    for (size_t i = 0; i < layers.size() && d.empty(); i++) {
      const odt_layer_epoch_t& got = rec.layers[i];
      const OracleLayer& l = layers[i];
      const OracleEpoch& e = l.epoch;
      auto check = [&](const char* name, auto a, auto b) {
        if (d.empty()) d = differ("epoch of layer " + std::to_string(i) + " " + name, a, b);
      };
      auto ppm = [](uint64_t part, uint64_t whole) {
        return whole == 0 ? 0 : part * 1000000 / whole;
      };
      check("bits_min", got.bits_min, e.bits_min);
      check("bits_max", got.bits_max, e.bits_max);
      check("bits_mean", got.bits_mean_q8, e.bits_sum * 256 / static_cast<uint64_t>(e.steps));
      check("zero_propagated", got.zero_propagated_ppm, ppm(e.zeros, e.propagated));
      check("nonzero_deltas", got.nonzero_deltas_ppm, ppm(e.nonzero, e.deltas));
      if (l.m.empty()) continue;
      check("w_min", got.w_min, *std::min_element(l.m.begin(), l.m.end()));
      check("w_max", got.w_max, *std::max_element(l.m.begin(), l.m.end()));
      check("saturated", got.saturated, l.saturated(run_.spec.rule_set == ODT_RULE_NITI_LITERAL));
      check("sum_abs_g", got.sum_abs_g, e.sum_abs_g);
      check("sum_n", got.sum_n, e.sum_n);
    }
    return d;
  }

  std::string end_epoch() {
    odt_trainer_t *a = resident_.trainer.get(), *b = streamed_->trainer.get();
    odt_epoch_record_t rec{}, rec2{};
    uint32_t total = run_.spec.heldout_samples;
    uint32_t now = run_.spec.guard ? score(odt_trainer_epoch_count(a) + 1) : 0;
    std::vector<LayerStep> last = reference_->last_step();
    if (odt_trainer_end_epoch(a, now, total, &rec, &resident_.err)) {
      return resident_.failure("end_epoch");
    }
    if (odt_trainer_end_epoch(b, now, total, &rec2, &streamed_->err)) {
      return streamed_->failure("end_epoch");
    }
    if (has_frozen_ &&
        odt_trainer_end_epoch(frozen_.trainer.get(), now, total, &rec2, &frozen_.err)) {
      return frozen_.failure("end_epoch");
    }
    std::string d;
    for (size_t i = 0; i < last.size() && d.empty(); i++) {
      d = differ("e_d of layer " + std::to_string(i), rec.layers[i].e_d, last[i].e_d);
    }
    if (d.empty() && !run_.spec.guard) d = telemetry(rec);
    reference_->start_epoch();
    if (!run_.spec.guard) return d;
    if (lower_is_better() ? now < best_ : now > best_) {
      best_ = now;
      reference_->keep_best();
    }
    if (odt_trainer_done(a)) reference_->roll_back();
    return d.empty() ? state("after the epoch: ") : d;
  }

  const ComparedRun& run_;
  std::unique_ptr<Reference> reference_;
  Engine resident_, frozen_;
  std::unique_ptr<Engine> streamed_ = std::make_unique<Engine>();
  bool has_frozen_ = false;
  std::vector<uint8_t> blob_, frozen_blob_;
  odt_samples_t frozen_train_{};
  odt_samples_t train_{};
  uint32_t best_ = 0;
};

}  // namespace

Difference compare(const ComparedRun& run) { return Comparison(run).go(); }

LibraryStep library_step(const ComparedRun& run) {
  LibraryStep out;
  Engine engine;
  if (!engine.start(run, true, &out.failure)) return out;
  std::vector<int> all;
  for (int i = 0; i < static_cast<int>(run.spec.train_samples); i++) all.push_back(i);
  std::vector<uint8_t> blob = samples_blob(run.samples, all);
  odt_samples_t samples{};
  odt_trainer_t* t = engine.trainer.get();
  if (odt_samples_open(&samples, blob.data(), static_cast<uint32_t>(blob.size()), &engine.err)) {
    out.failure = engine.failure("samples_open");
    return out;
  }
  out.before = read_state(engine.state());
  if (odt_trainer_step_resident(t, &samples, &out.record, &engine.err)) {
    out.failure = engine.failure("step_resident");
  }
  out.after = read_state(engine.state());
  odt_trainer_end_epoch(t, 0, 0, &out.epoch, nullptr);
  return out;
}

}  // namespace odt::testing
