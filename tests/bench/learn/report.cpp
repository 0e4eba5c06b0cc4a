#include "report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace odt::learn {

double mean(const std::vector<double>& v) {
  return v.empty() ? 0 : std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}

double sd(const std::vector<double>& v) {
  if (v.size() < 2) return 0;
  double sum = 0;
  for (const double x : v) sum += (x - mean(v)) * (x - mean(v));
  return std::sqrt(sum / static_cast<double>(v.size() - 1));
}

double least(const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }

std::vector<double> minus(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> out(a);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] -= b[i];
  return out;
}

std::string text_of(const std::vector<double>& v) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3f+-%.3f", mean(v), sd(v));
  return buffer;
}

}  // namespace odt::learn
