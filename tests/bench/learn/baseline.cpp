#include "baseline.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace odt::learn {

std::string Cell::text() const {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%s B%d %g%s", loss == Loss::kCe ? "CE" : "MSE", batch,
                static_cast<double>(rate), falling ? " falling" : "");
  return buffer;
}

std::vector<Cell> grid(bool quick, bool from_scratch) {
  // MSE's gradients are as large as the logits, so its useful rates are lower.
  const std::vector<float> ce = {0.0003f, 0.003f, 0.01f, 0.03f, 0.1f, 0.3f, 1.0f};
  const std::vector<float> mse = {0.0001f, 0.0003f, 0.001f, 0.003f, 0.01f, 0.03f, 0.1f};
  std::vector<Cell> cells;
  for (const Loss loss : {Loss::kCe, Loss::kMse})
    for (const int batch : {8, 32})
      for (const bool falling : {false, true})
        for (const float rate : loss == Loss::kCe || from_scratch ? ce : mse) {
          if (quick && (batch == 32 || falling)) continue;
          if (falling && (rate < 0.001f || (loss == Loss::kCe && rate < 0.02f))) continue;
          cells.push_back({loss, batch, rate, falling});
        }
  return cells;
}

Baseline::Baseline(std::vector<Cell> cells, int epochs)
    : cells_(std::move(cells)), epochs_(epochs), got_(cells_.size()) {}

void Baseline::draw(const FloatNet& start, const Set& train, const Set& test,
                    std::uint32_t order_seed) {
  const Matrix x = to_matrix(train), x_test = to_matrix(test);
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    FloatNet net = start;
    SgdOptions o;
    o.loss = cells_[i].loss;
    o.batch = cells_[i].batch;
    o.rate = cells_[i].rate;
    if (cells_[i].falling) o.by_thirds = {1, 0.25f, 0.0625f};
    o.epochs = epochs_;
    o.order_seed = order_seed;
    net.train(x, train.y, o);
    got_[i].push_back(net.accuracy(x_test, test.y));
  }
}

std::size_t Baseline::pick(bool with_falling) const {
  std::size_t best = cells_.size();
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (cells_[i].falling && !with_falling) continue;
    if (best == cells_.size() || mean(got_[i]) > mean(got_[best])) best = i;
  }
  return best;
}

const Cell& Baseline::best(bool with_falling) const { return cells_[pick(with_falling)]; }
const std::vector<double>& Baseline::accuracies(bool with_falling) const {
  return got_[pick(with_falling)];
}

}  // namespace odt::learn
