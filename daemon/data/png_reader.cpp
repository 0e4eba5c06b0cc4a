#include "data/png_reader.h"

#include <absl/strings/str_cat.h>
#include <png.h>

#include <csetjmp>
#include <cstring>

namespace odt::data {
namespace {

constexpr std::size_t kHeaderBytes = 33;  // signature and IHDR

Status bad(const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", what));
}

std::uint32_t be32(std::string_view in, std::size_t at) {
  std::uint32_t v = 0;
  for (std::size_t i = 0; i < 4; ++i) v = v << 8 | static_cast<std::uint8_t>(in[at + i]);
  return v;
}

// What libpng's callbacks need. Trivial: decoding leaves by longjmp.
struct Decoder {
  const char* bytes;
  std::size_t size, at;
  char message[96];
};

void take(png_structp png, png_bytep to, png_size_t n) {
  auto* d = static_cast<Decoder*>(png_get_io_ptr(png));
  if (n > d->size - d->at) png_error(png, "truncated");
  std::memcpy(to, d->bytes + d->at, n);
  d->at += n;
}
void on_error(png_structp png, png_const_charp message) {
  auto* d = static_cast<Decoder*>(png_get_error_ptr(png));
  std::strncpy(d->message, message, sizeof d->message - 1);
  png_longjmp(png, 1);
}
void on_warning(png_structp, png_const_charp) {}

// RGBA, 8 bits each, into out[height * width * 4]; false: d.message says why. No object with a
// destructor lives here.
bool decode(Decoder& d, std::uint32_t width, std::uint32_t height, std::uint8_t* out,
            png_bytep* rows) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, on_error, on_warning);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info == nullptr || setjmp(png_jmpbuf(png))) {
    png_destroy_read_struct(&png, &info, nullptr);
    return false;
  }
  png_set_read_fn(png, &d, take);
  png_set_user_limits(png, kMaxPngSide, kMaxPngSide);
  png_set_chunk_malloc_max(png, 1u << 20);
  png_set_chunk_cache_max(png, 64);
  png_read_info(png, info);
  if (png_get_image_width(png, info) != width || png_get_image_height(png, info) != height)
    png_error(png, "two headers");
  png_set_scale_16(png);
  png_set_expand(png);
  png_set_gray_to_rgb(png);
  png_set_add_alpha(png, 0xFF, PNG_FILLER_AFTER);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  if (png_get_rowbytes(png, info) != png_size_t{width} * 4) png_error(png, "unexpected layout");
  for (std::uint32_t y = 0; y < height; ++y) rows[y] = out + std::size_t{y} * width * 4;
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  png_destroy_read_struct(&png, &info, nullptr);
  return true;
}

}  // namespace

Result<PngHeader> read_png_header(std::string_view bytes, const std::string& name) {
  static constexpr char kSignature[] = "\x89PNG\r\n\x1a\n";
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kSignature, 8) != 0 ||
      bytes.substr(12, 4) != "IHDR")
    return bad(name, "not a PNG file");
  PngHeader h;
  h.width = be32(bytes, 16);
  h.height = be32(bytes, 20);
  h.colour = (static_cast<std::uint8_t>(bytes[25]) & 2) != 0;
  if (h.width < 1 || h.height < 1 || h.width > kMaxPngSide || h.height > kMaxPngSide ||
      std::uint64_t{h.width} * h.height > kMaxPngPixels)
    return bad(name, absl::StrCat(h.width, " x ", h.height, " pixels; expected sides of 1..",
                                  kMaxPngSide, " and at most ", kMaxPngPixels, " pixels"));
  return h;
}

Result<std::vector<std::uint8_t>> read_png(std::string_view bytes, std::uint32_t channels,
                                           const std::string& name) {
  PngHeader h;
  ODT_ASSIGN(h, read_png_header(bytes, name));
  const std::size_t area = std::size_t{h.width} * h.height;
  std::vector<std::uint8_t> rgba(area * 4);
  std::vector<png_bytep> rows(h.height);
  Decoder d{bytes.data(), bytes.size(), 0, {}};
  if (!decode(d, h.width, h.height, rgba.data(), rows.data()))
    return bad(name, absl::StrCat("damaged PNG file: ", printable(d.message, 80)));
  std::vector<std::uint8_t> out(area * channels);
  for (std::size_t i = 0; i < area; ++i) {
    std::uint32_t rgb[3];
    for (std::size_t c = 0; c < 3; ++c) rgb[c] = (rgba[4 * i + c] * rgba[4 * i + 3] + 127u) / 255;
    if (channels == 1)
      out[i] = static_cast<std::uint8_t>(
          (19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16);
    for (std::size_t c = 0; channels == 3 && c < 3; ++c)
      out[c * area + i] = static_cast<std::uint8_t>(rgb[c]);
  }
  return out;
}

}  // namespace odt::data
