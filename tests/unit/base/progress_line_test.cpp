#include "base/progress_line.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/std_output.h"

namespace odt {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(FitColumns, LeavesTheLastColumnFree) {
  EXPECT_EQ(fit_columns("12345678", 9), "12345678");
  EXPECT_EQ(fit_columns("12345678", 8), "1234567");
  EXPECT_EQ(fit_columns("123456789012345678", 14), "12345678901..");
  EXPECT_EQ(fit_columns("12345678", 1), "");
  EXPECT_EQ(fit_columns("12345678", 0), "");
  EXPECT_EQ(fit_columns("", 0), "");
}

TEST(FitColumns, CountsCharactersAndCutsNone) {
  const std::string umlauts = "\xC3\xA4\xC3\xB6\xC3\xBC";
  EXPECT_EQ(fit_columns(umlauts, 4), umlauts);
  EXPECT_EQ(fit_columns(umlauts, 3), "\xC3\xA4\xC3\xB6");
}

TEST(ProgressBar, ShrinksWithTheTerminal) {
  EXPECT_EQ(progress_bar(500, "half", 80), "[############............]  50 %  half");
  EXPECT_EQ(progress_bar(1500, "all", 50), "[##########] 100 %  all");
  EXPECT_EQ(progress_bar(7, "begun", 30), "  0 %  begun");
  for (std::size_t columns = 0; columns < 100; ++columns)
    EXPECT_LE(progress_bar(990, std::string(90, 'x'), columns).size(),
              columns > 0 ? columns - 1 : 0);
}

// A line with a terminal of this width, or none (0).
struct Line {
  explicit Line(std::size_t width, ProgressLine::Elsewhere elsewhere = {})
      : line(out, width > 0, elsewhere) {
    line.columns = [width] { return width; };
    line.now = [this] { return time; };
  }
  std::ostringstream out;
  ProgressLine::Clock::time_point time{};
  ProgressLine line;
};

TEST(ProgressLine, IsWrittenOverAndGoneAtTheEnd) {
  Line l(12);
  l.line.show("short");
  l.line.show("much longer than the terminal");
  EXPECT_EQ(l.out.str(), "\r\x1b[Kshort\r\x1b[Kmuch long..");
  l.line.end();
  l.line.end();
  EXPECT_TRUE(l.out.str().ends_with("..\r\x1b[K")) << l.out.str();
}

TEST(ProgressLine, ElsewhereQuickThingsSayNothing) {
  Line l(0);
  l.line.show_bar(0, "begins");
  l.time += milliseconds(4999);
  l.line.show_bar(900, "goes on");
  l.line.end();
  EXPECT_EQ(l.out.str(), "");
}

TEST(ProgressLine, ElsewhereLongThingsSayItRarely) {
  Line l(0);
  for (int i = 0; i < 120; ++i, l.time += milliseconds(100)) l.line.show_bar(i, "step");
  EXPECT_EQ(l.out.str(), "5 %  step\n10 %  step\n");
}

TEST(ProgressLine, FirstAndLastAreSaidWhereTheySaySomething) {
  Line l(0, ProgressLine::Elsewhere::kFirstToLast);
  for (int i = 1; i <= 8; ++i, l.time += seconds(1))
    l.line.show_bar(125 * i, "epoch " + std::to_string(i));
  EXPECT_EQ(l.out.str(), "epoch 1\nepoch 4\nepoch 7\n");
  l.line.show_bar(990, "measuring");
  l.line.end();
  l.line.end();
  EXPECT_EQ(l.out.str(), "epoch 1\nepoch 4\nepoch 7\nepoch 8\nmeasuring\n");
}

TEST(FinishOutput, SaysWhatCouldNotBeWritten) {
  std::ostringstream out, err;
  EXPECT_EQ(finish_output("x", 0, out, err), 0);
  EXPECT_EQ(err.str(), "");
  out.setstate(std::ios::badbit);
  EXPECT_EQ(finish_output("x", 0, out, err), 1);
  EXPECT_EQ(err.str(), "x: the output could not be written whole (disk full or closed?)\n");
  EXPECT_EQ(finish_output("x", 3, out, err), 3);
}

}  // namespace
}  // namespace odt
