// Learning bars: firmware/odt's integer training against fp32 SGD on the same work (see README.md).
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "tasks.h"

namespace {

constexpr const char* kUsage =
    "usage: bench_learn --digits FILE [--fashion DIR] [--quick] [--json FILE] [--only TASK] "
    "[--first-draw N]\n"
    "       bench_learn --digits FILE [--fashion DIR] [--first-draw N] --explore digits|fashion "
    "RECIPE...\n";

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
      options.first_draw = static_cast<std::uint32_t>(std::stoul(next()));
    else if (arg == "--draws")
      options.draws = static_cast<std::uint32_t>(std::stoul(next()));
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
  odt::learn::Report report;
  if (only.empty() || only == "digits") odt::learn::digits_tasks(options, report);
  if (only.empty() || only == "fashion") odt::learn::fashion_tasks(options, report);
  if (only.empty() || only == "dfp") odt::learn::dfp_tasks(options, report);
  if (only.empty() || only == "apt") odt::learn::apt_tasks(options, report);
  if (!json.empty()) std::ofstream(json) << report.json.dump(1) << "\n";
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "bench_learn: %s\n", e.what());
  return 1;
}
