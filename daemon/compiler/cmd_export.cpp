#include "compiler/cmd_export.h"

#include <iostream>

#include "compiler/options.h"
#include "data/dataset.h"
#include "data/output_files.h"

namespace odt::compiler {
int ExportCommand::run() const {
  if (auto st = data::check_outputs({file, weights, image}, {{"-o", out}}); !st.ok())
    return fail(st);
  const auto onnx = data::read_file(file, kMaxFileBytes);
  if (!onnx.ok()) return fail(onnx.status());
  const auto trained = data::read_file(weights, kMaxFileBytes);
  if (!trained.ok()) return fail(trained.status());
  ExportOptions o = options;
  if (!image.empty()) {
    auto bytes = data::read_file(image, kMaxFileBytes);
    if (!bytes.ok()) return fail(bytes.status());
    if (bytes->substr(0, 4) != "ODTM")
      return fail(absl::InvalidArgumentError(image + ": not a model image (magic 'ODTM')"));
    o.image = *std::move(bytes);
  }
  const auto done = export_onnx(*onnx, file_name(file), *trained, file_name(weights), o);
  if (!done.ok()) return fail(done.status());
  if (auto st = data::write_file(out, done->onnx); !st.ok()) return fail(st);
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
