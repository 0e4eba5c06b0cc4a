// The fault matrix, in virtual time. One JSON object a cell on stdout:
//   {"fault": "drop", "operation": "train", "seeds": 200, "wrong": 0, "lost": 0, "hangs": 0, ...}
// usage: bench_matrix GOLDEN_DIR [--fault NAME] [--operation NAME] [--first N] [--seeds N]
// Ends with 1 where a bar is missed; what went wrong is on stderr, with its seed.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "support/virtual/fault_matrix.h"

namespace {

struct Options {
  std::string golden, fault, operation;
  std::uint64_t first = 1, seeds = 200;
};

bool parse(int argc, char** argv, Options& o) {
  if (argc < 2) return false;
  o.golden = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--fault")
      o.fault = value;
    else if (name == "--operation")
      o.operation = value;
    else if (name == "--first")
      o.first = std::stoull(value);
    else if (name == "--seeds")
      o.seeds = std::stoull(value);
    else
      return false;
  }
  return argc % 2 == 0;
}

struct Cell {
  std::uint64_t wrong = 0, lost = 0, hangs = 0, injected = 0;
  double seconds = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fputs(
        "usage: bench_matrix GOLDEN_DIR [--fault NAME] [--operation NAME] [--first N] "
        "[--seeds N]\n",
        stderr);
    return 2;
  }
  odt::test::FaultMatrix matrix(options.golden);
  bool sound = true;
  for (const auto& [fault, fault_name] : odt::test::faults())
    for (const auto& [operation, operation_name] : odt::test::operations()) {
      if (!options.fault.empty() && options.fault != fault_name) continue;
      if (!options.operation.empty() && options.operation != operation_name) continue;
      Cell cell;
      for (std::uint64_t seed = options.first; seed < options.first + options.seeds; ++seed) {
        const odt::test::Outcome out = matrix.run(fault, operation, seed);
        cell.wrong += !out.wrong.empty();
        cell.lost += !out.lost.empty();
        cell.hangs += !out.hang.empty();
        cell.injected += out.injected;
        cell.seconds += out.seconds;
        if (out.sound()) continue;
        sound = false;
        fmt::print(stderr, "{} {} seed {}: {}", fault_name, operation_name, seed, out.text());
      }
      fmt::print(
          "{{\"fault\": \"{}\", \"operation\": \"{}\", \"seeds\": {}, \"wrong\": {}, \"lost\": {}, "
          "\"hangs\": {}, \"injected\": {}, \"virtual_s\": {:.1f}}}\n",
          fault_name, operation_name, options.seeds, cell.wrong, cell.lost, cell.hangs,
          cell.injected, cell.seconds);
      std::fflush(stdout);
    }
  return sound ? 0 : 1;
}
