#include "compiler/boards.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

namespace odt::compiler {
namespace {

struct Line {
  const char *name, *cpu;
  std::uint64_t clock_hz, arena_bytes, flash_bytes;
  std::uint32_t max_ops, max_layers, max_classes;
  const char* without;  // parts of firmware/odt left out: CONV GRAPHS APT DFP16
};
const Line kLines[] = {
#include "board_table.inc"
};

struct Core {
  const char* prefix;
  Kernels kernels;
  double cycles_per_instruction;
};
// Cycles: of the training loops, from the table of instruction times in
// tests/bench/kernels/counted.py for the M4; the others are guesses from their pipelines.
const Core kCores[] = {
    {"cortex-m0", Kernels::kPlainC, 2.0},  {"cortex-m3", Kernels::kPlainC, 1.7},
    {"cortex-m4", Kernels::kDsp, 1.5},     {"cortex-m33+nodsp", Kernels::kPlainC, 1.6},
    {"cortex-m33", Kernels::kDsp, 1.5},    {"cortex-m7", Kernels::kDsp, 1.0},
    {"cortex-m55", Kernels::kHelium, 1.4},
};
// The longest name that the cpu begins with: cortex-m33 is no cortex-m3.
const Core* core_of(const std::string& cpu) {
  const Core* best = nullptr;
  for (const Core& c : kCores)
    if (absl::StartsWith(cpu, c.prefix) &&
        (best == nullptr || std::string(best->prefix).size() < std::string(c.prefix).size()))
      best = &c;
  return best;
}

void set_core(const std::string& cpu, BoardFigures& board) {
  const Core* core = core_of(cpu);
  board.cpu = cpu;
  if (core == nullptr) return;
  board.kernels = core->kernels;
  board.cycles_per_instruction = core->cycles_per_instruction;
}

}  // namespace

const char* kernels_name(Kernels kernels) {
  return kernels == Kernels::kDsp ? "DSP" : kernels == Kernels::kHelium ? "Helium" : "plain C";
}

const std::vector<BoardFigures>& boards() {
  static const std::vector<BoardFigures> kBoards = [] {
    std::vector<BoardFigures> out;
    for (const Line& l : kLines) {
      BoardFigures b;
      b.name = l.name;
      b.clock_hz = l.clock_hz;
      b.arena_bytes = l.arena_bytes;
      b.flash_bytes = l.flash_bytes;
      const auto has = [&l](const char* part) { return !absl::StrContains(l.without, part); };
      b.limits = {l.max_ops, l.max_layers, l.max_classes, has("CONV"), has("GRAPHS"), has("DFP16")};
      set_core(l.cpu, b);
      out.push_back(b);
    }
    return out;
  }();
  return kBoards;
}

Result<BoardFigures> find_board(const std::string& name) {
  for (const auto& b : boards())
    if (b.name == name) return b;
  return absl::NotFoundError(absl::StrCat(
      "no board '", name, "'; known: ",
      absl::StrJoin(boards(), ", ",
                    [](std::string* out, const BoardFigures& b) { out->append(b.name); }),
      "; or give --cpu and --ram"));
}

Result<BoardFigures> other_board(const std::string& cpu, std::uint64_t arena_bytes, double mhz) {
  if (core_of(cpu) == nullptr)
    return absl::InvalidArgumentError(absl::StrCat(
        "cpu '", cpu, "'; expected one of ",
        absl::StrJoin(kCores, ", ",
                      [](std::string* out, const Core& c) { out->append(c.prefix); })));
  BoardFigures b;
  b.name = cpu;
  b.arena_bytes = arena_bytes;
  b.clock_hz = static_cast<std::uint64_t>(mhz * 1e6);
  set_core(cpu, b);
  return b;
}

}  // namespace odt::compiler
