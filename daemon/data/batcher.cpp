#include "data/batcher.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace odt::data {
namespace {

constexpr std::size_t kHeader = 16, kSource = 64;
constexpr int kTargets = 1, kFrozen = 2, kHasSource = 4;
constexpr std::uint32_t kMaxTargets = 128;

std::uint32_t read_u32(const std::string& blob, std::size_t at) {
  const auto* p = reinterpret_cast<const unsigned char*>(blob.data()) + at;
  return p[0] | p[1] << 8 | p[2] << 16 | static_cast<std::uint32_t>(p[3]) << 24;
}
void write_u32(std::string& blob, std::size_t at, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) blob[at + i] = static_cast<char>(value >> (8 * i));
}
Status bad(const std::string& what) {
  return absl::InvalidArgumentError("samples (ODTS): " + what);
}

}  // namespace

Result<SampleSet> SampleSet::parse(std::shared_ptr<const std::string> blob, std::uint32_t outputs) {
  if (blob->size() < kHeader)
    return bad("file of " + std::to_string(blob->size()) + " bytes; expected at least 16");
  if (std::memcmp(blob->data(), "ODTS", 4) != 0) return bad("magic is not 'ODTS'");
  const int version = static_cast<unsigned char>((*blob)[4]) | (*blob)[5] << 8;
  if (version != 1) return bad("version " + std::to_string(version) + "; expected 1");
  const int dtype = static_cast<unsigned char>((*blob)[6]);
  if (dtype < 1 || dtype > 3)
    return bad("dtype " + std::to_string(dtype) + "; expected 1 (s8), 2 (u8) or 3 (s16)");
  SampleSet set;
  set.dtype_ = static_cast<Dtype>(dtype);
  set.count_ = read_u32(*blob, 8);
  set.sample_len_ = read_u32(*blob, 12);
  const int flags = static_cast<unsigned char>((*blob)[7]);
  const bool source = (flags & kHasSource) != 0;
  set.frozen_ = (flags & kFrozen) != 0;
  if (flags > 7 || (source && !set.frozen_))
    return bad("flags " + std::to_string(flags) +
               "; expected 1 (targets), 2 (frozen outputs), 4 (with 2: of what), or 0");
  const bool targets = (flags & kTargets) != 0;
  const std::uint64_t size = blob->size() - (source ? std::min(blob->size(), kSource) : 0);
  const std::uint64_t bytes = set.sample_bytes();
  if (targets) set.label_len_ = std::max(outputs, 1u);
  // The fewest targets that give the size.
  if (targets && outputs == 0 && set.count_ > 0)
    while (set.label_len_ < kMaxTargets && samples_bytes(set.count_, bytes, set.label_len_) < size)
      ++set.label_len_;
  const std::uint64_t expected =
      samples_bytes(set.count_, bytes, set.label_len_) + (source ? kSource : 0);
  if (expected != blob->size())
    return bad("file of " + std::to_string(blob->size()) + " bytes; " + std::to_string(set.count_) +
               " samples of " + std::to_string(set.sample_len_) + " values need " +
               std::to_string(expected));
  set.labels_ = kHeader;
  set.data_ = kHeader + (std::size_t{set.count_} * set.label_len_ + 3) / 4 * 4;
  set.blob_ = std::move(blob);
  return set;
}

std::int8_t SampleSet::label(std::uint32_t i) const {
  return static_cast<std::int8_t>((*blob_)[labels_ + std::size_t{i} * label_len_]);
}

std::string SampleSet::labels(std::uint32_t i) const {
  return blob_->substr(labels_ + std::size_t{i} * label_len_, label_len_);
}

std::string SampleSet::values(std::uint32_t i) const {
  return blob_->substr(data_ + i * sample_bytes(), sample_bytes());
}

std::string SampleSet::batch(const std::uint32_t* index, std::uint32_t n) const {
  const std::size_t bytes = sample_bytes();
  std::string out(samples_bytes(n, bytes, label_len_), '\0');
  std::memcpy(out.data(), blob_->data(), 8);
  out[7] = static_cast<char>(out[7] & ~kHasSource);
  write_u32(out, 8, n);
  write_u32(out, 12, sample_len_);
  const std::size_t data = kHeader + (std::size_t{n} * label_len_ + 3) / 4 * 4;
  for (std::uint32_t i = 0; i < n; ++i) {
    std::memcpy(out.data() + kHeader + std::size_t{i} * label_len_,
                blob_->data() + labels_ + std::size_t{index[i]} * label_len_, label_len_);
    std::memcpy(out.data() + data + std::size_t{i} * bytes,
                blob_->data() + data_ + std::size_t{index[i]} * bytes, bytes);
  }
  return out;
}

std::string SampleSet::slice(std::uint32_t first, std::uint32_t n) const {
  std::vector<std::uint32_t> index(n);
  std::iota(index.begin(), index.end(), first);
  return batch(index.data(), n);
}

}  // namespace odt::data
