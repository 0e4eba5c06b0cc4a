#include <sstream>

#include "recipes.h"
#include "tasks.h"

namespace odt::learn {
namespace {

struct Line {
  std::vector<double> got, memory, energy;
  std::string last;
  void add(const IntResult& r, const odt_model_t& m) {
    got.push_back(r.after);
    memory.push_back(r.memory_ratio);
    energy.push_back(r.energy_ratio);
    last.clear();
    for (std::uint32_t i = 0; i < m.n_layers; ++i)
      last.append(" ").append(std::to_string(r.epochs.back().layers[i].k));
    last += "; correct";
    for (const auto& epoch : r.epochs) last.append(" ").append(std::to_string(epoch.correct));
  }
  void print(const std::string& recipe, Shift shift) const {
    std::printf("%-44s %-10s %s least %.3f memory %.3f energy %.3f k%s\n", recipe.c_str(),
                shift_name(shift), text_of(got).c_str(), least(got), mean(memory), mean(energy),
                last.c_str());
    std::fflush(stdout);
  }
};

std::vector<Shift> wanted(const Options& o, std::vector<Shift> usual) {
  if (o.shifts.empty()) return usual;
  std::vector<Shift> out;
  std::istringstream names(o.shifts);
  for (std::string name; std::getline(names, name, ',');)
    for (int i = 0; i <= static_cast<int>(Shift::kBlur); ++i)
      if (name == shift_name(static_cast<Shift>(i))) out.push_back(static_cast<Shift>(i));
  return out;
}

void explore_digits(const std::vector<std::string>& recipes, const Options& o) {
  const Images all = load_digits(o.digits);
  std::vector<DigitsDraw> draws;
  for (std::uint32_t i = 0; i < o.draws; ++i) draws.emplace_back(all, o.first_draw + i);
  for (const Shift shift :
       wanted(o, {Shift::kGain, Shift::kInversion, Shift::kRot90, Shift::kRot30}))
    for (const auto& recipe : recipes) {
      Line line;
      for (std::uint32_t i = 0; i < o.draws; ++i) {
        const IntNet net(draws[i].image);
        line.add(net.train(parse_run(recipe), to_set(shifted(draws[i].adapt, shift)), nullptr,
                           to_set(shifted(draws[i].test, shift)), i + 1),
                 net.model());
      }
      line.print(recipe, shift);
    }
}

}  // namespace

void explore(const std::string& task, const std::vector<std::string>& recipes, const Options& o) {
  if (task == "digits") return explore_digits(recipes, o);
  const Fashion fashion(o.fashion, 1);
  const IntNet net(fashion.image);
  for (const Shift shift :
       wanted(o, {Shift::kNone, Shift::kGain, Shift::kFlip, Shift::kInversion, Shift::kRot90})) {
    const Set test = fashion.test(shift);
    std::printf("before %s %.3f\n", shift_name(shift), net.accuracy(test));
    for (const auto& recipe : recipes) {
      Line line;
      for (std::uint32_t n = o.first_draw; n < o.first_draw + o.draws; ++n) {
        const auto draw = fashion.draw(shift, n);
        line.add(net.train(parse_run(recipe), draw.train, &draw.heldout, test, n), net.model());
      }
      line.print(recipe, shift);
    }
  }
}

}  // namespace odt::learn
