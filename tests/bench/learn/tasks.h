#pragma once

#include "int_net.h"
#include "report.h"

namespace odt::learn {

// TI-digits of section 7: conv 3x(3x3) ReLU -> 160 ReLU -> 10 on 8x8 images.
FloatNet digits_net(std::uint32_t seed);  // He initialisation
struct DigitsDraw {
  DigitsDraw(const Images& all, std::uint32_t seed);
  FloatNet start;  // pre-trained in fp32 on 900
  Images pretrain, adapt, test;
  double source = 0;  // accuracy of the fp32 model on its own test images
  std::vector<std::uint8_t> image;
};

// Fashion-MNIST at 14x14 of section 9: 196 -> 32 ReLU -> 10, pre-trained on 20,000 images.
class Fashion {
 public:
  static constexpr std::uint32_t kPretrain = 20000, kTrain = 600, kHeldout = 200;
  Fashion(const std::string& folder, std::uint32_t seed);
  struct Draw {
    Set train, heldout;
  };
  Draw draw(Shift shift, std::uint32_t number) const;
  Set test(Shift shift) const;
  FloatNet start;
  std::vector<std::uint8_t> image;
  double source = 0;

 private:
  Images train_, test_;
};

void digits_tasks(const Options& options, Report& report);   // adapt, scratch, collapsed, guard
void fashion_tasks(const Options& options, Report& report);  // auto, beside it fixed recipes
void dfp_tasks(const Options& options, Report& report);      // rule 1.13 on digits
void apt_tasks(const Options& options, Report& report);      // rule 1.12 on both
// Accuracies of a recipe on the draws of options.first_draw.
void explore(const std::string& task, const std::vector<std::string>& recipes,
             const Options& options);

}  // namespace odt::learn
