// fp32 SGD with rate, batch and loss chosen per task: the best cell of a grid by its mean over the
// draws, judged on the test sets themselves, which favours fp32.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "float_net.h"
#include "report.h"

namespace odt::learn {

struct Cell {
  Loss loss;
  int batch;
  float rate;
  bool falling;  // the rate by thirds: 1, 1/4, 1/16, as mu's schedules fall; else constant
  std::string text() const;
};
std::vector<Cell> grid(bool quick, bool from_scratch);

// Accuracies of every cell over the draws of one task.
class Baseline {
 public:
  Baseline(std::vector<Cell> cells, int epochs);
  // One draw: trains a copy of start in every cell. Without a test on heldout the accuracy is that
  // of the last epoch.
  void draw(const FloatNet& start, const Set& train, const Set& test, std::uint32_t order_seed);
  // The best constant-rate cell, and the best of all.
  const Cell& best(bool with_falling) const;
  const std::vector<double>& accuracies(bool with_falling) const;

 private:
  std::size_t pick(bool with_falling) const;
  std::vector<Cell> cells_;
  int epochs_;
  std::vector<std::vector<double>> got_;
};

}  // namespace odt::learn
