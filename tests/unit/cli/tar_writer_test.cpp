#include "cli/tar_writer.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "cli/data_files.h"
#include "data/tar.h"

namespace odt::cli {
namespace {

namespace fs = std::filesystem;

class TarWriter : public testing::Test {
 protected:
  TarWriter() {
    char name[] = "/tmp/odt-tar-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  ~TarWriter() override { fs::remove_all(folder_); }
  std::string put(const std::string& name, const std::string& bytes) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
  std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  fs::path folder_;
};

TEST_F(TarWriter, TheWorkerUnpacksWhatWasPacked) {
  const std::string deep = std::string(120, 'd') + "/" + std::string(90, 'f');
  put("in/up/1.wav", std::string(512, 'x'));
  put("in/" + deep, "deep");
  put("in/empty", "");
  put("in/.git/config", "hidden");
  fs::create_symlink("/etc/passwd", folder_ / "in" / "link");
  const auto files = gather_files({(folder_ / "in").string()});
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->members.size(), 3u);
  const std::string tar = (folder_ / "a.tar").string();
  ASSERT_TRUE(write_tar(files->members, tar).ok());
  const std::string bytes = read(tar);
  ASSERT_TRUE(write_tar(files->members, tar).ok());
  EXPECT_EQ(read(tar), bytes) << "the same files are the same blob";
  fs::create_directory(folder_ / "out");
  const Status st = data::unpack_tar(tar, (folder_ / "out").string(), 1 << 20, "a.tar");
  ASSERT_TRUE(st.ok()) << st;
  EXPECT_EQ(read(folder_ / "out/up/1.wav"), std::string(512, 'x'));
  EXPECT_EQ(read(folder_ / "out" / deep), "deep");
  EXPECT_TRUE(fs::exists(folder_ / "out/empty"));
}

TEST_F(TarWriter, NamesThatCannotBeKeptAreRefused) {
  const std::string path = put("x", "1");
  const std::string tar = (folder_ / "a.tar").string();
  EXPECT_FALSE(write_tar({{path, std::string(101, 'n')}}, tar).ok());
  EXPECT_TRUE(write_tar({{path, std::string(100, 'n')}}, tar).ok());
  EXPECT_FALSE(write_tar({{(folder_ / "gone").string(), "g"}}, tar).ok());
}

TEST_F(TarWriter, FilesAreGatheredAndTheirFormatTold) {
  const std::string a = put("a/1.csv", "1"), b = put("b/1.csv", "1"), c = put("b/2.csv", "1");
  EXPECT_FALSE(gather_files({a, b}).ok()) << "two of one name";
  EXPECT_FALSE(gather_files({a, (folder_ / "b").string()}).ok()) << "a folder among files";
  EXPECT_EQ(*format_by_name(*gather_files({a, c})), "csv");
  EXPECT_EQ(*format_by_name(*gather_files({(folder_ / "b").string()})), "csv");
  EXPECT_EQ(*format_by_name({"x.NPZ", "", {}}), "npz");
  EXPECT_EQ(*format_by_name({"train-images", "", {}}), "idx");
  EXPECT_FALSE(format_by_name({"x.zip", "", {}}).ok());
  fs::create_directory(folder_ / "none");
  EXPECT_FALSE(gather_files({(folder_ / "none").string()}).ok());
}

}  // namespace
}  // namespace odt::cli
