#include <gmock/gmock.h>
#include <zlib.h>

#include <cstring>

#include "data/import.h"
#include "temp_files.h"

namespace odt::data::npy_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string npy(const std::string& descr, const std::string& shape, const std::string& values,
                bool fortran = false, char version = 1) {
  std::string header = "{'descr': '" + descr +
                       "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': (" +
                       shape + "), }";
  header.resize(117, ' ');
  header += '\n';
  std::string out = "\x93NUMPY";
  out += version;
  out += '\0';
  out += static_cast<char>(header.size());
  out += '\0';
  if (version > 1) out += std::string(2, '\0');
  return out + header + values;
}

template <typename T>
std::string bytes(const std::vector<T>& values, bool swap = false) {
  std::string out;
  for (T v : values) {
    std::string one(reinterpret_cast<const char*>(&v), sizeof v);
    if (swap) std::reverse(one.begin(), one.end());
    out += one;
  }
  return out;
}

std::string raw_deflate(const std::string& in) {
  z_stream z{};
  deflateInit2(&z, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
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

std::string le(std::uint64_t v, int n) {
  return std::string(reinterpret_cast<const char*>(&v), static_cast<std::size_t>(n));
}

std::string zip(const std::vector<std::pair<std::string, std::string>>& members, bool packed) {
  std::string out, directory;
  for (const auto& [name, content] : members) {
    const std::string data = packed ? raw_deflate(content) : content;
    const auto crc =
        crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
    const std::string common = le(20, 2) + le(0, 2) + le(packed ? 8 : 0, 2) + le(0, 4) +
                               le(crc, 4) + le(data.size(), 4) + le(content.size(), 4) +
                               le(name.size(), 2);
    directory +=
        "PK\x01\x02" + le(20, 2) + common + std::string(12, '\0') + le(out.size(), 4) + name;
    out += "PK\x03\x04" + common + le(4, 2) + name + "\x63\x63" + le(0, 2) + data;
  }
  const std::size_t at = out.size();
  return out + directory + "PK\x05\x06" + le(0, 4) + le(members.size(), 2) + le(members.size(), 2) +
         le(directory.size(), 4) + le(at, 4) + le(0, 2);
}

class Npy : public testing::Test {
 protected:
  Result<std::unique_ptr<Source>> open(const std::string& x, const std::string& y = "",
                                       bool archive = false) {
    request_.format = archive ? "npz" : "npy";
    request_.data_path = files_.put("x.npy", x);
    request_.labels_path = y.empty() ? "" : files_.put("y.npy", y);
    return open_source(request_);
  }
  std::vector<float> values(const std::string& x) {
    const auto source = open(x);
    EXPECT_TRUE(source.ok()) << source.status();
    std::vector<float> all;
    if (source.ok())
      for (const auto& row : rows_of(**source))
        all.insert(all.end(), row.values.begin(), row.values.end());
    return all;
  }
  std::string refusal(const std::string& x, const std::string& y = "", bool archive = false) {
    const auto source = open(x, y, archive);
    EXPECT_FALSE(source.ok());
    return std::string(source.status().message());
  }
  TempFiles files_;
  ImportRequest request_;
};

template <typename T>
void every_order(std::function<std::vector<float>(const std::string&)> read,
                 const std::string& type) {
  const std::vector<T> v = {static_cast<T>(1), static_cast<T>(-2), static_cast<T>(100),
                            static_cast<T>(7)};
  std::vector<float> expected;
  for (T x : v) expected.push_back(static_cast<float>(x));
  EXPECT_EQ(read(npy("<" + type, "2, 2", bytes(v))), expected) << type;
  EXPECT_EQ(read(npy(">" + type, "2, 2", bytes(v, true))), expected) << type;
  EXPECT_EQ(read(npy("<" + type, "2, 2", bytes<T>({v[0], v[2], v[1], v[3]}), true)), expected);
}

TEST_F(Npy, EveryNumericTypeByteOrderAndMemoryOrder) {
  const auto read = [this](const std::string& x) { return values(x); };
  every_order<std::int8_t>(read, "i1");
  every_order<std::uint8_t>(read, "u1");
  every_order<std::int16_t>(read, "i2");
  every_order<std::uint16_t>(read, "u2");
  every_order<std::int32_t>(read, "i4");
  every_order<std::uint32_t>(read, "u4");
  every_order<std::int64_t>(read, "i8");
  every_order<float>(read, "f4");
  every_order<double>(read, "f8");
  EXPECT_THAT(values(npy("|b1", "2", std::string("\x01\x00", 2))), ElementsAre(1, 0));
  // 1.5, -2, smallest subnormal, largest
  EXPECT_THAT(values(npy("<f2", "4", bytes<std::uint16_t>({0x3E00, 0xC000, 1, 0x7BFF}))),
              ElementsAre(1.5f, -2, std::ldexp(1.0f, -24), 65504));
}

TEST_F(Npy, VersionsTwoAndThreeHaveALongerHeader) {
  EXPECT_THAT(values(npy("<i2", "1, 2", bytes<std::int16_t>({5, 6}), false, 2)), ElementsAre(5, 6));
  EXPECT_THAT(values(npy("<i2", "1, 2", bytes<std::int16_t>({5, 6}), false, 3)), ElementsAre(5, 6));
}

TEST_F(Npy, FortranOrderOfThreeDimensions) {
  // a[n,h,w] = 100n + 10h + w of shape (2,2,3), first index fastest.
  std::vector<std::uint8_t> v;
  for (int w = 0; w < 3; ++w)
    for (int h = 0; h < 2; ++h)
      for (int n = 0; n < 2; ++n) v.push_back(static_cast<std::uint8_t>(100 * n + 10 * h + w));
  EXPECT_THAT(values(npy("|u1", "2, 2, 3", bytes(v), true)),
              ElementsAre(0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112));
}

TEST_F(Npy, ChannelsLastBecomeFirst) {
  std::vector<std::uint8_t> v;
  for (std::uint8_t i = 0; i < 2 * 5 * 3; ++i) v.push_back(i);
  const auto source = open(npy("|u1", "1, 2, 5, 3", bytes(v)));
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_THAT((*source)->shape(), ElementsAre(3, 2, 5));
  const auto rows = rows_of(**source);
  EXPECT_EQ(rows[0].values[1], 3);
  EXPECT_EQ(rows[0].values[10], 1);
}

TEST_F(Npy, LabelsOfNumbersAndText) {
  const std::string x = npy("|u1", "2, 1", "ab");
  const auto labels = [&](const std::string& y) {
    const auto source = open(x, y);
    EXPECT_TRUE(source.ok()) << source.status();
    std::vector<std::string> all;
    if (source.ok())
      for (const auto& row : rows_of(**source)) all.push_back(row.label);
    return all;
  };
  EXPECT_THAT(labels(npy("<i8", "2", bytes<std::int64_t>({-3, 12}))), ElementsAre("-3", "12"));
  EXPECT_THAT(labels(npy("<i8", "2", bytes<std::int64_t>({20240101, 20240102}))),
              ElementsAre("20240101", "20240102"));
  EXPECT_THAT(labels(npy("<f4", "2", bytes<float>({4, 5}))), ElementsAre("4", "5"));
  EXPECT_THAT(labels(npy("<U2", "2", bytes<std::uint32_t>({'u', 'p', 0xE9, 0}))),
              ElementsAre("up", "\xC3\xA9"));
  EXPECT_THAT(labels(npy(">U1", "2", bytes<std::uint32_t>({'a', 'b'}, true))),
              ElementsAre("a", "b"));
  EXPECT_THAT(labels(npy("|S3", "2", std::string("on\0off", 6))), ElementsAre("on", "off"));
}

TEST_F(Npy, FractionsAndSeveralColumnsAreTargets) {
  const std::string x = npy("|u1", "2, 1", "ab");
  auto source = open(x, npy("<f4", "2", bytes<float>({0.5f, 2})));
  ASSERT_TRUE(source.ok());
  EXPECT_THAT(rows_of(**source)[0].targets, ElementsAre(0.5f));
  source = open(x, npy("<i4", "2, 2", bytes<std::int32_t>({1, 2, 3, 4})));
  ASSERT_TRUE(source.ok());
  EXPECT_THAT(rows_of(**source)[1].targets, ElementsAre(3, 4));
  request_.target_columns = {"y"};
  source = open(x, npy("<i4", "2", bytes<std::int32_t>({1, 2})));
  ASSERT_TRUE(source.ok());
  EXPECT_THAT(rows_of(**source)[1].targets, ElementsAre(2));
}

TEST_F(Npy, BadFilesAreRefusedByName) {
  const std::string x = npy("|u1", "2, 1", "ab");
  EXPECT_THAT(refusal("hello, world"), HasSubstr("x.npy: not an NPY file"));
  EXPECT_THAT(refusal(x.substr(0, x.size() - 1)), HasSubstr("1 bytes of values; expected 2"));
  for (std::size_t n = 0; n < x.size(); ++n)
    EXPECT_THAT(refusal(x.substr(0, n)), HasSubstr("x.npy: "));
  EXPECT_THAT(refusal(npy("<c8", "1", std::string(8, '\0'))), HasSubstr("dtype <c8 is not"));
  EXPECT_THAT(refusal(npy("|O", "1", "x")), HasSubstr("dtype"));
  EXPECT_THAT(refusal(npy("|u1", "0, 3", "")), HasSubstr("got [0,3]"));
  EXPECT_THAT(refusal(npy("|u1", "", "x")), HasSubstr("got []"));
  EXPECT_THAT(refusal(npy("|u1", "9999999999, 9999999999", "x")), HasSubstr("more than"));
  EXPECT_THAT(refusal(npy("|u1", "1, 70000", std::string(70000, 'x'))), HasSubstr("1 to 65535"));
  EXPECT_THAT(refusal(npy("<U1", "1", "abcd")), HasSubstr("numbers are expected"));
  EXPECT_THAT(refusal(x, npy("|u1", "3", "abc")), HasSubstr("3 labels for 2 rows of x.npy"));
  std::string bad = x;
  bad[6] = 4;
  EXPECT_THAT(refusal(bad), HasSubstr("NPY version 4"));
}

TEST_F(Npy, ArchivesByNameAndByGuess) {
  const std::string a = npy("|u1", "2, 2", "abcd"), y = npy("|u1", "2", "\x01\x02");
  for (const bool packed : {false, true}) {
    auto source = open(zip({{"y.npy", y}, {"x.npy", a}}, packed), "", true);
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_EQ(rows_of(**source)[1].label, "2");
    source = open(zip({{"arr_1.npy", y}, {"arr_0.npy", a}}, packed), "", true);
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_THAT(rows_of(**source)[1].values, ElementsAre('c', 'd'));
  }
  EXPECT_THAT(refusal(zip({{"p.npy", a}, {"q.npy", a}, {"r.npy", y}}, true), "", true),
              HasSubstr("it has the arrays p, q, r; say which"));
  request_.x_key = "q";
  request_.y_key = "r";
  EXPECT_TRUE(open(zip({{"p.npy", a}, {"q.npy", a}, {"r.npy", y}}, true), "", true).ok());
  request_.y_key = "z";
  EXPECT_THAT(refusal(zip({{"q.npy", a}, {"r.npy", y}}, true), "", true),
              HasSubstr("no array 'z'; it has q, r"));
}

TEST_F(Npy, TrainAndTestArraysOfOneArchive) {
  std::string labels;
  for (int i = 0; i < 20; ++i) labels += static_cast<char>(i % 2);
  request_.format = "";
  request_.data_path =
      files_.put("m.npz", zip({{"X_train.npy", npy("|u1", "20, 1", std::string(20, 'a'))},
                               {"y_train.npy", npy("|u1", "20", labels)},
                               {"X_test.npy", npy("|u1", "3, 1", "zzz")},
                               {"y_test.npy", npy("|u1", "3", std::string("\x01\x00\x01", 3))}},
                              true));
  const auto d = import_dataset(request_, [](auto, const auto&) {});
  ASSERT_TRUE(d.ok()) << d.status();
  EXPECT_THAT(d->counts, ElementsAre(18, 2, 3));
  EXPECT_EQ(d->value(d->first(Split::kTest), 0), 'z');
}

TEST_F(Npy, DamagedArchives) {
  const std::string a = npy("|u1", "2, 2", "abcd");
  const std::string good = zip({{"x.npy", a}}, true);
  EXPECT_THAT(refusal(good.substr(0, good.size() - 1), "", true), HasSubstr("truncated?"));
  std::string bad = good;
  bad[60] = static_cast<char>(bad[60] ^ 0x55);
  EXPECT_THAT(refusal(bad, "", true), HasSubstr("zip archive"));
  bad = zip({{"x.npy", a}}, false);
  bad[bad.find("abcd")] = 'X';
  EXPECT_THAT(refusal(bad, "", true), HasSubstr("CRC is wrong"));
  EXPECT_THAT(refusal(zip({{"readme", "hi"}}, true), "", true), HasSubstr("no array"));
  for (std::size_t n = 2; n < good.size(); ++n)
    EXPECT_FALSE(open(good.substr(0, n), "", true).ok());
}

}  // namespace
}  // namespace odt::data::npy_test
