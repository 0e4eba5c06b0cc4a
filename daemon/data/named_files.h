#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/sample_names.h"

namespace odt::data {

// The files of a set that are samples or recordings, one after the other, with what their paths
// tell.
class NamedFiles {
 public:
  // endings: of the files that count, lower case; a set of one file counts whatever its ending is.
  // Errors: those of SampleNames::create.
  static Result<NamedFiles> create(std::unique_ptr<FileSet> files, const NameOptions& options,
                                   std::vector<std::string> endings);
  // Finds them. `take` sees every one (number in the file set, its name, which it may change).
  // Errors: those of `take` and of SampleNames::of; INVALID_ARGUMENT (none; `what`: "WAV files").
  Status find(const std::string& what,
              const std::function<Status(std::size_t entry, SampleName& name)>& take);

  const FileSet& files() const { return *files_; }
  bool has_pattern() const { return names_.has_pattern(); }
  std::size_t size() const { return wanted_.size(); }
  std::string shown(std::size_t n) const { return files_->shown(wanted_[n]); }
  const std::string& path(std::size_t n) const { return files_->entries()[wanted_[n]].path; }
  Result<std::string> read(std::size_t n) const { return files_->read(wanted_[n]); }
  std::vector<SampleName>& names() { return named_; }

  void rewind() { at_ = 0; }
  bool at_end() const { return at_ == wanted_.size(); }
  std::size_t at() const { return at_; }
  double progress() const {
    return static_cast<double>(at_) / static_cast<double>(std::max<std::size_t>(size(), 1));
  }
  // Label, group, own_test and name of file at(), which is done with that. To: a Row or Recording.
  template <typename To>
  void pass(To& to) {
    to.label = named_[at_].label;
    to.group = named_[at_].group;
    to.own_test = named_[at_].own_test;
    to.name = shown(at_);
    ++at_;
  }

 private:
  NamedFiles(std::unique_ptr<FileSet> files, SampleNames names, std::vector<std::string> endings)
      : files_(std::move(files)), names_(std::move(names)), endings_(std::move(endings)) {}
  bool counts(std::size_t entry) const;

  std::unique_ptr<FileSet> files_;
  SampleNames names_;
  std::vector<std::string> endings_;
  std::vector<std::size_t> wanted_;  // of the files' entries
  std::vector<SampleName> named_;    // of those
  std::size_t at_ = 0;
};

// For `take`: a name must tell the class. Errors: INVALID_ARGUMENT; what: "files"; example: a
// pattern.
Status needs_label(const FileSet& files, std::size_t entry, const SampleName& name,
                   const std::string& what, const std::string& example);

}  // namespace odt::data
