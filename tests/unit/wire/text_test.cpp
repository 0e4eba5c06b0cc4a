#include "wire/text.h"

#include <gtest/gtest.h>

namespace odt::wire {
namespace {

TEST(Sanitise, KeepsPrintableText) { EXPECT_EQ(sanitise("board 7: ok é €"), "board 7: ok é €"); }

TEST(Sanitise, ReplacesWhatATerminalObeys) {
  EXPECT_EQ(sanitise("a\x1b[31mb\nc\rd\te"), "a?[31mb?c?d?e");
  EXPECT_EQ(sanitise(std::string_view("x\0y", 3)), "x?y");
  EXPECT_EQ(sanitise("\x7f"), "?");
  EXPECT_EQ(sanitise("\xc2\x9b"
                     "31m"),
            "??31m");  // C1 CSI
  EXPECT_EQ(sanitise("a\xe2\x80\xae"
                     "b"),
            "a???b");  // right-to-left override
}

TEST(Sanitise, ReplacesBrokenUtf8) {
  EXPECT_EQ(sanitise("\xc3"), "?");
  EXPECT_EQ(sanitise("\xff\xfe"), "??");
  EXPECT_EQ(sanitise("\xc0\xaf"), "??");            // overlong '/'
  EXPECT_EQ(sanitise("\xed\xa0\x80"), "???");       // surrogate
  EXPECT_EQ(sanitise("\xf5\x80\x80\x80"), "????");  // beyond Unicode
}

TEST(Sanitise, CutsAtWholeCharacters) {
  EXPECT_EQ(sanitise("abcdef", 3), "abc");
  EXPECT_EQ(sanitise("aéb", 2), "a");
  EXPECT_EQ(sanitise("aéb", 3), "aé");
}

}  // namespace
}  // namespace odt::wire
