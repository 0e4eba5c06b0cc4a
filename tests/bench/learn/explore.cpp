#include "recipes.h"
#include "tasks.h"

namespace odt::learn {
namespace {

void print(const std::string& recipe, Shift shift, const std::vector<double>& got) {
  std::printf("%-44s %-10s %s\n", recipe.c_str(), shift_name(shift), text_of(got).c_str());
  std::fflush(stdout);
}

}  // namespace

void explore(const std::string& task, const std::vector<std::string>& recipes, const Options& o) {
  if (task == "digits") {
    const Images all = load_digits(o.digits);
    std::vector<DigitsDraw> draws;
    for (std::uint32_t i = 0; i < (o.quick ? 2u : 5u); ++i)
      draws.emplace_back(all, o.first_draw + i);
    for (const auto& recipe : recipes)
      for (const Shift shift : {Shift::kRot90, Shift::kRot30, Shift::kInversion, Shift::kGain}) {
        std::vector<double> got;
        for (const auto& d : draws)
          got.push_back(IntNet(d.image)
                            .train(parse_run(recipe), to_set(shifted(d.adapt, shift)), nullptr,
                                   to_set(shifted(d.test, shift)), 1)
                            .after);
        print(recipe, shift, got);
      }
    return;
  }
  const Fashion fashion(o.fashion, 1);
  const IntNet net(fashion.image);
  for (const Shift shift :
       {Shift::kNone, Shift::kGain, Shift::kFlip, Shift::kInversion, Shift::kRot90}) {
    const Set test = fashion.test(shift);
    for (const auto& recipe : recipes) {
      std::vector<double> got;
      for (std::uint32_t n = 0; n < (o.quick ? 2u : 4u); ++n) {
        const auto draw = fashion.draw(shift, o.first_draw + n);
        got.push_back(
            net.train(parse_run(recipe), draw.train, &draw.heldout, test, o.first_draw + n).after);
      }
      print(recipe, shift, got);
    }
  }
}

}  // namespace odt::learn
