// Rule 1.12: precision per layer from k = 6 against fixed precisions, on the same work.
#include <algorithm>
#include <set>

#include "recipes.h"
#include "tasks.h"

namespace odt::learn {
namespace {

struct Figures {
  std::vector<double> accuracy, memory, energy;
  std::uint32_t resident = 0;
  bool moved = true;  // in every run each layer's k changed, and the last ones are not all equal
  std::string last_k;

  void add(const IntResult& r, std::uint32_t layers, std::uint32_t start_k) {
    accuracy.push_back(r.after);
    memory.push_back(r.memory_ratio);
    energy.push_back(r.energy_ratio);
    resident = std::max(resident, r.resident_bytes);
    std::set<int> last;
    last_k.clear();
    for (std::uint32_t i = 0; i < layers; ++i) {
      const int k = r.epochs.back().layers[i].k;
      last.insert(k);
      last_k.append(" ").append(std::to_string(k));
      if (k == static_cast<int>(start_k)) moved = false;
    }
    if (last.size() < 2) moved = false;
  }
};

// A recipe at a precision: mu within its limits.
odt_run_spec_t at_k(odt_run_spec_t s, int k) {
  s.k = static_cast<std::uint8_t>(k);
  s.apt = {};
  std::int8_t lo, hi;
  odt_mu_limits(&s, &lo, &hi);
  for (auto& mu : s.mu_weight) mu = std::clamp(mu, lo, hi);
  return s;
}

struct Row {
  std::string name;
  odt_run_spec_t spec;
  Figures all;
};

std::vector<Row> rows_of(const odt_run_spec_t& apt, bool quick) {
  std::vector<Row> rows = {{"apt", apt, {}}, {"fixed_16", at_k(apt, 16), {}}};
  rows[1].spec.rounding = ODT_ROUND_DEFAULT;
  if (quick) return rows;
  for (const int k : {6, 8, 10, 12}) {
    rows.push_back({"fixed_" + std::to_string(k) + "_sr", at_k(apt, k), {}});
    odt_run_spec_t plain = apt;
    plain.rounding = ODT_ROUND_DEFAULT;
    rows.push_back({"fixed_" + std::to_string(k), at_k(plain, k), {}});
  }
  odt_run_spec_t usual = apt;  // the rule's default threshold and roundings
  usual.rounding = ODT_ROUND_DEFAULT;
  usual.apt.t_min_q8 = 77;
  usual.apt.k_max = 16;
  rows.push_back({"apt_default", usual, {}});
  return rows;
}

struct Ratios {
  double points, memory, energy;
  bool moved;
};

Ratios print(const std::string& task, const std::vector<Row>& rows, Report& report) {
  for (const Row& row : rows) {
    char text[160];
    std::snprintf(text, sizeof text,
                  "  %-12s %s memory %.3f energy %.3f resident %u bytes, k at the end%s",
                  row.name.c_str(), text_of(row.all.accuracy).c_str(), mean(row.all.memory),
                  mean(row.all.energy), row.all.resident, row.all.last_k.c_str());
    report.note(task + text);
    report.json["apt"][task][row.name] = {{"accuracy", row.all.accuracy},
                                          {"memory", row.all.memory},
                                          {"energy", row.all.energy},
                                          {"resident_bytes", row.all.resident}};
  }
  const Figures& apt = rows[0].all;
  const Ratios r = {100 * mean(minus(apt.accuracy, rows[1].all.accuracy)), mean(apt.memory),
                    mean(apt.energy), apt.moved};
  report.value("learn_apt_" + task + "_vs16_pt", r.points, "points");
  report.value("apt_" + task + "_memory_ratio", r.memory, "ratio");
  report.value("apt_" + task + "_energy_ratio", r.energy, "ratio");
  report.value("apt_" + task + "_resident_bytes", apt.resident, "bytes");
  return r;
}

Ratios on_digits(const Options& o, Report& report) {
  auto rows = rows_of(parse_run("k6 apt26 max10 sr mse dz4 mu3,2,0 mo-3 b16 e20"), o.quick);
  const Images all = load_digits(o.digits);
  for (std::uint32_t i = 0; i < (o.quick ? 2u : 5u); ++i) {
    const DigitsDraw draw(all, o.first_draw + i);
    const IntNet net(draw.image);
    for (const Shift shift : {Shift::kRot90, Shift::kInversion}) {
      const Set train = to_set(shifted(draw.adapt, shift)),
                test = to_set(shifted(draw.test, shift));
      for (Row& row : rows)
        row.all.add(net.train(row.spec, train, nullptr, test, i + 1), net.model().n_layers, 6);
    }
  }
  return print("digits", rows, report);
}

Ratios on_fashion(const Options& o, Report& report) {
  auto rows = rows_of(parse_run("k6 apt26 sr ce mu2,0,-2 mo-3 b16 e10"), o.quick);
  const Fashion task(o.fashion, 1);
  const IntNet net(task.image);
  for (const Shift shift : {Shift::kFlip, Shift::kInversion, Shift::kRot90}) {
    const Set test = task.test(shift);
    for (std::uint32_t d = o.first_draw; d < o.first_draw + (o.quick ? 2 : 5); ++d) {
      const Fashion::Draw draw = task.draw(shift, d);
      for (Row& row : rows)
        row.all.add(net.train(row.spec, draw.train, nullptr, test, d), net.model().n_layers, 6);
    }
  }
  return print("fmnist", rows, report);
}

}  // namespace

void apt_tasks(const Options& o, Report& report) {
  const Ratios a = on_digits(o, report), b = on_fashion(o, report);
  report.value("learn_apt_vs16_pt", std::min(a.points, b.points), "points");
  report.value("apt_memory_ratio", std::max(a.memory, b.memory), "ratio");
  report.value("apt_energy_ratio", std::max(a.energy, b.energy), "ratio");
  report.value("apt_k_moved_and_differs", a.moved && b.moved ? 1 : 0, "yes");
}

}  // namespace odt::learn
