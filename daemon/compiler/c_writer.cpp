#include "compiler/c_writer.h"

#include <absl/strings/str_cat.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/ids.h"
#include "compiler/c_text.h"

namespace odt::compiler {
namespace {

namespace fs = std::filesystem;

const std::set<std::string> kNames = {
    "integer_model_config.h", "integer_model_config.c", "tvmgen_default.h", "tvmgen_default.c",
    "test_vector.h",          "test_vector.c",          "train_data.h",     "train_data.c"};

// The interface's geometry is uint8.
Status geometry_fits(const std::string& file, const Layer& l) {
  const ConvGeometry& g = l.conv;
  const std::pair<const char*, std::uint16_t> fields[] = {
      {"kernel height", g.k_h}, {"kernel width", g.k_w}, {"stride", g.stride_h},
      {"stride", g.stride_w},   {"padding", g.pad_t},    {"padding", g.pad_l},
      {"dilation", g.dil_h},    {"dilation", g.dil_w}};
  for (const auto& [what, value] : fields)
    if (value > 255)
      return absl::OutOfRangeError(absl::StrCat(file, ": trainable layer '", shown(l.name),
                                                "': ", what, " ", value,
                                                "; TI's interface has 8 bits for it: at most 255"));
  return absl::OkStatus();
}

Status interface_fits(const std::string& file, const CModel& model) {
  for (const CLayer& c : model.layers) {
    const Layer& l = *c.layer;
    if (!l.is_compute()) continue;
    if (!l.trainable)
      return absl::UnimplementedError(
          absl::StrCat(file, ": layer '", shown(l.name),
                       "' is frozen behind a trainable one; C files have "
                       "frozen layers in front only"));
    if (l.kind == LayerKind::kConv) ODT_TRY(geometry_fits(file, l));
  }
  return absl::OkStatus();
}

Status failed(const std::string& path, const char* what, const std::error_code& e) {
  const std::string text = absl::StrCat(path, ": cannot ", what, ": ", e.message());
  return e == std::errc::no_such_file_or_directory ? absl::NotFoundError(text)
                                                   : absl::FailedPreconditionError(text);
}

// Nothing there, or nothing but files of ours. A folder is replaced under its name: '.' has none.
Status replaceable(const std::string& folder) {
  const fs::path last = fs::path(folder).filename();
  if (last.empty() || last == "." || last == "..")
    return absl::InvalidArgumentError(
        absl::StrCat("output folder '", shown(folder), "': give a folder's own name, as in out/c"));
  std::error_code e;
  const auto status = fs::symlink_status(folder, e);
  if (!fs::exists(status)) return absl::OkStatus();
  if (!fs::is_directory(status))
    return absl::AlreadyExistsError(folder + ": exists and is not a folder");
  for (auto at = fs::directory_iterator(folder, e); !e && at != fs::directory_iterator();
       at.increment(e))
    if (!kNames.contains(at->path().filename().string()) || !at->is_regular_file(e))
      return absl::AlreadyExistsError(
          absl::StrCat(folder, ": holds '", shown(at->path().filename().string()),
                       "', which odtc did not write; give a new or an empty folder"));
  return e ? failed(folder, "read", e) : absl::OkStatus();
}

// Removes what is left of it at the end of its life.
struct TempFolder {
  std::string path;
  ~TempFolder() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

Status make_temp(const std::string& beside, TempFolder& out) {
  std::string name = absl::StrCat(beside, ".tmp.", ::getpid(), ".XXXXXX");
  if (::mkdtemp(name.data()) == nullptr)
    return failed(beside, "create", std::error_code(errno, std::generic_category()));
  std::error_code e;
  fs::permissions(name, fs::perms(0755), e);
  out.path = name;
  return absl::OkStatus();
}

}  // namespace

Result<std::vector<CFile>> write_c(const Compiled& compiled, const std::string& file,
                                   const CData* data) {
  const Network& net = compiled.network;
  if (net.arithmetic != Arithmetic::kInteger)
    return absl::UnimplementedError(
        file +
        ": TI's interface has integer models; this one is DFP16: use a model image (odtc compile)");
  CModel model;
  ODT_ASSIGN(model, divide(net, file));
  ODT_TRY(interface_fits(file, model));
  std::vector<CFile> files = write_c_config(model, sha256(compiled.image));
  const auto add = [&](std::vector<CFile> more) {
    std::move(more.begin(), more.end(), std::back_inserter(files));
  };
  add(write_c_frozen(model));
  if (data != nullptr) add(write_c_data(*data, net));
  std::vector<CFile> vectors;
  ODT_ASSIGN(vectors, write_c_vectors(compiled, model, data));
  add(std::move(vectors));
  return files;
}

Status write_folder(const std::string& folder, const std::vector<CFile>& files) {
  std::string target = folder;
  while (target.size() > 1 && target.back() == '/') target.pop_back();
  ODT_TRY(replaceable(target));
  data::clear_stale(target);
  TempFolder fresh, old;
  ODT_TRY(make_temp(target, fresh));
  for (const auto& f : files) ODT_TRY(data::write_file(fresh.path + "/" + f.name, f.text));
  std::error_code e;
  if (fs::exists(target)) {
    ODT_TRY(make_temp(target, old));
    fs::rename(target, old.path, e);  // onto the empty folder
    if (e) return failed(target, "replace", e);
  }
  fs::rename(fresh.path, target, e);
  if (e) {
    std::error_code ignored;
    if (!old.path.empty()) fs::rename(old.path, target, ignored);
    return failed(target, "write", e);
  }
  fresh.path.clear();
  return absl::OkStatus();
}

}  // namespace odt::compiler
