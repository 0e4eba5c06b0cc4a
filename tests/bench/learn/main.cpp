// Learning bars: firmware/odt's integer training against fp32 SGD on the same work (see README.md).
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "tasks.h"

namespace {

constexpr const char* kUsage =
    "usage: bench_learn --digits FILE [--fashion DIR] [--quick] [--json FILE] [--only TASK] "
    "[--first-draw N]\n"
    "       TASK: digits, fashion, dfp or apt\n"
    "       bench_learn --digits FILE [--fashion DIR] [--first-draw N] --explore digits|fashion "
    "RECIPE...\n";

std::uint32_t number(const std::string& arg, const std::string& text) {
  std::size_t used = 0;
  unsigned long n = 0;
  try {
    n = std::stoul(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || text[0] == '-' || n > UINT32_MAX)
    throw std::runtime_error(arg + " '" + text + "': a number from 0 to 4294967295 is needed");
  return static_cast<std::uint32_t>(n);
}

void check_task(const std::string& only) {
  for (const char* task : {"", "digits", "fashion", "dfp", "apt"})
    if (only == task) return;
  throw std::runtime_error("--only '" + only + "': no such task\n" + kUsage);
}

// Opened before hours of work, not behind them.
std::ofstream open_json(const std::string& path) {
  std::ofstream file;
  if (path.empty()) return file;
  file.open(path);
  if (!file) throw std::runtime_error(path + ": cannot write: " + std::strerror(errno));
  return file;
}

}  // namespace

int main(int argc, char** argv) try {
  odt::learn::Options options;
  options.fashion = "/usr/share/datasets/fashion-mnist";
  std::string json, only, explore;
  std::vector<std::string> recipes;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto next = [&]() -> std::string {
      if (i + 1 >= argc) throw std::runtime_error(arg + " needs a value\n" + kUsage);
      return argv[++i];
    };
    if (arg == "--quick")
      options.quick = true;
    else if (arg == "--json")
      json = next();
    else if (arg == "--digits")
      options.digits = next();
    else if (arg == "--fashion")
      options.fashion = next();
    else if (arg == "--only")
      only = next();
    else if (arg == "--first-draw")
      options.first_draw = number(arg, next());
    else if (arg == "--draws")
      options.draws = number(arg, next());
    else if (arg == "--shifts")
      options.shifts = next();
    else if (arg == "--explore")
      explore = next();
    else if (!explore.empty())
      recipes.push_back(arg);
    else
      throw std::runtime_error("unknown argument " + arg + "\n" + kUsage);
  }
  if (!explore.empty()) {
    odt::learn::explore(explore, recipes, options);
    return 0;
  }
  check_task(only);
  std::ofstream file = open_json(json);
  odt::learn::Report report;
  if (only.empty() || only == "digits") odt::learn::digits_tasks(options, report);
  if (only.empty() || only == "fashion") odt::learn::fashion_tasks(options, report);
  if (only.empty() || only == "dfp") odt::learn::dfp_tasks(options, report);
  if (only.empty() || only == "apt") odt::learn::apt_tasks(options, report);
  if (json.empty()) return 0;
  file << report.json.dump(1) << std::endl;
  if (!file) throw std::runtime_error(json + ": cannot write: " + std::strerror(errno));
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "bench_learn: %s\n", e.what());
  return 1;
}
