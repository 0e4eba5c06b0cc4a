#include "data/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <set>

#include "data/idx_reader.h"
#include "data/image_ops.h"

namespace odt::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string be32(std::uint32_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8),
          static_cast<char>(v)};
}

std::string idx(char type, const std::vector<std::uint32_t>& dims, const std::string& values) {
  std::string out = {0, 0, type, static_cast<char>(dims.size())};
  for (auto d : dims) out += be32(d);
  return out + values;
}

std::string gzip(const std::string& in) {
  z_stream z{};
  deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(in.size() + 1000, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
  z.avail_in = static_cast<uInt>(in.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

class ImportTest : public testing::Test {
 protected:
  ImportTest() {
    char name[] = "/tmp/odt-import-XXXXXX";
    folder_ = ::mkdtemp(name);
    std::string images, labels;
    for (int s = 0; s < 20; ++s) {
      for (int p = 0; p < 16; ++p) images += static_cast<char>(s * 10 + p);
      labels += static_cast<char>(s % 3);
    }
    images_ = idx(0x08, {20, 4, 4}, images);
    request_.format = "idx";
    request_.data_path = file("images", images_);
    request_.labels_path = file("labels.gz", gzip(idx(0x08, {20}, labels)));
    request_.seed = 5;
  }
  ~ImportTest() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(write_file(path, bytes).ok());
    return path;
  }
  Result<Dataset> import() {
    return import_dataset(request_, [](auto, const auto&) {});
  }
  std::string refusal() {
    const auto d = import();
    EXPECT_FALSE(d.ok());
    return std::string(d.status().message());
  }

  std::string folder_, images_;
  ImportRequest request_;
};

TEST_F(ImportTest, EqualRequestsGiveEqualBytesAndOtherSeedsOtherSamples) {
  const auto a = import(), b = import();
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ(encode_dataset(*a), encode_dataset(*b));
  EXPECT_THAT(a->counts, ElementsAre(16, 2, 2));
  EXPECT_THAT(a->shape, ElementsAre(1, 4, 4));
  request_.seed = 6;
  EXPECT_NE(encode_dataset(*a), encode_dataset(*import()));
}

TEST_F(ImportTest, SkipGivesDisjointDraws) {
  request_.train = 8;
  request_.heldout = 2;
  const auto a = import();
  request_.skip = 10;
  const auto b = import();
  ASSERT_TRUE(a.ok() && b.ok());
  std::set<std::uint32_t> all(a->source_index.begin(), a->source_index.end());
  all.insert(b->source_index.begin(), b->source_index.end());
  EXPECT_EQ(all.size(), 20u);
  EXPECT_TRUE(a->count(Split::kTest) == 0);
}

TEST_F(ImportTest, LabelsAndValuesStayTogether) {
  const auto d = import();
  ASSERT_TRUE(d.ok());
  for (std::uint32_t s = 0; s < d->samples(); ++s) {
    EXPECT_EQ(d->labels[s], d->source_index[s] % 3);
    EXPECT_EQ(d->value(s, 0), static_cast<float>(d->source_index[s] * 10));
  }
}

TEST_F(ImportTest, OwnTestSetIsUsedForTestOnly) {
  request_.test_data_path = file("t", idx(0x08, {2, 4, 4}, std::string(32, '\x07')));
  request_.test_labels_path = file("tl", idx(0x08, {2}, std::string("\x04\x00", 2)));
  const auto d = import();
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_THAT(d->counts, ElementsAre(18, 2, 2));
  EXPECT_EQ(d->class_names.size(), 5u);
  EXPECT_EQ(d->value(d->first(Split::kTest), 3), 7);
}

TEST_F(ImportTest, ShiftComesBeforeTheResize) {
  request_.transform = "rot90";
  request_.resize = {2, 2};
  const auto d = import();
  ASSERT_TRUE(d.ok()) << d.status();
  // Image of row r: 10r + 0..15. Clockwise: top left comes from bottom left: pixels 8,9,12,13.
  EXPECT_EQ(d->value(0, 0), static_cast<float>(d->source_index[0] * 10 + 11));
  EXPECT_THAT(d->shape, ElementsAre(1, 2, 2));
  EXPECT_THAT(d->source, HasSubstr("rot90"));
}

TEST_F(ImportTest, BadRequestsAreRefused) {
  request_.train = 19;
  request_.heldout = 2;
  EXPECT_THAT(refusal(), HasSubstr("20 are there"));
  request_.heldout = 1;
  EXPECT_TRUE(import().ok());
  request_.transform = "blur";
  EXPECT_THAT(refusal(), HasSubstr("transform 'blur' is not known"));
  request_.transform = "";
  request_.resize = {0, 3};
  EXPECT_THAT(refusal(), HasSubstr("resize [0,3]"));
  request_.resize = {};
  request_.skip = 20;
  EXPECT_THAT(refusal(), HasSubstr("skip 20 of 20"));
  request_.format = "mp3";
  EXPECT_THAT(refusal(), HasSubstr("format 'mp3'"));
}

TEST_F(ImportTest, BadFilesAreRefusedByName) {
  request_.labels_path = file("short", idx(0x08, {19}, std::string(19, '\0')));
  EXPECT_THAT(refusal(), HasSubstr("short: 19 labels for 20 samples of images"));
  request_.labels_path = folder_ + "/gone";
  EXPECT_THAT(refusal(), HasSubstr("gone: cannot open"));
  request_.data_path = file("cut", images_.substr(0, images_.size() - 1));
  EXPECT_THAT(refusal(), HasSubstr("cut: 335 bytes; expected 336"));
  request_.data_path = file("cut.gz", gzip(images_).substr(0, 40));
  EXPECT_THAT(refusal(), HasSubstr("gzip data is truncated or damaged"));
  // Wherever they end too early.
  const std::string packed = gzip(images_);
  for (std::size_t n = 0; n < images_.size(); ++n) {
    request_.data_path = file("cut", images_.substr(0, n));
    EXPECT_THAT(refusal(), HasSubstr("cut: ")) << n;
  }
  for (std::size_t n = 0; n < packed.size(); ++n) {
    request_.data_path = file("cut.gz", packed.substr(0, n));
    EXPECT_THAT(refusal(), HasSubstr("cut.gz")) << n;
  }
  request_.data_path = file("text", "hello, world");
  EXPECT_THAT(refusal(), HasSubstr("not an IDX file"));
  request_.data_path = file("f64", idx(0x0E, {1, 1}, std::string(8, '\0')));
  EXPECT_THAT(refusal(), HasSubstr("IDX type 0x0e"));
  request_.data_path = file("huge", idx(0x08, {0xFFFFFFFF, 0xFFFFFFFF}, "x"));
  EXPECT_THAT(refusal(), HasSubstr("more than"));
}

TEST_F(ImportTest, CsvColumnsKeepTheSmallestIntegerType) {
  request_ = {};
  request_.format = "csv";
  const std::pair<const char*, Dtype> cases[] = {{"255", Dtype::kU8},
                                                 {"-128", Dtype::kS8},
                                                 {"256", Dtype::kS16},
                                                 {"40000", Dtype::kF32},
                                                 {"0.5", Dtype::kF32}};
  for (const auto& [value, dtype] : cases) {
    std::string text;
    for (int i = 0; i < 10; ++i) text += std::string(value) + (i % 2 == 0 ? ",a\n" : ",b\n");
    request_.data_path = file("c.csv", text);
    const auto d = import();
    ASSERT_TRUE(d.ok()) << d.status();
    EXPECT_EQ(d->dtype, dtype) << value;
    EXPECT_EQ(d->value(0, 0), std::stof(value));
  }
}

TEST(IdxReader, SixteenBitAndFloatValuesAreBigEndian) {
  const auto a = read_idx(idx(0x0B, {1, 2}, std::string("\x01\x02\xff\xfe", 4)), "a");
  ASSERT_TRUE(a.ok());
  EXPECT_THAT(a->values, ElementsAre(0x02, 0x01, 0xfe, 0xff));
}

TEST(ImageOps, TransformsOfASmallImage) {
  const std::uint8_t image[] = {0, 1, 2, 3, 4, 255};  // 2 x 3
  const auto apply = [&](const std::string& name) {
    return apply_transform(*parse_transform(name), image, 2, 3);
  };
  EXPECT_THAT(apply("none"), ElementsAre(0, 1, 2, 3, 4, 255));
  EXPECT_THAT(apply("inversion"), ElementsAre(255, 254, 253, 252, 251, 0));
  EXPECT_THAT(apply("flip"), ElementsAre(2, 1, 0, 255, 4, 3));
  EXPECT_THAT(apply("rot90"), ElementsAre(3, 0, 4, 1, 255, 2));
  EXPECT_THAT(apply("gain:0.5,60"), ElementsAre(60, 61, 61, 62, 62, 188));
  EXPECT_THAT(apply("gain:-2,100"), ElementsAre(100, 98, 96, 94, 92, 0));
  EXPECT_FALSE(parse_transform("gain:1").ok());
}

TEST(ImageOps, AreaAverageIsExactForAnyRatio) {
  const std::uint8_t image[] = {0, 10, 20, 30, 40, 50, 60, 70, 80};
  EXPECT_THAT(resize_area(image, 3, 3, 3, 3), testing::ElementsAreArray(image));
  EXPECT_THAT(resize_area(image, 3, 3, 1, 1), ElementsAre(40));
  // 1.5 x 1.5 pixels each: (0 + 10/2 + 30/2 + 40/4) / 2.25 = 13.33; half up.
  EXPECT_THAT(resize_area(image, 3, 3, 2, 2), ElementsAre(13, 27, 53, 67));
  const std::uint8_t half[] = {0, 1, 0, 1};
  EXPECT_THAT(resize_area(half, 2, 2, 1, 1), ElementsAre(1)) << "0.5 rounds up";
}

}  // namespace
}  // namespace odt::data
