#include "data/derive.h"

#include <absl/strings/str_cat.h>

#include <cstring>

namespace odt::data {

std::string encode_samples(Dtype dtype, std::uint32_t sample_len,
                           const std::vector<std::uint8_t>& labels,
                           const std::vector<std::uint8_t>& data) {
  std::string out("ODTS", 4);
  const auto put32 = [&out](std::uint32_t v) { out.append(reinterpret_cast<char*>(&v), 4); };
  out.append({1, 0, static_cast<char>(dtype), 0});
  put32(static_cast<std::uint32_t>(labels.size()));
  put32(sample_len);
  out.append(reinterpret_cast<const char*>(labels.data()), labels.size());
  out.append((4 - out.size() % 4) % 4, '\0');
  out.append(reinterpret_cast<const char*>(data.data()), data.size());
  return out;
}

Result<DerivedBlobs> derive_samples(const Dataset& d, const InputStage& input,
                                    std::uint32_t n_classes) {
  if (d.class_names.size() > n_classes)
    return absl::InvalidArgumentError(absl::StrCat("the dataset has ", d.class_names.size(),
                                                   " classes; the model tells ", n_classes,
                                                   " apart"));
  DerivedBlobs blobs;
  std::string* const out[3] = {&blobs.train, &blobs.heldout, &blobs.test};
  for (const Split split : {Split::kTrain, Split::kHeldout, Split::kTest}) {
    const std::uint32_t first = d.first(split), n = d.count(split);
    if (n == 0) continue;
    std::vector<std::uint8_t> data;
    ODT_ASSIGN(data, quantize_samples(input, d, first, n));
    const std::vector<std::uint8_t> labels(d.labels.begin() + first, d.labels.begin() + first + n);
    *out[static_cast<int>(split)] = encode_samples(input.dtype, d.sample_len(), labels, data);
  }
  std::string both(64, '\0');
  if (!blobs.train.empty()) std::memcpy(both.data(), sha256(blobs.train).bytes.data(), 32);
  if (!blobs.heldout.empty()) std::memcpy(both.data() + 32, sha256(blobs.heldout).bytes.data(), 32);
  blobs.sample_set_hash = sha256(both);
  return blobs;
}

}  // namespace odt::data
