// odt_zoo infer|step LIST: runs compiled models on the host library.
//
// LIST: JSON, [{"name", "image", "manifest", "samples", "count", "out"}], all but name and count
// paths. One line of JSON a model on stdout: {"name", "error"}; infer writes the outputs, float32,
// to "out".
#include <cstdio>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "data/dataset.h"
#include "model_check.h"

namespace {

using odt::testing::CompiledModel;

odt::Result<CompiledModel> load(const nlohmann::json& entry) {
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 28;
  CompiledModel m;
  std::string bytes;
  ODT_ASSIGN(m.image, odt::data::read_file(entry.at("image"), kLimit));
  ODT_ASSIGN(m.manifest, odt::data::read_file(entry.at("manifest"), kLimit));
  ODT_ASSIGN(bytes, odt::data::read_file(entry.at("samples"), kLimit));
  m.count = entry.at("count");
  m.samples.resize(bytes.size() / sizeof(float));
  std::memcpy(m.samples.data(), bytes.data(), m.samples.size() * sizeof(float));
  return m;
}

std::string infer(const nlohmann::json& entry, const CompiledModel& model) {
  auto out = odt::testing::infer_all(model);
  if (!out.ok()) return std::string(out.status().message());
  auto st = odt::data::write_file(
      entry.at("out"),
      std::string_view(reinterpret_cast<const char*>(out->data()), out->size() * sizeof(float)));
  return st.ok() ? "" : std::string(st.message());
}

std::string step(const CompiledModel& model) {
  auto difference = odt::testing::check_step(model);
  return difference.ok() ? *difference : std::string(difference.status().message());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc == 3 ? argv[1] : "";
  if (command != "infer" && command != "step") {
    std::cerr << "usage: odt_zoo infer|step LIST\n";
    return 2;
  }
  auto list = odt::data::read_file(argv[2], std::uint64_t{1} << 28);
  if (!list.ok()) {
    std::cerr << list.status().message() << "\n";
    return 2;
  }
  for (const auto& entry : nlohmann::json::parse(*list)) {
    auto model = load(entry);
    const std::string error = !model.ok()          ? std::string(model.status().message())
                              : command == "infer" ? infer(entry, *model)
                                                   : step(*model);
    std::cout << nlohmann::json({{"name", entry.at("name")}, {"error", error}}).dump() << std::endl;
  }
  return 0;
}
