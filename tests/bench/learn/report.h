// What the bench prints: `name value unit` lines, tables beside them, and the raw figures as JSON.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace odt::learn {

class Report {
 public:
  // A figure that a bar is about, or one printed beside them.
  void value(const std::string& name, double v, const std::string& unit) {
    std::printf("%s %.3f %s\n", name.c_str(), v, unit.c_str());
    std::fflush(stdout);
    json["values"][name] = {{"value", v}, {"unit", unit}};
  }
  // A line of a table: rows are kept under table/row as lists of one value a draw.
  void note(const std::string& text) {
    std::printf("# %s\n", text.c_str());
    std::fflush(stdout);
  }
  nlohmann::json json;
};

struct Options {
  bool quick = false;            // fewer draws and a coarser grid: the same code in a minute
  std::uint32_t first_draw = 1;  // draws tuned on: 1001 and up
  std::uint32_t draws = 4;       // explored
  std::string shifts;            // explored, comma between; empty: those that are tuned on
  std::string digits, fashion;   // export_digits.py's file; folder of the IDX files
};

double mean(const std::vector<double>& v);
double sd(const std::vector<double>& v);
double least(const std::vector<double>& v);
std::vector<double> minus(const std::vector<double>& a, const std::vector<double>& b);
// ".873+-.011"
std::string text_of(const std::vector<double>& v);

}  // namespace odt::learn
