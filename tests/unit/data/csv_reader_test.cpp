#include "data/csv_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace odt::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const std::string& text, const std::string& label = "") {
  const auto t = read_csv(text, "d.csv", label);
  EXPECT_FALSE(t.ok());
  return std::string(t.status().message());
}

TEST(CsvReader, FindsHeaderAndTakesTheLastColumnAsLabel) {
  const auto t = read_csv("x,y,kind\n1,2,b\n3,-4,a\n", "d.csv", "");
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_THAT(t->columns, ElementsAre("x", "y"));
  EXPECT_THAT(t->values, ElementsAre(1, 2, 3, -4));
  EXPECT_THAT(t->class_names, ElementsAre("a", "b"));
  EXPECT_THAT(t->labels, ElementsAre(1, 0));
  EXPECT_TRUE(t->integral);
}

TEST(CsvReader, WorksWithoutHeaderAndWithAnyColumnAsLabel) {
  const auto t = read_csv("7,1.5,2\n9,2.5,3\n", "d.csv", "0");
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_THAT(t->columns, ElementsAre("column 1", "column 2"));
  EXPECT_FALSE(t->integral);
  EXPECT_THAT(t->class_names, ElementsAre("7", "9"));
}

TEST(CsvReader, LabelColumnByName) {
  const auto t = read_csv("kind;x\nup;1\ndown;2\n", "d.csv", "kind");
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_THAT(t->columns, ElementsAre("x"));
}

TEST(CsvReader, NumericClassesAreSortedAsNumbers) {
  const auto t = read_csv("1,10\n2,9\n3,100\n", "d.csv", "");
  EXPECT_THAT(t->class_names, ElementsAre("9", "10", "100"));
}

TEST(CsvReader, QuotesCrlfAndBom) {
  const auto t = read_csv("\xef\xbb\xbfx,l\r\n\"1\",\"a, \"\"b\"\"\"\r\n2,c\r\n", "d.csv", "");
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_THAT(t->class_names, ElementsAre("a, \"b\"", "c"));
}

TEST(CsvReader, TextCellIsNamedByLineAndColumn) {
  EXPECT_THAT(refusal("x,temp,l\n1,2,a\n\n3,warm,b\n"),
              HasSubstr("d.csv: line 4, column 1 (temp): 'warm' is not a number"));
}

TEST(CsvReader, EmptyCellInfinityRaggedLineAndEmptyLabelAreNamed) {
  EXPECT_THAT(refusal("1,2,a\n1,,b\n"),
              HasSubstr("line 2, column 1 (column 1): the cell is empty"));
  EXPECT_THAT(refusal("1,2,a\n1,inf,b\n"), HasSubstr("not a finite number"));
  EXPECT_THAT(refusal("1,2,a\n1,b\n"), HasSubstr("line 2: 2 cells; expected 3"));
  EXPECT_THAT(refusal("1,2,a\n1,2,\n"), HasSubstr("line 2, column 2: the label is empty"));
}

TEST(CsvReader, ControlCharactersOfACellStayOutOfTheMessage) {
  EXPECT_EQ(refusal("1,2,a\n1,\x1b[2J,b\n").find('\x1b'), std::string::npos);
}

TEST(CsvReader, LimitsOfTheLabelColumn) {
  EXPECT_THAT(refusal("1,a\n2,a\n"), HasSubstr("at least 2 classes"));
  std::string many;
  for (int i = 0; i < 129; ++i) many += "1," + std::to_string(i) + "\n";
  EXPECT_THAT(refusal(many), HasSubstr("more than 128"));
  many.erase(many.rfind("1,128"));
  EXPECT_TRUE(read_csv(many, "d.csv", "").ok());
  EXPECT_THAT(refusal("1,a\n", "2"), HasSubstr("label column '2'"));
  EXPECT_THAT(refusal("1,a\n", "kind"), HasSubstr("label column 'kind'"));
}

TEST(CsvReader, EmptyAndUnfinishedFiles) {
  EXPECT_THAT(refusal(""), HasSubstr("is empty"));
  EXPECT_THAT(refusal("x,l\n"), HasSubstr("no rows"));
  EXPECT_THAT(refusal("1,\"a\n"), HasSubstr("has no end"));
  EXPECT_THAT(refusal("1\n2\n"), HasSubstr("one column"));
}

}  // namespace
}  // namespace odt::data
