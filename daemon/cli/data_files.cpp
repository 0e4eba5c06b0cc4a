#include "cli/data_files.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "cli/context.h"
#include "cli/tar_writer.h"
#include "cli/text.h"
#include "cli/upload.h"

namespace odt::cli {
namespace {

namespace fs = std::filesystem;

Status walk(const std::string& folder, DataFiles& out) {
  std::error_code ec;
  for (fs::recursive_directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec)) {
    if (at->path().filename().string().starts_with('.')) {
      if (at->is_directory(ec)) at.disable_recursion_pending();
      continue;
    }
    if (at->is_symlink(ec) || !at->is_regular_file(ec)) continue;
    out.members.emplace_back(at->path().string(), fs::relative(at->path(), folder, ec).string());
  }
  if (ec) return absl::FailedPreconditionError(clean(folder) + ": " + ec.message());
  if (out.members.empty())
    return absl::InvalidArgumentError(clean(folder) + ": no file in this folder");
  std::sort(out.members.begin(), out.members.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  return {};
}

std::string format_of(const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  const auto ends = [&lower](const char* text) { return lower.ends_with(text); };
  if (ends(".csv") || ends(".tsv") || ends(".csv.gz") || ends(".tsv.gz")) return "csv";
  if (ends(".npy")) return "npy";
  if (ends(".npz")) return "npz";
  if (ends(".wav")) return "wav";
  if (ends(".json") || ends(".cbor")) return "edge-impulse";
  return ends(".png") ? "png" : "";
}

}  // namespace

Result<DataFiles> gather_files(const std::vector<std::string>& paths) {
  DataFiles out;
  std::error_code ec;
  if (paths.size() == 1 && fs::is_directory(paths[0], ec)) {
    out.folder = paths[0];
    ODT_TRY(walk(paths[0], out));
    return out;
  }
  if (paths.size() == 1) {
    out.file = paths[0];
    return out;
  }
  std::set<std::string> names;
  for (const auto& path : paths) {
    const std::string name = fs::path(path).filename().string();
    if (!fs::is_regular_file(path, ec))
      return absl::NotFoundError(clean(path) +
                                 ": no such file; several FILEs are files, or give one folder");
    if (!names.insert(name).second)
      return absl::InvalidArgumentError(clean(path) +
                                        ": two files of this name; give their folder");
    out.members.emplace_back(path, name);
  }
  return out;
}

Result<std::string> format_by_name(const DataFiles& files) {
  if (files.file.ends_with(".zip"))
    return absl::InvalidArgumentError(clean(files.file) +
                                      ": say --format wav, edge-impulse or png for a .zip");
  if (!files.file.empty()) {
    const std::string format = format_of(files.file);
    return format.empty() ? "idx" : format;
  }
  std::map<std::string, std::size_t> found;
  for (const auto& [path, name] : files.members)
    if (const std::string format = format_of(name); !format.empty()) ++found[format];
  if (found.size() == 1) return found.begin()->first;
  const std::string shown =
      files.folder.empty() ? absl::StrCat(files.members.size(), " files") : clean(files.folder);
  if (found.size() > 1)
    return absl::InvalidArgumentError(absl::StrCat(
        shown, ": files of several formats (",
        absl::StrJoin(
            found, ", ",
            [](std::string* out, const auto& f) { absl::StrAppend(out, f.second, " ", f.first); }),
        "); say which with --format: the others are left out"));
  return absl::InvalidArgumentError(
      shown + ": the names do not tell the format; say --format (odtctl data import --help)");
}

Result<std::string> upload_data(Context& context, const DataFiles& files) {
  if (!files.file.empty()) return upload_file(context, files.file);
  const char* folder = std::getenv("TMPDIR");
  std::string path = absl::StrCat(folder != nullptr ? folder : "/tmp", "/odtctl-XXXXXX");
  const int fd = ::mkstemp(path.data());
  if (fd < 0) return absl::FailedPreconditionError(clean(path) + ": cannot be created");
  ::close(fd);
  Status packed = write_tar(files.members, path);
  auto blob = packed.ok() ? upload_file(context, path) : Result<std::string>(packed);
  ::unlink(path.c_str());
  // The archive is none of the user's files.
  if (packed.ok() && !blob.ok())
    return rename_file(
        blob.status(), path,
        files.folder.empty() ? absl::StrCat(files.members.size(), " files") : files.folder);
  return blob;
}

}  // namespace odt::cli
