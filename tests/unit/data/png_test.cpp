#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "data/open_series.h"
#include "data/png_reader.h"
#include "temp_files.h"

namespace odt::data::png_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

void put_be(std::string& out, std::uint32_t v) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(v >> shift);
}
void chunk(std::string& out, const std::string& type, const std::string& data) {
  put_be(out, static_cast<std::uint32_t>(data.size()));
  const std::string body = type + data;
  out += body;
  put_be(out, static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(body.data()),
                                               static_cast<uInt>(body.size()))));
}
// colour: 0 gray, 2 RGB, 3 palette, 4 gray and alpha, 6 RGBA. rows: packed bytes of each row.
std::string png(std::uint32_t w, std::uint32_t h, int depth, int colour,
                const std::vector<std::string>& rows, const std::string& palette = "",
                const std::string& alpha = "") {
  std::string out = "\x89PNG\r\n\x1a\n", header, raw;
  put_be(header, w);
  put_be(header, h);
  header += {static_cast<char>(depth), static_cast<char>(colour), 0, 0, 0};
  chunk(out, "IHDR", header);
  if (!palette.empty()) chunk(out, "PLTE", palette);
  if (!alpha.empty()) chunk(out, "tRNS", alpha);
  for (const auto& row : rows) raw += '\0' + row;
  uLongf size = compressBound(raw.size());
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size,
           reinterpret_cast<const Bytef*>(raw.data()), raw.size());
  packed.resize(size);
  chunk(out, "IDAT", packed);
  chunk(out, "IEND", "");
  return out;
}
std::string s(std::initializer_list<int> bytes) {
  std::string out;
  for (int b : bytes) out += static_cast<char>(b);
  return out;
}

std::vector<std::uint8_t> pixels(const std::string& bytes, std::uint32_t channels) {
  const auto p = read_png(bytes, channels, "a.png");
  EXPECT_TRUE(p.ok()) << p.status();
  return p.ok() ? *p : std::vector<std::uint8_t>{};
}

TEST(PngReaderTest, EveryColourTypeBecomesBytes) {
  EXPECT_THAT(pixels(png(2, 2, 8, 0, {s({0, 255}), s({7, 9})}), 1), ElementsAre(0, 255, 7, 9));
  EXPECT_THAT(pixels(png(4, 1, 1, 0, {s({0x50})}), 1), ElementsAre(0, 255, 0, 255));
  EXPECT_THAT(pixels(png(2, 1, 4, 0, {s({0x3F})}), 1), ElementsAre(0x33, 0xFF));
  EXPECT_THAT(pixels(png(2, 1, 8, 2, {s({1, 2, 3, 4, 5, 6})}), 3), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(pixels(png(2, 1, 8, 3, {s({1, 0})}, s({1, 2, 3, 4, 5, 6})), 3),
              ElementsAre(4, 1, 5, 2, 6, 3));
  EXPECT_THAT(pixels(png(1, 1, 8, 0, {s({9})}), 3), ElementsAre(9, 9, 9));
}

TEST(PngReaderTest, SixteenBitsAreRounded) {
  // 0x017F / 257 = 1.49, 0x0182 / 257 = 1.502.
  EXPECT_THAT(pixels(png(3, 1, 16, 0, {s({0x01, 0x7F, 0x01, 0x82, 0xFF, 0xFF})}), 1),
              ElementsAre(1, 2, 255));
}

TEST(PngReaderTest, TransparencyLiesOnBlack) {
  EXPECT_THAT(pixels(png(2, 1, 8, 4, {s({200, 128, 200, 0})}), 1), ElementsAre(100, 0));
  EXPECT_THAT(pixels(png(1, 1, 8, 6, {s({10, 20, 255, 51})}), 3), ElementsAre(2, 4, 51));
  EXPECT_THAT(pixels(png(1, 1, 8, 3, {s({0})}, s({9, 9, 9}), s({0})), 1), ElementsAre(0));
}

TEST(PngReaderTest, GrayIsLuma) {
  EXPECT_THAT(pixels(png(3, 1, 8, 2, {s({255, 0, 0, 0, 255, 0, 0, 0, 255})}), 1),
              ElementsAre(76, 150, 29));
}

TEST(PngReaderTest, DamagedFilesAreRefusedByName) {
  const std::string good = png(2, 2, 8, 0, {s({0, 255}), s({7, 9})});
  const auto refusal = [](const std::string& bytes) {
    const auto p = read_png(bytes, 1, "a.png");
    return p.ok() ? "accepted" : std::string(p.status().message());
  };
  EXPECT_EQ(refusal("GIF89a"), "a.png: not a PNG file");
  for (std::size_t n = 8; n < good.size(); ++n)
    EXPECT_THAT(refusal(good.substr(0, n)), HasSubstr("a.png: ")) << n;
  EXPECT_THAT(refusal(good.substr(0, good.size() - 1)), HasSubstr("a.png: damaged PNG file: "));
  std::string bad = good;
  bad[45] = static_cast<char>(bad[45] ^ 1);  // in the image data
  EXPECT_THAT(refusal(bad), HasSubstr("a.png: damaged PNG file: "));
  bad = good;
  bad[16] = 1;  // 2^24 wide
  EXPECT_THAT(refusal(bad), HasSubstr("pixels; expected sides of 1..8192"));
  bad = good;
  bad[16] = bad[17] = bad[18] = bad[19] = 0;
  EXPECT_THAT(refusal(bad), HasSubstr("a.png: 0 x 2 pixels"));
}

class PngFolderTest : public testing::Test {
 protected:
  std::vector<Row> rows(Status* status = nullptr) {
    auto source = open_png_rows(request_, files_.folder(), "set");
    if (!source.ok() && status != nullptr) *status = source.status();
    if (!source.ok()) return {};
    shape_ = (*source)->shape();
    return rows_of(**source, status);
  }
  std::string refusal() {
    Status status;
    rows(&status);
    return std::string(status.message());
  }
  TempFiles files_;
  ImportRequest request_;
  std::vector<std::uint32_t> shape_;
};

TEST_F(PngFolderTest, ClassIsTheFolder) {
  files_.put("dark/1.png", png(2, 2, 8, 0, {s({0, 1}), s({2, 3})}));
  files_.put("light/1.png", png(2, 2, 8, 0, {s({200, 201}), s({202, 203})}));
  const auto r = rows();
  ASSERT_EQ(r.size(), 2u);
  EXPECT_THAT(shape_, ElementsAre(1, 2, 2));
  EXPECT_EQ(r[0].label, "dark");
  EXPECT_EQ(r[1].name, "set/light/1.png");
  EXPECT_THAT(r[1].values, ElementsAre(200, 201, 202, 203));
}

TEST_F(PngFolderTest, OneColouredFileMakesAllThreeChannels) {
  files_.put("a/1.png", png(1, 1, 8, 0, {s({5})}));
  files_.put("b/1.png", png(1, 1, 8, 2, {s({1, 2, 3})}));
  auto r = rows();
  ASSERT_EQ(r.size(), 2u);
  EXPECT_THAT(shape_, ElementsAre(3, 1, 1));
  EXPECT_THAT(r[0].values, ElementsAre(5, 5, 5));
  request_.channels = 1;
  r = rows();
  EXPECT_THAT(r[1].values, ElementsAre(2));
}

TEST_F(PngFolderTest, SizesAreMadeAlikeByResize) {
  files_.put("a/1.png", png(2, 2, 8, 0, {s({0, 100}), s({100, 200})}));
  files_.put("b/1.png", png(1, 2, 8, 0, {s({10}), s({30})}));
  EXPECT_EQ(refusal(),
            "set/b/1.png: 1 x 2 pixels; set/a/1.png has 2 x 2 (resize makes them alike)");
  request_.resize = {1, 1};
  const auto r = rows();
  ASSERT_EQ(r.size(), 2u);
  EXPECT_THAT(r[0].values, ElementsAre(100));
  EXPECT_THAT(r[1].values, ElementsAre(20));
}

TEST_F(PngFolderTest, TransformComesBeforeTheSize) {
  files_.put("a/1.png", png(2, 1, 8, 0, {s({10, 20})}));
  request_.transform = "rot90";
  const auto r = rows();
  ASSERT_EQ(r.size(), 1u);
  EXPECT_THAT(shape_, ElementsAre(1, 2, 1));
  EXPECT_THAT(r[0].values, ElementsAre(10, 20));
}

TEST_F(PngFolderTest, BadFoldersAreRefused) {
  EXPECT_EQ(refusal(), "set: no PNG files");
  files_.put("1.png", png(1, 1, 8, 0, {s({5})}));
  EXPECT_THAT(refusal(), HasSubstr("set/1.png: no class"));
  files_.put("1.png", "no image");
  request_.pattern = "{label}.png";
  EXPECT_EQ(refusal(), "set/1.png: not a PNG file");
}

}  // namespace
}  // namespace odt::data::png_test
