// Every kernel against the oracle: bytes become a network of any layer kinds, settings and samples;
// library and reference train on it side by side. Oracle: tests/support/oracle.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "compare.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace odt::testing;
  Choices c(data, size);
  auto kind = static_cast<RunKind>(c.range(0, 2));
  bool graphs = c.chance(75);
  int net_size = c.range(1, 5);
  ComparedRun run = random_run(c, kind, net_size, graphs);
  if (run.max_steps > 6) run.max_steps = 6;
  Difference d = compare(run);
  if (d.text.empty() || d.refused) return 0;
  std::fprintf(stderr, "%s\n%s", d.text.c_str(), describe_run(run).c_str());
  std::abort();
}
