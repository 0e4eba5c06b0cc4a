#include "data/tar.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <cstring>
#include <filesystem>

#include "data/source_parts.h"
#include "temp_files.h"

namespace odt::data::tar_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string entry(const std::string& name, const std::string& content, char type = '0') {
  std::string h(512, '\0');
  std::memcpy(h.data(), name.data(), std::min<std::size_t>(name.size(), 100));
  std::snprintf(h.data() + 124, 12, "%011o", static_cast<unsigned>(content.size()));
  h[156] = type;
  std::memcpy(h.data() + 257, "ustar", 6);
  std::memset(h.data() + 148, ' ', 8);
  unsigned sum = 0;
  for (char c : h) sum += static_cast<unsigned char>(c);
  std::snprintf(h.data() + 148, 8, "%06o", sum);
  return h + content + std::string((512 - content.size() % 512) % 512, '\0');
}

const std::string kEnd(1024, '\0');

class Tar : public testing::Test {
 protected:
  Status unpack(const std::string& archive, std::uint64_t limit = 1 << 20) {
    std::filesystem::remove_all(out());
    std::filesystem::create_directory(out());
    return unpack_tar(files_.put("a.tar", archive), out(), limit, "a.tar");
  }
  std::string refusal(const std::string& archive, std::uint64_t limit = 1 << 20) {
    const Status st = unpack(archive, limit);
    EXPECT_FALSE(st.ok());
    return std::string(st.message());
  }
  std::string out() const { return files_.path("out"); }
  TempFiles files_;
};

TEST_F(Tar, FilesAndFolders) {
  ASSERT_TRUE(unpack(entry("./up/", "", '5') + entry("./up/1.wav", "hello") +
                     entry("down/2.wav", std::string(1000, 'x')) + kEnd)
                  .ok());
  EXPECT_THAT(*files_below(out(), {}), ElementsAre("down/2.wav", "up/1.wav"));
  EXPECT_EQ(*read_file(out() + "/up/1.wav", 100), "hello");
  EXPECT_TRUE(looks_like_tar(files_.path("a.tar")));
  EXPECT_FALSE(looks_like_tar(files_.put("b", "1,2,a\n")));
}

TEST_F(Tar, LongNamesOfGnuAndPax) {
  const std::string name = std::string(120, 'n') + ".csv";
  ASSERT_TRUE(unpack(entry("././@LongLink", name + std::string(1, '\0'), 'L') +
                     entry(name.substr(0, 100), "1") + kEnd)
                  .ok());
  EXPECT_THAT(*files_below(out(), {}), ElementsAre(name));
  ASSERT_TRUE(
      unpack(entry("PaxHeader", "134 path=" + name + "\n", 'x') + entry("short", "1") + kEnd).ok());
  EXPECT_THAT(*files_below(out(), {}), ElementsAre(name));
}

TEST_F(Tar, NothingLeavesTheFolder) {
  EXPECT_THAT(refusal(entry("../evil", "x") + kEnd), HasSubstr("'..'"));
  EXPECT_THAT(refusal(entry("a/../../evil", "x") + kEnd), HasSubstr("'..'"));
  EXPECT_THAT(refusal(entry("/etc/evil", "x") + kEnd), HasSubstr("absolute"));
  EXPECT_THAT(refusal(entry("x", "../evil\0", 'L') + entry("y", "x") + kEnd), HasSubstr("'..'"));
  EXPECT_THAT(refusal(entry("link", "", '2') + kEnd), HasSubstr("neither a file nor a folder"));
  EXPECT_THAT(refusal(entry("hard", "", '1') + kEnd), HasSubstr("links are not taken"));
  EXPECT_THAT(refusal(entry("tty", "", '3') + kEnd), HasSubstr("neither"));
  EXPECT_FALSE(std::filesystem::exists(files_.path("evil")));
}

TEST_F(Tar, DamageAndLimits) {
  const std::string good = entry("a", "hello");
  EXPECT_THAT(refusal(good), HasSubstr("truncated"));
  EXPECT_THAT(refusal(good.substr(0, 600)), HasSubstr("truncated inside a file"));
  std::string bad = good + kEnd;
  bad[3] = 'x';
  EXPECT_THAT(refusal(bad), HasSubstr("a header is damaged"));
  EXPECT_THAT(refusal(good + good + kEnd), HasSubstr("a name comes twice"));
  EXPECT_THAT(refusal(good + kEnd, 4), HasSubstr("more than 4 bytes"));
  EXPECT_TRUE(unpack(good + kEnd, 5).ok());
  EXPECT_THAT(refusal(entry("a", "x") + entry("a/b", "x") + kEnd), HasSubstr("cannot"));
}

}  // namespace
}  // namespace odt::data::tar_test
