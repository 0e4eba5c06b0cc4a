#include "data/output_files.h"

#include <absl/strings/str_cat.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/output_path.h"
#include "data/dataset.h"

namespace odt::data {
namespace {

namespace fs = std::filesystem;

// One file, however it is named: by a link, through a link, with other dots.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code ec;
  if (fs::equivalent(a, b, ec) && !ec) return true;
  // Absolute first: of a relative path that does not exist nothing is resolved.
  const fs::path x = fs::weakly_canonical(fs::absolute(a, ec), ec);
  if (ec) return false;
  const fs::path y = fs::weakly_canonical(fs::absolute(b, ec), ec);
  return !ec && x == y;
}

std::string named(const OutputFile& o) { return absl::StrCat(o.option, " ", o.path); }

Status check_place(const OutputFile& o) {
  ODT_ASSIGN(const std::string path, output_path(o.path));
  const fs::path target(path);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path(".");
  std::error_code ec;
  if (target.filename().empty() || target.filename() == "." || target.filename() == "..")
    return absl::InvalidArgumentError(
        absl::StrCat(named(o), ": a folder; give the name of a file in it"));
  if (fs::is_directory(folder, ec)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(named(o), ": cannot create: there is no folder ",
                                          folder.string(), "; make it first"));
}

}  // namespace

Status check_outputs(const std::vector<std::string>& inputs,
                     const std::vector<OutputFile>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const OutputFile& o = outputs[i];
    if (o.path.empty()) continue;
    for (const std::string& in : inputs)
      if (!in.empty() && same_file(in, o.path))
        return absl::InvalidArgumentError(
            absl::StrCat(named(o), ": this is the file that is read; give another one"));
    for (std::size_t n = 0; n < i; ++n)
      if (!outputs[n].path.empty() && same_file(outputs[n].path, o.path))
        return absl::InvalidArgumentError(absl::StrCat(
            named(o), ": the file that ", outputs[n].option, " names too; give each its own"));
    ODT_TRY(check_place(o));
  }
  return absl::OkStatus();
}

Status write_files(const std::vector<OutputFile>& outputs) {
  std::vector<std::pair<std::string, std::string>> waiting;  // new content, its place
  Status st;
  for (const OutputFile& o : outputs) {
    if (o.path.empty()) continue;
    auto path = output_path(o.path);
    st = path.status();
    if (!st.ok()) break;
    clear_stale(*path);
    waiting.emplace_back(absl::StrCat(*path, ".tmp.", ::getpid(), ".new"), *path);
    st = write_file(waiting.back().first, o.content);
    if (!st.ok()) break;
  }
  for (const auto& [temp, path] : waiting) {
    if (st.ok() && ::rename(temp.c_str(), path.c_str()) == 0) continue;
    if (st.ok())
      st = absl::FailedPreconditionError(
          absl::StrCat(path, ": cannot rename: ", std::strerror(errno)));
    ::unlink(temp.c_str());
  }
  return st;
}

}  // namespace odt::data
