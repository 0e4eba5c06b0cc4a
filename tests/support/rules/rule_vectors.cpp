#include "rule_vectors.h"

#include <functional>

namespace odt::testing {
namespace {

using Json = nlohmann::json;

std::string hex(const std::vector<uint8_t>& bytes) {
  static const char digits[] = "0123456789abcdef";
  std::string out;
  for (uint8_t b : bytes) {
    out += digits[b >> 4];
    out += digits[b & 15];
  }
  return out;
}

Json rounding_vectors() {
  const Values g = {INT32_MIN,
                    INT32_MIN + 1,
                    INT32_MAX,
                    INT32_MAX - 1,
                    -1000,
                    -513,
                    -512,
                    -511,
                    -3,
                    -2,
                    -1,
                    0,
                    1,
                    2,
                    3,
                    63,
                    96,
                    255,
                    256,
                    511,
                    512,
                    999,
                    1000,
                    int64_t{1} << 40,
                    -(int64_t{1} << 40) - 7,
                    0x123456789,
                    -0x76543210F};
  Json out = Json::array();
  for (int rounding = 1; rounding <= 4; rounding++) {
    for (int s : {-3, 0, 1, 2, 3, 8, 9, 30, 31, 32, 33, 40, 62}) {
      Json results = Json::array(), rs = Json::array();
      for (size_t i = 0; i < g.size(); i++) {
        uint32_t r = oracle_hash32(1, 2, 3, static_cast<uint32_t>(i));
        rs.push_back(r);
        results.push_back(oracle_round(g[i], s, static_cast<Rounding>(rounding), r));
      }
      Json v = {{"rounding", rounding}, {"s", s}, {"g", g}, {"result", results}};
      if (rounding == 4) v["r"] = rs;
      out.push_back(v);
    }
  }
  return out;
}

Json hash_vectors() {
  Json out = Json::array();
  for (uint32_t v : {0u, 1u, 0x9E3779B9u, 0xFFFFFFFFu}) {
    out.push_back(
        {{"values", {v, v / 3, 7u, v ^ 0x55u}}, {"hash32", oracle_hash32(v, v / 3, 7, v ^ 0x55)}});
  }
  return out;
}

Json order_vectors() {
  Json out = Json::array();
  // The second seed's state is 0 in epoch 0.
  for (uint32_t seed : {1u, 0x9E3779B1u, 0xFFFFFFFFu}) {
    for (uint32_t epoch : {0u, 1u, 999u}) {
      out.push_back({{"order_seed", seed}, {"epoch", epoch}, {"p", oracle_order(seed, epoch, 20)}});
    }
  }
  return out;
}

Json layers_json(const std::vector<LayerView>& layers) {
  Json out = Json::array();
  for (const LayerView& l : layers) {
    Json v = {{"k", l.k}, {"b_prev", l.b_prev}, {"weights", l.m}, {"offsets", l.off}};
    if (l.n != 0 || l.a != 0) v["apt"] = {l.a, l.n};
    if (l.k_off != 0) {
      v["k_off"] = l.k_off;
      v["apt_offsets"] = {l.a_off, l.n_off};
    }
    if (!l.exponents.empty()) v["exponents"] = l.exponents;
    out.push_back(v);
  }
  return out;
}

Json record_json(const Reference& reference) {
  Json layers = Json::array();
  std::vector<LayerView> views = reference.layers();
  std::vector<LayerStep> steps = reference.last_step();
  for (size_t i = 0; i < steps.size(); i++) {
    Json v = {{"bits", steps[i].bits}, {"k", steps[i].k}, {"e_d", steps[i].e_d}};
    if (steps[i].bits != 0 && !views[i].m.empty()) v["shift"] = steps[i].shift;
    layers.push_back(v);
  }
  return {{"loss", reference.loss()}, {"correct", reference.correct()}, {"layers", layers}};
}

Json play(const RuleRun& rule) {
  const ComparedRun& run = rule.run;
  const odt_run_spec_t& s = run.spec;
  auto n = static_cast<int>(s.train_samples);
  std::vector<int> all;
  for (int i = 0; i < n; i++) all.push_back(i);
  Json out = {{"name", rule.name},
              {"shows", rule.shows},
              {"image", hex(build_image(run.net))},
              {"samples", hex(samples_blob(run.samples, all))},
              {"spec", spec_json(s)},
              {"steps", Json::array()}};
  for (const Steer& steer : run.steers) {
    out["set_k"].push_back({steer.after_step, steer.layer, steer.k});
  }
  if (s.guard) out["heldout_scores"] = run.scores;
  std::unique_ptr<Reference> reference = reference_of(run);
  uint32_t best = s.guard ? run.scores[0] : 0;
  if (s.guard) reference->keep_best();
  int step = 0;
  for (uint32_t epoch = 0; epoch < s.epochs; epoch++) {
    std::vector<int> order = oracle_order(s.order_seed, epoch, n);
    for (int at = 0; at < n; at += s.batch) {
      std::vector<Values> xs, targets;
      std::vector<int> labels;
      for (int j = at; j < std::min<int>(n, at + s.batch); j++) {
        auto from = static_cast<size_t>(order[static_cast<size_t>(j)]);
        xs.push_back(run.samples.values[from]);
        targets.push_back(run.samples.targets[from]);
        labels.push_back(run.samples.labels[from]);
      }
      reference->step(xs, labels, targets);
      Json record = record_json(*reference);
      record["after"] = layers_json(reference->layers());
      out["steps"].push_back(record);
      for (const Steer& steer : run.steers) {
        if (steer.after_step == step && at + s.batch < n) reference->set_k(steer.layer, steer.k);
      }
      step++;
    }
    if (s.guard && run.scores[epoch + 1] > best) {
      best = run.scores[epoch + 1];
      reference->keep_best();
    }
  }
  if (s.guard) reference->roll_back();
  out["end"] = layers_json(reference->layers());
  return out;
}

// Calls fn(name, field) for every number of the settings.
template <class Spec, class Fn>
void each_field(Spec& s, Fn fn) {
  fn("rule_set", s.rule_set);
  fn("rounding", s.rounding);
  fn("loss", s.loss);
  fn("shift_source", s.shift_source);
  fn("mu_offset", s.mu_offset);
  fn("dead_zone", s.dead_zone);
  fn("k", s.k);
  fn("batch", s.batch);
  fn("epochs", s.epochs);
  fn("train_samples", s.train_samples);
  fn("heldout_samples", s.heldout_samples);
  fn("order_seed", s.order_seed);
  fn("sr_seed", s.sr_seed);
  fn("guard", s.guard);
  fn("apt_mode", s.apt.mode);
  fn("apt_k_max", s.apt.k_max);
  fn("apt_offsets", s.apt.offsets);
  fn("apt_t_min_q8", s.apt.t_min_q8);
  fn("apt_t_max_q8", s.apt.t_max_q8);
  fn("lr_s", s.lr_s);
  fn("blocked", s.blocked);
}

}  // namespace

Json spec_json(const odt_run_spec_t& spec) {
  Json out;
  each_field(spec, [&](const char* name, auto value) {
    if (value != 0) out[name] = static_cast<int64_t>(value);
  });
  for (int8_t mu : spec.mu_weight) out["mu_weight"].push_back(mu);
  for (uint16_t m : spec.lr_m) out["lr_m"].push_back(m);
  for (int i = 0; i < 8; i++) out["class_weights"].push_back(spec.class_weights[i]);
  for (int i = 0; i < 4; i++) out["layer_k"].push_back(spec.layer_k[i]);
  return out;
}

odt_run_spec_t spec_of_json(const Json& json) {
  odt_run_spec_t s{};
  each_field(s, [&](const char* name, auto& field) {
    using Field = std::remove_reference_t<decltype(field)>;
    field = static_cast<Field>(json.value(name, int64_t{0}));
  });
  for (size_t i = 0; i < 3; i++) {
    s.mu_weight[i] = json["mu_weight"][i].get<int8_t>();
    s.lr_m[i] = json["lr_m"][i].get<uint16_t>();
  }
  for (size_t i = 0; i < ODT_MAX_CLASSES; i++) {
    s.class_weights[i] = i < 8 ? json["class_weights"][i].get<uint8_t>() : uint8_t{64};
  }
  for (size_t i = 0; i < 4; i++) s.layer_k[i] = json["layer_k"][i].get<uint8_t>();
  return s;
}

std::vector<uint8_t> bytes_of_hex(const std::string& text) {
  std::vector<uint8_t> out;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    out.push_back(static_cast<uint8_t>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return out;
}

Json rule_vectors() {
  Json out = {{"rules_version", 1},
              {"rounding", rounding_vectors()},
              {"hash32", hash_vectors()},
              {"order", order_vectors()},
              {"runs", Json::array()}};
  for (const RuleRun& rule : rule_runs()) out["runs"].push_back(play(rule));
  return out;
}

}  // namespace odt::testing
