#include "compiler/cmd_export.h"

#include <iostream>

#include "compiler/options.h"
#include "data/dataset.h"

namespace odt::compiler {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{256} << 20;

int failed(const Status& status) {
  std::cerr << "odtc: " << status.message() << "\n";
  return 1;
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

int ExportCommand::run() const {
  const auto onnx = data::read_file(file, kMaxBytes);
  if (!onnx.ok()) return failed(onnx.status());
  const auto trained = data::read_file(weights, kMaxBytes);
  if (!trained.ok()) return failed(trained.status());
  ExportOptions o = options;
  if (!image.empty()) {
    auto bytes = data::read_file(image, kMaxBytes);
    if (!bytes.ok()) return failed(bytes.status());
    if (bytes->substr(0, 4) != "ODTM")
      return failed(absl::InvalidArgumentError(image + ": not a model image (magic 'ODTM')"));
    o.image = *std::move(bytes);
  }
  const auto done = export_onnx(*onnx, base_name(file), *trained, base_name(weights), o);
  if (!done.ok()) return failed(done.status());
  if (auto st = data::write_file(out, done->onnx); !st.ok()) return failed(st);
  for (const auto& warning : done->warnings) std::cerr << "odtc: warning: " << warning << "\n";
  std::cout << "wrote " << out << ": " << done->changed_weights << " weights and "
            << done->changed_offsets << " offsets changed\n";
  return 0;
}

std::unique_ptr<ExportCommand> add_export(CLI::App& app) {
  auto e = std::make_unique<ExportCommand>();
  e->command = app.add_subcommand("export", "trained weights back into the original ONNX file");
  e->command->add_option("model", e->file, "the ONNX file that was compiled")->required();
  e->command
      ->add_option("--weights", e->weights,
                   "odt_weights file, as `odtctl weights export` writes it")
      ->required();
  e->command->add_option("-o,--output", e->out, "new ONNX file")->required();
  e->command->add_option("--name", e->options.name, "name that the model was compiled with");
  e->command->add_option("--image", e->image, "the model image: gives the name");
  e->command->add_flag("--exact", e->options.exact,
                       "refuse weights finer than 8 bits instead of rounding them");
  add_task(e->command, e->options.task);
  return e;
}

}  // namespace odt::compiler
