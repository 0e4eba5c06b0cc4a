#include "data/text_input.h"

#include <absl/strings/str_cat.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

namespace odt::data {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 18;

}  // namespace

// zlib reads plain files as they are.
struct TextInput::Gz {
  gzFile file = nullptr;
  ~Gz() {
    if (file != nullptr) gzclose_r(file);
  }
};

Result<std::unique_ptr<TextInput>> TextInput::open(const std::string& path, std::string name) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const std::string text = absl::StrCat(name, ": cannot open: ", std::strerror(errno));
    if (errno == ENOENT) return absl::NotFoundError(text);
    return absl::FailedPreconditionError(text);
  }
  struct stat st {};
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    ::close(fd);
    return absl::InvalidArgumentError(absl::StrCat(name, ": not a regular file"));
  }
  auto gz = std::make_unique<Gz>();
  gz->file = gzdopen(fd, "rb");
  if (gz->file == nullptr) {
    ::close(fd);
    return absl::ResourceExhaustedError("zlib cannot start");
  }
  return std::unique_ptr<TextInput>(
      new TextInput(std::move(gz), std::move(name), static_cast<std::uint64_t>(st.st_size)));
}

TextInput::TextInput(std::unique_ptr<Gz> gz, std::string name, std::uint64_t size)
    : gz_(std::move(gz)), name_(std::move(name)), buffer_(kBuffer, '\0'), size_(size) {}

TextInput::~TextInput() = default;

bool TextInput::fill() {
  if (!status_.ok()) return false;
  const int n = gzread(gz_->file, buffer_.data(), static_cast<unsigned>(buffer_.size()));
  int error = Z_OK;
  gzerror(gz_->file, &error);
  // A gzip file that stops early ends with Z_BUF_ERROR, after what could be read.
  if (n < 0 || (n == 0 && error != Z_OK && error != Z_STREAM_END)) {
    status_ =
        absl::InvalidArgumentError(absl::StrCat(name_, ": gzip data is truncated or damaged"));
    return false;
  }
  at_ = 0;
  end_ = static_cast<std::size_t>(n);
  return n > 0;
}

Status TextInput::rewind() {
  ODT_TRY(status_);
  at_ = end_ = 0;
  if (gzrewind(gz_->file) != 0)
    return absl::FailedPreconditionError(absl::StrCat(name_, ": cannot be read again"));
  return absl::OkStatus();
}

double TextInput::progress() const {
  const auto at = gzoffset(gz_->file);
  return size_ == 0 || at < 0 ? 0
                              : std::min(1.0, static_cast<double>(at) / static_cast<double>(size_));
}

}  // namespace odt::data
