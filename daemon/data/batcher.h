#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

// Samples as they go to a board: ODTS v1 blobs (proto/README.md), whole sets and batches of them.
namespace odt::data {

// An ODTS blob, checked, with its parts. Cheap to copy: shares the bytes.
class SampleSet {
 public:
  enum class Dtype : std::uint8_t { kS8 = 1, kU8 = 2, kS16 = 3 };

  SampleSet() = default;  // empty: no samples
  // outputs: targets per sample where they stand in place of labels (flag 1); 0: told by the size,
  // the fewest that fit (below 4 samples the padding hides up to 3 more). Errors: INVALID_ARGUMENT
  // (magic, version, dtype, flags, size against count and length).
  static Result<SampleSet> parse(std::shared_ptr<const std::string> blob,
                                 std::uint32_t outputs = 0);

  bool empty() const { return count_ == 0; }
  std::uint32_t count() const { return count_; }
  std::uint32_t sample_len() const { return sample_len_; }
  Dtype dtype() const { return dtype_; }
  std::uint64_t sample_bytes() const {
    return std::uint64_t{sample_len_} * (dtype_ == Dtype::kS16 ? 2 : 1);
  }
  // int8 values in front of a sample: 1 (its label), or its targets.
  std::uint32_t label_len() const { return label_len_; }
  std::int8_t label(std::uint32_t i) const;   // the first of them
  std::string labels(std::uint32_t i) const;  // all, a byte each
  std::string values(std::uint32_t i) const;  // one sample, as a board takes it for inference
  bool frozen() const { return frozen_; }     // outputs of the model's frozen part (flag 2)
  const std::shared_ptr<const std::string>& blob() const { return blob_; }  // null: empty

  // The samples picked, in that order, as an ODTS blob (without flag 4). Every index < count().
  std::string batch(const std::uint32_t* index, std::uint32_t n) const;
  // Samples [first, first + n).
  std::string slice(std::uint32_t first, std::uint32_t n) const;

 private:
  std::shared_ptr<const std::string> blob_;
  Dtype dtype_ = Dtype::kS8;
  std::uint32_t count_ = 0, sample_len_ = 0, label_len_ = 1;
  bool frozen_ = false;
  std::size_t labels_ = 0, data_ = 0;  // offsets into the blob
};

// Bytes of an ODTS blob; sample_bytes: of one sample's values; label_len: targets, or 1.
constexpr std::uint64_t samples_bytes(std::uint64_t count, std::uint64_t sample_bytes,
                                      std::uint64_t label_len = 1) {
  return 16 + (count * label_len + 3) / 4 * 4 + count * sample_bytes;
}

// Regions of a board's arena begin at multiples of 8.
constexpr std::uint64_t align8(std::uint64_t n) { return (n + 7) & ~std::uint64_t{7}; }
// At the end of a resident frozen set: what it was made of.
inline constexpr std::uint64_t kSourceBytes = 64;

}  // namespace odt::data
