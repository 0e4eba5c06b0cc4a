#include "compiler/cmd_fit.h"

#include <iostream>

#include "compiler/options.h"
#include "data/dataset.h"

namespace odt::compiler {
namespace {

constexpr int kDoesNotFit = 3;

}  // namespace

int FitCommand::run() const {
  if (board.empty() == cpu.empty())
    return usage("which board? give --board NAME, or --cpu and --ram for one of your own");
  if (!cpu.empty() && ram == 0) return usage("--cpu needs --ram: bytes of RAM for training");
  auto figures = cpu.empty() ? find_board(board) : other_board(cpu, ram, mhz);
  if (!figures.ok()) return usage(std::string(figures.status().message()));
  if (cpu.empty() && ram != 0) figures->arena_bytes = ram;
  if (cpu.empty() && mhz != 0) figures->clock_hz = static_cast<std::uint64_t>(mhz * 1e6);
  const auto onnx = data::read_file(file, kMaxFileBytes);
  if (!onnx.ok()) return fail(onnx.status());
  const std::string name = file_name(file);
  const auto compiled = compiler::compile(*onnx, name, compile);
  if (!compiled.ok()) return fail(compiled.status());
  FitRequest wanted = request;
  wanted.guard = !no_guard;
  if (frozen != "auto") wanted.frozen = frozen == "on";
  if (streamed) wanted.streamed = true;
  if (best_on_host) wanted.best_on_host = true;
  const auto report = fit(*compiled, name, *figures, wanted);
  if (!report.ok()) return fail(report.status());
  std::cout << (as_json ? fit_json : fit_text)(*compiled, *figures, wanted, *report);
  return report->chosen ? 0 : kDoesNotFit;
}

std::unique_ptr<FitCommand> add_fit(CLI::App& app) {
  auto out = std::make_unique<FitCommand>();
  std::string names;
  for (const auto& b : boards()) names += (names.empty() ? "" : ", ") + b.name;
  CLI::App* c = out->command = app.add_subcommand(
      "fit",
      "does a model fit a board, and how long does it train there? Exit code 3: it does not fit");
  c->add_option("model", out->file, "ONNX file")->required();
  c->add_option("--board", out->board, "board: " + names);
  c->add_option("--cpu", out->cpu,
                "another board's core, as -mcpu: cortex-m0, -m3, -m4, -m7, -m33, -m55");
  c->add_option("--ram", out->ram, "bytes of RAM for training; --cpu needs it, --board has its own")
      ->check(CLI::Range(1.0, 4294967296.0));
  c->add_option("--mhz", out->mhz, "clock; --board has its own")->check(CLI::Range(0.0, 10000.0));
  c->add_option("--trainable", out->compile.trainable_layers,
                "trainable layers, counted from the last; 0: all");
  add_task(c, out->compile.task);
  add_arithmetic(c, out->compile);
  c->add_option("--batch", out->request.batch,
                "samples a step; default: as odtd chooses, 8 or 32, less where they do not fit")
      ->check(CLI::Range(1, 256));
  c->add_option("--k", out->request.k,
                "precision of the weights in bits; default: 15, or 8 where that does not fit")
      ->check(CLI::Range(2, 16));
  c->add_option("--train", out->request.train, "training samples")->check(CLI::Range(1, 1000000));
  c->add_option("--heldout", out->request.heldout, "held-out samples")
      ->check(CLI::Range(0, 1000000));
  c->add_flag("--no-guard", out->no_guard, "keep no best weights");
  c->add_flag("--evaluate", out->request.evaluate, "test samples are evaluated too");
  c->add_option("--frozen", out->frozen,
                "samples as outputs of the frozen part, which odtd computes: auto (default), on, "
                "off")
      ->check(CLI::IsMember({"auto", "on", "off"}));
  c->add_flag("--streamed", out->streamed, "one batch at a time");
  c->add_flag("--best-on-host", out->best_on_host, "the best weights stay with odtd");
  c->add_flag("--json", out->as_json, "as JSON");
  return out;
}

}  // namespace odt::compiler
