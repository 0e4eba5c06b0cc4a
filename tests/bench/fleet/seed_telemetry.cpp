// Fills a telemetry.db with one long run and many shorter ones, by a rule that run.py knows too.
//   bench_seed_telemetry FILE LONG_STEPS RUNS STEPS    prints the run ids, the long one first
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "store/sqlite_telemetry.h"

namespace {

odt::model::TelemetryFrame frame_of(const odt::Uuid& run, std::uint32_t step) {
  odt::model::TelemetryFrame f;
  f.run_id = run;
  f.attempt = 1;
  f.step = step;
  f.board_uid.bytes = {0x51, 0, 0, 0, 0, 0, 0, 1};
  f.time_us = 1'700'000'000'000'000 + std::int64_t{step} * 100'000 + step * 2654435761u % 997;
  f.boot_id = 7;
  f.event_id = step;
  f.loss = {static_cast<std::int64_t>(step * 2654435761u % 60'000), -8, 8,
            odt::model::LossKind::kCe};
  f.correct = step % 9;
  for (std::uint32_t layer = 0; layer < 8; ++layer)
    f.layers.push_back({static_cast<std::uint8_t>(4 + (step * 7 + layer * 13 + step / 32) % 5),
                        static_cast<std::int8_t>((step + layer) % 6), 8});
  return f;
}

bool fill(odt::store::TelemetryStore& store, std::uint32_t steps) {
  const odt::Uuid run = odt::new_uuid();
  std::vector<odt::model::TelemetryFrame> frames;
  for (std::uint32_t step = 1; step <= steps; ++step) {
    frames.push_back(frame_of(run, step));
    if (frames.size() < 2000 && step < steps) continue;
    if (const auto status = store.append(frames); !status.ok()) {
      std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
      return false;
    }
    frames.clear();
  }
  std::printf("%s\n", run.hex().c_str());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: bench_seed_telemetry FILE LONG_STEPS RUNS STEPS\n");
    return 2;
  }
  auto store = odt::store::SqliteTelemetryStore::open(argv[1], std::uint64_t{4} << 30);
  if (!store.ok()) return 1;
  const auto number = [&](int i) {
    return static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10));
  };
  if (!fill(**store, number(2))) return 1;
  for (std::uint32_t i = 0; i < number(3); ++i)
    if (!fill(**store, number(4))) return 1;
  return 0;
}
