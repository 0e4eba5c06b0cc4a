#include "data/idx_reader.h"

#include <absl/strings/str_cat.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>

namespace odt::data {
namespace {

std::uint32_t be32(std::string_view in, std::size_t at) {
  std::uint32_t v = 0;
  for (std::size_t i = 0; i < 4; ++i) v = v << 8 | static_cast<std::uint8_t>(in[at + i]);
  return v;
}

Result<Dtype> idx_dtype(std::uint8_t code, const std::string& name) {
  switch (code) {
    case 0x08:
      return Dtype::kU8;
    case 0x09:
      return Dtype::kS8;
    case 0x0B:
      return Dtype::kS16;
    case 0x0D:
      return Dtype::kF32;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": IDX type 0x", absl::Hex(code, absl::kZeroPad2),
                       " is not supported; expected 0x08 (u8), 0x09 (i8), 0x0b (i16) or 0x0d "
                       "(f32)"));
  }
}

}  // namespace

Result<std::string> maybe_gunzip(std::string_view bytes, std::uint64_t max_bytes) {
  if (bytes.size() < 2 || bytes[0] != '\x1f' || bytes[1] != '\x8b') return std::string(bytes);
  z_stream z{};
  if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK) return absl::InternalError("zlib cannot start");
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  int rc = Z_OK;
  while (rc == Z_OK && out.size() <= max_bytes) {
    const std::size_t at = out.size();
    out.resize(at + (std::size_t{1} << 20));
    z.next_out = reinterpret_cast<Bytef*>(out.data() + at);
    z.avail_out = 1u << 20;
    rc = inflate(&z, Z_NO_FLUSH);
    out.resize(out.size() - z.avail_out);
  }
  inflateEnd(&z);
  if (out.size() > max_bytes)
    return absl::InvalidArgumentError(
        absl::StrCat("gzip data of more than ", max_bytes, " bytes inflated"));
  if (rc != Z_STREAM_END) return absl::InvalidArgumentError("gzip data is truncated or damaged");
  return out;
}

Result<IdxArray> read_idx(std::string_view bytes, const std::string& name) {
  auto plain = maybe_gunzip(bytes, kMaxDatasetBytes);
  if (!plain.ok())
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", plain.status().message()));
  const std::string& in = *plain;
  if (in.size() < 8 || in[0] != 0 || in[1] != 0 || in[3] < 1 || in[3] > 4)
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": not an IDX file (two zero bytes, type, 1..4 dimensions expected)"));
  IdxArray a;
  ODT_ASSIGN(a.dtype, idx_dtype(static_cast<std::uint8_t>(in[2]), name));
  const std::size_t ndim = static_cast<std::uint8_t>(in[3]);
  const std::size_t header = 4 + 4 * ndim;
  if (in.size() < header)
    return absl::InvalidArgumentError(absl::StrCat(name, ": truncated inside the header"));
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < ndim; ++i) {
    a.dims.push_back(be32(in, 4 + 4 * i));
    count *= a.dims.back();
    if (count > kMaxDatasetBytes)
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": more than ", kMaxDatasetBytes, " values"));
  }
  const std::size_t value_bytes = dtype_bytes(a.dtype);
  if (in.size() != header + count * value_bytes)
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", in.size(), " bytes; expected ",
                                                   header + count * value_bytes,
                                                   " by its header (truncated?)"));
  a.values.assign(in.begin() + static_cast<std::ptrdiff_t>(header), in.end());
  for (std::size_t i = 0; value_bytes > 1 && i < a.values.size(); i += value_bytes)
    std::reverse(a.values.begin() + static_cast<std::ptrdiff_t>(i),
                 a.values.begin() + static_cast<std::ptrdiff_t>(i + value_bytes));
  return a;
}

}  // namespace odt::data
