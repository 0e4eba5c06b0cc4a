#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace odt::data {

// Bytes of a file, plain or gzip, from the start to the end, in a buffer of fixed size.
class TextInput {
 public:
  // Errors: NOT_FOUND, INVALID_ARGUMENT (not a regular file).
  static Result<std::unique_ptr<TextInput>> open(const std::string& path, std::string shown_name);
  ~TextInput();
  TextInput(const TextInput&) = delete;

  // Next byte, or -1: the end, or an error (see status()).
  int get() {
    if (at_ == end_ && !fill()) return -1;
    return static_cast<unsigned char>(buffer_[at_++]);
  }
  // As get(), without taking it.
  int peek() {
    if (at_ == end_ && !fill()) return -1;
    return static_cast<unsigned char>(buffer_[at_]);
  }
  // INVALID_ARGUMENT: gzip data is truncated or damaged.
  const Status& status() const { return status_; }
  Status rewind();
  double progress() const;  // 0..1 of the file's bytes
  const std::string& name() const { return name_; }

 private:
  struct Gz;
  TextInput(std::unique_ptr<Gz> gz, std::string name, std::uint64_t size);
  bool fill();

  std::unique_ptr<Gz> gz_;
  std::string name_, buffer_;
  std::uint64_t size_;
  std::size_t at_ = 0, end_ = 0;
  Status status_;
};

}  // namespace odt::data
