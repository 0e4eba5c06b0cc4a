#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace odt::data {

constexpr std::uint64_t kMaxImportFileBytes = std::uint64_t{256} << 20;
constexpr std::size_t kMaxImportFiles = 200000;
constexpr int kMaxImportDepth = 8;  // folders below the folder that is imported

struct FileEntry {
  std::string path;  // below the folder or archive, '/' between parts: "dog/a.wav"
  std::uint64_t bytes = 0;
};

// The files of a folder or a zip archive, or one file alone; sorted by path (bytes), so that the
// order does not depend on the file system. Hidden files are left out; symbolic links are not
// followed and not listed.
class FileSet {
 public:
  virtual ~FileSet() = default;
  const std::vector<FileEntry>& entries() const { return entries_; }
  const std::string& name() const { return name_; }  // as shown in errors
  // "set/path", printable.
  std::string shown(std::size_t i) const;
  // The whole file. Errors: INVALID_ARGUMENT (size, damaged archive), NOT_FOUND.
  virtual Result<std::string> read(std::size_t i) const = 0;

 protected:
  explicit FileSet(std::string name) : name_(std::move(name)) {}
  Status add(std::string path, std::uint64_t bytes);  // checks the limits
  void sort();
  std::vector<FileEntry> entries_;

 private:
  std::string name_;
};

// path: a folder, a zip archive (by its content), or any other file. Errors: NOT_FOUND,
// INVALID_ARGUMENT (more files or deeper than the limits, a damaged archive, unsafe names in it).
Result<std::unique_ptr<FileSet>> open_files(const std::string& path, const std::string& name);
// Text from outside for one line of a terminal or for a class name: valid UTF-8 without control
// characters ('_' instead), at most max_bytes.
std::string printable(std::string_view text, std::size_t max_bytes);
// Ending in lower case with its dot: ".wav"; empty: none.
std::string extension_of(std::string_view path);

}  // namespace odt::data
