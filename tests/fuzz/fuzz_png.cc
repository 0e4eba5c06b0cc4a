// PNG files are hostile bytes. Mutants get right chunk checksums, or libpng would look at nothing
// else.
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "data/png_reader.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

uint32_t be32(const uint8_t* at) {
  return uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int) {
  size = LLVMFuzzerMutate(data, size, max_size);
  for (size_t at = 8; at + 12 <= size;) {
    const size_t n = be32(data + at);
    if (n > size - at - 12) break;
    const auto crc = static_cast<uint32_t>(crc32(0, data + at + 4, static_cast<uInt>(n + 4)));
    for (size_t i = 0; i < 4; ++i) data[at + 8 + n + i] = static_cast<uint8_t>(crc >> (24 - 8 * i));
    at += 12 + n;
  }
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const auto header = odt::data::read_png_header(file, "fuzz.png");
  // Large images take their time and have no more code.
  if (!header.ok() || uint64_t{header->width} * header->height > 1 << 16) return 0;
  for (const uint32_t channels : {1u, 3u}) {
    const auto pixels = odt::data::read_png(file, channels, "fuzz.png");
    if (pixels.ok() && pixels->size() != size_t{header->width} * header->height * channels)
      std::abort();
  }
  return 0;
}
