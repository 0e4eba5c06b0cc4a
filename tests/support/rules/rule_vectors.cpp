#include "rule_vectors.h"

#include <functional>

namespace odt::testing {
namespace {

using Json = nlohmann::json;

std::vector<uint8_t> sha256(const std::vector<uint8_t>& bytes) {
  odt_sha256_t s;
  odt_sha256_init(&s);
  odt_sha256_update(&s, bytes.data(), static_cast<uint32_t>(bytes.size()));
  std::vector<uint8_t> hash(32);
  odt_sha256_final(&s, hash.data());
  return hash;
}

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

// odt_weights v1 by its layout in proto/README.md.
std::vector<uint8_t> weights_bytes(const ComparedRun& run, const std::vector<LayerView>& layers) {
  std::vector<uint8_t> out;
  auto put = [&](int64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
  };
  auto pad = [&] {
    while (out.size() % 4 != 0) out.push_back(0);
  };
  for (char c : {'O', 'D', 'T', 'W'}) out.push_back(static_cast<uint8_t>(c));
  put(1, 2);
  put(1, 2);
  put(run.spec.rule_set, 1);
  put(static_cast<int64_t>(layers.size()), 1);
  put(0, 2);
  std::vector<uint8_t> hash = sha256(build_image(run.net));
  out.insert(out.end(), hash.begin(), hash.end());
  OracleGraph graph(run.net);
  size_t next = 0;
  for (size_t op = 0; op < graph.ops(); op++) {
    const LayerSpec& l = graph.op(op);
    if (!l.trainable) continue;
    const LayerView& v = layers[next++];
    const std::vector<uint16_t>& in = graph.dims(graph.input(op, 0));
    bool conv = l.kind == OpKind::kConv2d;
    put(conv ? 2 : 3, 1);
    put(v.dtype, 1);
    put(v.k, 1);
    put(conv ? 4 : 2, 1);
    put(conv ? l.outputs : in[0], 2);
    put(conv ? in[0] / l.groups : l.outputs, 2);
    put(conv ? l.k_h : 0, 2);
    put(conv ? l.k_w : 0, 2);
    put(static_cast<int64_t>(v.m.size()), 4);
    put(static_cast<int64_t>(v.off.size()), 4);
    for (int64_t m : v.m) put(m, v.dtype == 1 ? 1 : 2);
    pad();
    for (int64_t o : v.off) put(o, 4);
    for (int64_t e : v.exponents) put(e, 1);
    pad();
  }
  return out;
}

Json play(const RuleRun& rule, bool chain32 = false) {
  ComparedRun run = rule.run;
  run.chain32 = chain32;
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
    if (!s.guard) continue;
    uint32_t now = run.scores[epoch + 1];
    if (run.net.task != 0 ? now < best : now > best) {
      best = now;
      reference->keep_best();
    }
  }
  if (s.guard) reference->roll_back();
  out["end"] = layers_json(reference->layers());
  out["weights_sha256"] = hex(sha256(weights_bytes(run, reference->layers())));
  return out;
}

// What a board can hold, with a row that fills a vector register.
bool fits_board(const ComparedRun& run) {
  size_t longest = 0;
  OracleGraph graph(run.net);
  for (size_t i = 0; i < graph.ops(); i++) {
    if (!graph.op(i).trainable) continue;
    size_t weights = graph.op(i).weights.size() + graph.op(i).weights16.size();
    longest = std::max(longest, weights / graph.op(i).outputs);
  }
  return longest >= 20 && build_image(run.net).size() <= 6000 &&
         count(run.net.input_dims) * run.spec.train_samples <= 6000;
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
  for (int i = 0; i < 9; i++) out["class_weights"].push_back(spec.class_weights[i]);
  for (uint8_t k : spec.layer_k) out["layer_k"].push_back(k);
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
    s.class_weights[i] = i < 9 ? json["class_weights"][i].get<uint8_t>() : uint8_t{64};
  }
  for (size_t i = 0; i < ODT_MAX_LAYERS; i++) {
    s.layer_k[i] = json["layer_k"][i].get<uint8_t>();
  }
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
  for (const RuleRun& rule : rule_runs()) {
    out["runs"].push_back(play(rule));
    if (rule.run.net.arith == 1) out["chain32"].push_back(play(rule, true));
  }
  return out;
}

Json wide_vectors() {
  Json out = {{"rules_version", 1}, {"runs", Json::array()}};
  const struct {
    const char* name;
    RunKind kind;
    bool graphs;
  } kinds[] = {{"niti_chain", RunKind::kNiti, false},
               {"niti_graph", RunKind::kNiti, true},
               {"apt_graph", RunKind::kApt, true},
               {"dfp16_graph", RunKind::kDfp16, true}};
  for (const auto& kind : kinds) {
    int found = 0;
    for (uint32_t seed = 700000; found < 10; seed++) {
      Choices c(seed);
      RuleRun rule{std::string(kind.name) + "_" + std::to_string(seed), "",
                   random_run(c, kind.kind, 10, kind.graphs)};
      if (!fits_board(rule.run)) continue;
      Json run = play(rule), losses = Json::array();
      for (const Json& step : run["steps"]) losses.push_back(step["loss"]);
      run["losses"] = losses;
      for (const char* name : {"steps", "end", "shows"}) run.erase(name);
      out["runs"].push_back(run);
      found++;
    }
  }
  return out;
}

}  // namespace odt::testing
