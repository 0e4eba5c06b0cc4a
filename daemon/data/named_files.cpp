#include "data/named_files.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

namespace odt::data {

Result<NamedFiles> NamedFiles::create(std::unique_ptr<FileSet> files, const NameOptions& options,
                                      std::vector<std::string> endings) {
  auto names = SampleNames::create(options, *files);
  ODT_TRY(names.status());
  return NamedFiles(std::move(files), *std::move(names), std::move(endings));
}

bool NamedFiles::counts(std::size_t entry) const {
  const std::string ending = extension_of(files_->entries()[entry].path);
  return files_->entries().size() == 1 ||
         std::find(endings_.begin(), endings_.end(), ending) != endings_.end();
}

Status NamedFiles::find(const std::string& what,
                        const std::function<Status(std::size_t, SampleName&)>& take) {
  for (std::size_t i = 0; i < files_->entries().size(); ++i) {
    if (!counts(i)) continue;
    std::optional<SampleName> name;
    ODT_ASSIGN(name, names_.of(*files_, i));
    if (!name) continue;
    ODT_TRY(take(i, *name));
    wanted_.push_back(i);
    named_.push_back(*std::move(name));
  }
  if (!wanted_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(files_->name(), ": no ", what));
}

Status needs_label(const FileSet& files, std::size_t entry, const SampleName& name,
                   const std::string& what, const std::string& example) {
  if (!name.label.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(files.shown(entry), ": no class; put the ", what,
                   " of a class into a folder of its name, or give a pattern such as ", example));
}

}  // namespace odt::data
