#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace odt::data {

// Part of an open file; the file closes with the last copy.
class FileRange {
 public:
  FileRange() = default;
  // Errors: NOT_FOUND, INVALID_ARGUMENT (not a regular file).
  static Result<FileRange> open(const std::string& path, const std::string& name);
  // An anonymous temporary file with nothing in it; append() fills it.
  static Result<FileRange> temporary();
  Status append(const void* data, std::size_t n);
  FileRange part(std::uint64_t offset, std::uint64_t size) const;
  std::uint64_t size() const { return size_; }
  // Errors: INVALID_ARGUMENT beyond the end.
  Status read(std::uint64_t offset, void* to, std::size_t n) const;

 private:
  std::shared_ptr<int> fd_;
  std::uint64_t offset_ = 0, size_ = 0;
};

// Members of a zip archive: stored and deflated, no encryption, no archive over several files.
struct ZipMember {
  std::string name;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint64_t packed = 0, size = 0, header = 0;  // bytes, bytes, offset of the local header
};
// Errors: INVALID_ARGUMENT naming `name` (not a zip file, truncated, more than 65534 members).
Result<std::vector<ZipMember>> zip_members(const FileRange& file, const std::string& name);
// The member's bytes, CRC checked: in place, or inflated into a temporary file. Errors:
// INVALID_ARGUMENT (damaged, encrypted, method, above max_bytes).
Result<FileRange> zip_open(const FileRange& file, const ZipMember& member, std::uint64_t max_bytes,
                           const std::string& name);

// A NumPy array in a file, read by blocks of its first dimension.
class NpyArray {
 public:
  // Versions 1 to 3; dtypes b1, i1..i8, u1..u8, f2..f8 (both byte orders), S and U; C and Fortran
  // order. Errors: INVALID_ARGUMENT naming `name` (header, dtype, size).
  static Result<NpyArray> open(FileRange file, std::string name);

  const std::vector<std::uint64_t>& dims() const { return dims_; }
  std::uint64_t rows() const { return dims_.empty() ? 0 : dims_[0]; }
  std::uint64_t row_len() const;  // values per row
  bool is_text() const { return kind_ == 'S' || kind_ == 'U'; }
  bool is_float() const { return kind_ == 'f'; }
  const std::string& name() const { return name_; }
  // Values of row `row`. Integers above 2^24 lose precision as float. Not for text.
  Status read(std::uint64_t row, std::vector<float>& values);
  // Row of one element as text: the text itself (UTF-8), or the number, whole where it is.
  Result<std::string> text(std::uint64_t row);

 private:
  Status load(std::uint64_t row);
  // An element's bits, little-endian; signed integers extended.
  std::uint64_t bits(const char* at) const;
  float value(const char* at) const;
  std::string element_text(const char* at) const;

  FileRange data_;
  std::string name_, block_;  // rows [first_, first_ + held_), row after row
  std::vector<std::uint64_t> dims_;
  char kind_ = 'f';        // b, i, u, f, S, U
  std::size_t bytes_ = 4;  // per element
  bool big_endian_ = false, fortran_ = false;
  std::uint64_t first_ = 0, held_ = 0;
};

}  // namespace odt::data
