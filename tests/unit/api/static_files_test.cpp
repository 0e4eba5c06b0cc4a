#include "api/static_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "fakes.h"

namespace odt::api {
namespace {

class StaticFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(dir.path + "/web/assets");
    write("web/index.html", "<html>");
    write("web/assets/index-B3x9kQ2z.js", "code");
    write("web/assets/index-B3x9kQ2z.js.gz", "packed");
    write("web/favicon.ico", "icon");
    write("secret.txt", "secret");
    std::filesystem::create_symlink(dir.path + "/secret.txt", dir.path + "/web/link.txt");
  }
  void write(const std::string& name, const std::string& content) {
    std::ofstream(dir.path + "/" + name) << content;
  }
  test::TempDir dir;
  StaticFiles files{dir.path + "/web"};
};

TEST_F(StaticFilesTest, IndexIsRevalidatedAndHashedNamesAreKept) {
  const auto index = files.find("/", false);
  ASSERT_TRUE(index);
  EXPECT_EQ(index->content, "<html>");
  EXPECT_EQ(index->content_type, "text/html; charset=utf-8");
  EXPECT_FALSE(index->immutable);
  const auto script = files.find("/assets/index-B3x9kQ2z.js", false);
  ASSERT_TRUE(script);
  EXPECT_TRUE(script->immutable);
  EXPECT_FALSE(script->gzip);
  EXPECT_NE(script->etag, index->etag);
}

TEST_F(StaticFilesTest, GzipGoesOutWhereItIsTaken) {
  const auto script = files.find("/assets/index-B3x9kQ2z.js", true);
  ASSERT_TRUE(script);
  EXPECT_TRUE(script->gzip);
  EXPECT_EQ(script->content, "packed");
  EXPECT_EQ(script->content_type, "text/javascript; charset=utf-8");
  EXPECT_FALSE(files.find("/favicon.ico", true)->gzip);
}

TEST_F(StaticFilesTest, RoutesOfTheDashboardAreItsIndex) {
  EXPECT_EQ(files.find("/boards/0102", false)->content, "<html>");
  EXPECT_FALSE(files.find("/assets/gone.js", false));
}

TEST_F(StaticFilesTest, NothingOutsideIsRead) {
  EXPECT_FALSE(files.find("/../secret.txt", false));
  EXPECT_FALSE(files.find("/link.txt", false));
  EXPECT_FALSE(files.find("//etc/passwd.txt", false));
}

TEST_F(StaticFilesTest, WithoutADashboardThereIsAPageThatSaysSo) {
  const StaticFiles none(dir.path + "/nowhere");
  EXPECT_FALSE(none.present());
  EXPECT_FALSE(none.find("/", false));
  EXPECT_NE(page_without_dashboard("/x").find("npm run build"), std::string::npos);
}

}  // namespace
}  // namespace odt::api
