#include "cli/text.h"

#include <gtest/gtest.h>

namespace odt::cli {
namespace {

TEST(Clean, KeepsWhatATerminalMayShow) {
  EXPECT_EQ(clean("board-1 \xC3\xA9t\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"),
            "board-1 \xC3\xA9t\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80");
}

TEST(Clean, TakesAwayControlCharactersAndInvalidUtf8) {
  EXPECT_EQ(clean("\x1b[31mred\n"), "?[31mred?");
  EXPECT_EQ(clean(std::string("a\0b\x7F", 4)), "a?b?");
  EXPECT_EQ(clean("\xC2\x9B"), "??");                 // CSI as one character
  EXPECT_EQ(clean("\xE2\x80\xAE"), "???");            // writes backwards
  EXPECT_EQ(clean("\xFF\xC3"), "??");                 // no UTF-8, cut off
  EXPECT_EQ(clean("\xC0\xAF\xE0\x80\xAF"), "?????");  // overlong
  EXPECT_EQ(clean("\xED\xA0\x80"), "???");            // surrogate
  EXPECT_EQ(clean("\xF5\x80\x80\x80"), "????");       // past the last code point
}

TEST(Utf8, IsTold) {
  for (const char* sound : {"", "a\x1b\n", "\xC3\xA9", "\xE2\x80\xAE", "\xF0\x9F\x98\x80"})
    EXPECT_TRUE(is_utf8(sound)) << sound;
  for (const char* broken :
       {"\xFF", "\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF5\x80\x80\x80", "a\x80"})
    EXPECT_FALSE(is_utf8(broken)) << clean(broken);
}

TEST(Figures, ReadWell) {
  EXPECT_EQ(percent(1, 3), "33.3 %");
  EXPECT_EQ(percent(0, 0), "-");
  EXPECT_EQ(size_text(1023), "1023 B");
  EXPECT_EQ(size_text(1536), "1.5 KB");
  EXPECT_EQ(size_text(3ULL << 30), "3.0 GB");
  EXPECT_EQ(duration_text(999), "999 us");
  EXPECT_EQ(duration_text(850'000), "850 ms");
  EXPECT_EQ(duration_text(12'340'000), "12.3 s");
  EXPECT_EQ(duration_text(245'000'000), "4 min 05 s");
  EXPECT_EQ(ago_text(0, 5), "never");
  EXPECT_EQ(ago_text(1'000'000, 4'000'000), "3 s ago");
  EXPECT_EQ(ago_text(9'000'000, 4'000'000), "0 s ago");  // clocks differ
  EXPECT_EQ(loss_text(100, -2, 5), "5");
  EXPECT_EQ(loss_text(100, -2, 0), "-");
  EXPECT_EQ(join_numbers(std::vector<int>{14, 14}, "x"), "14x14");
}

TEST(EditDistance, CountsChangesAndSwaps) {
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("board", "bord"), 1u);
  EXPECT_EQ(edit_distance("trian", "train"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(NearWords, GivesTheNearestFirstAndNothingFarOff) {
  const std::vector<std::string> words = {"train", "board", "port", "model"};
  EXPECT_EQ(near_words("trian", words), std::vector<std::string>{"train"});
  EXPECT_EQ(near_words("boa", words), std::vector<std::string>{"board"});
  EXPECT_TRUE(near_words("xyzzy", words).empty());
  EXPECT_EQ(did_you_mean("modle", words), " Did you mean 'model'?");
  EXPECT_EQ(did_you_mean("xyzzy", words), "");
}

TEST(Table, AlignsByWhatIsSeen) {
  Table table({"A", "B"});
  table.add({"\xC3\xA9t\xC3\xA9", "x"});
  table.add({"longer", ""});
  EXPECT_EQ(table.text(), "A       B\n\xC3\xA9t\xC3\xA9     x\nlonger\n");
}

}  // namespace
}  // namespace odt::cli
