#include "data/csv_reader.h"

#include <gmock/gmock.h>

#include <cmath>

#include "data/import.h"
#include "temp_files.h"

namespace odt::data::csv_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Read {
  Status status;
  std::vector<Row> rows;
  SourceInfo info;
  std::vector<std::string> labels() const {
    std::vector<std::string> all;
    for (const auto& r : rows) all.push_back(r.label);
    return all;
  }
};

Read read(const std::string& text, const CsvOptions& options = {}) {
  TempFiles files;
  Read out;
  auto source = open_csv(files.put("d.csv", text), "d.csv", options);
  if (!source.ok()) return {source.status(), {}, {}};
  out.rows = rows_of(**source, &out.status);
  out.info = (*source)->info();
  if (!out.status.ok()) return out;
  // A second pass gives the same.
  EXPECT_TRUE((*source)->rewind().ok());
  const auto again = rows_of(**source);
  EXPECT_EQ(again.size(), out.rows.size());
  for (std::size_t i = 0; i < again.size(); ++i) EXPECT_EQ(again[i].label, out.rows[i].label);
  return out;
}

std::string refusal(const std::string& text, const std::string& label = "") {
  CsvOptions options;
  options.label_column = label;
  const Read r = read(text, options);
  EXPECT_FALSE(r.status.ok()) << text;
  return std::string(r.status.message());
}

TEST(CsvReader, FindsHeaderAndTakesTheLastColumnAsLabel) {
  const Read r = read("x,y,kind\n1,2,b\n3,-4,a\n");
  ASSERT_TRUE(r.status.ok()) << r.status;
  EXPECT_THAT(r.info.value_names, ElementsAre("x", "y"));
  ASSERT_EQ(r.rows.size(), 2u);
  EXPECT_THAT(r.rows[1].values, ElementsAre(3, -4));
  EXPECT_THAT(r.labels(), ElementsAre("b", "a"));
  EXPECT_EQ(r.rows[1].name, "d.csv: line 3");
}

TEST(CsvReader, WorksWithoutHeaderAndWithAnyColumnAsLabel) {
  CsvOptions o;
  o.label_column = "0";
  const Read r = read("7,1.5,2\n9,2.5,3\n", o);
  ASSERT_TRUE(r.status.ok()) << r.status;
  EXPECT_THAT(r.info.value_names, ElementsAre("column 1", "column 2"));
  EXPECT_THAT(r.labels(), ElementsAre("7", "9"));
}

TEST(CsvReader, AHeaderWithoutANameForTheFirstColumn) {
  CsvOptions o;
  o.drop_columns = {"0"};
  const Read r = read(",x,kind\n0,1,a\n1,2,b\n", o);
  ASSERT_TRUE(r.status.ok()) << r.status;
  EXPECT_THAT(r.rows[0].values, ElementsAre(1));
}

TEST(CsvReader, LabelColumnByName) {
  CsvOptions o;
  o.label_column = "kind";
  const Read r = read("kind;x\nup;1\ndown;2\n", o);
  ASSERT_TRUE(r.status.ok()) << r.status;
  EXPECT_THAT(r.info.value_names, ElementsAre("x"));
}

TEST(CsvReader, QuotesCrlfBomAndEmptyLines) {
  const Read r = read("\xef\xbb\xbfx,l\r\n\"1\",\"a, \"\"b\"\"\"\r\n\r\n2,c");
  ASSERT_TRUE(r.status.ok()) << r.status;
  EXPECT_THAT(r.labels(), ElementsAre("a, \"b\"", "c"));
  EXPECT_THAT(r.info.value_names, ElementsAre("x"));
  EXPECT_THAT(read("x,l\n1,\"two\nlines\"\n2,b\n").labels(), ElementsAre("two\nlines", "b"));
}

TEST(CsvReader, EveryDelimiterAndDecimalComma) {
  EXPECT_THAT(read("1,5;-2,25;a\n3;4,5e1;b\n").rows[0].values, ElementsAre(1.5f, -2.25f));
  EXPECT_THAT(read("1,5;-2,25;a\n3;4,5e1;b\n").rows[1].values, ElementsAre(3, 45));
  EXPECT_THAT(read("1\t2,5\ta\n").rows[0].values, ElementsAre(1, 2.5f));
  EXPECT_THAT(read("x,\"a;b\",l\n1,2,a\n").rows[0].values, ElementsAre(1, 2));
  EXPECT_THAT(refusal("1;a\n1.000,5;a\n"), HasSubstr("'1.000,5' is not a number"));
}

TEST(CsvReader, RolesOfColumns) {
  CsvOptions o;
  o.drop_columns = {"time", "note"};
  o.group_column = "run";
  o.target_columns = {"y2", "y1"};
  const Read r = read("time,x,run,y1,note,y2\n12:00,1,r1,0.5,hi,7\n12:01,2,r2,0.25,,8\n", o);
  ASSERT_TRUE(r.status.ok()) << r.status;
  EXPECT_THAT(r.rows[0].values, ElementsAre(1));
  EXPECT_THAT(r.rows[0].targets, ElementsAre(7, 0.5f));
  EXPECT_EQ(r.rows[1].group, "r2");
  EXPECT_EQ(r.rows[1].label, "");
  EXPECT_THAT(r.info.target_names, ElementsAre("y2", "y1"));
  o.drop_columns = {"time", "y1"};
  EXPECT_THAT(std::string(read("time,x,run,y1,y2\n1,1,1,1,1\n", o).status.message()),
              HasSubstr("column 'y1' is asked for twice"));
  o = {};
  o.label_column = "-";
  EXPECT_THAT(read("1,2\n3,4\n", o).rows[1].values, ElementsAre(3, 4)) << "no labels";
  o = {};
  o.drop_columns = {"z"};
  EXPECT_THAT(std::string(read("x,l\n1,a\n", o).status.message()),
              HasSubstr("dropped column 'z' is neither a name in the first line nor a number"));
}

TEST(CsvReader, MissingCells) {
  CsvOptions o;
  o.missing_allowed = true;
  const Read r = read("x,y,l\n1,,a\nNA,2,b\n?,NaN,b\n", o);
  ASSERT_TRUE(r.status.ok()) << r.status;
  EXPECT_TRUE(std::isnan(r.rows[0].values[1]));
  EXPECT_TRUE(std::isnan(r.rows[1].values[0]));
  EXPECT_TRUE(std::isnan(r.rows[2].values[1]));
  EXPECT_THAT(refusal("x,y,l\n1,2,a\n1,NA,b\n"),
              HasSubstr("line 3, column 1 (y): 'NA' stands for no value; a number is expected (or "
                        "import with --missing drop, mean or zero)"));
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

TEST(CsvReader, LabelColumnThatIsNotThere) {
  EXPECT_THAT(refusal("1,a\n", "2"), HasSubstr("label column '2'"));
  EXPECT_THAT(refusal("1,a\n", "kind"), HasSubstr("label column 'kind'"));
}

TEST(CsvReader, EmptyAndUnfinishedFiles) {
  EXPECT_THAT(refusal(""), HasSubstr("is empty"));
  EXPECT_THAT(refusal("x,l\n"), HasSubstr("no rows"));
  EXPECT_THAT(refusal("1,\"a\n"), HasSubstr("has no end"));
  EXPECT_THAT(refusal("1\n2\n"), HasSubstr("one column"));
  EXPECT_THAT(refusal("\xff\xfe"
                      "1,a"),
              HasSubstr("UTF-16"));
  EXPECT_THAT(refusal("1," + std::string(70000, 'x') + "\n"), HasSubstr("64 KiB"));
  EXPECT_THAT(refusal(std::string(70001, ',')), HasSubstr("more than 70000 cells"));
}

class CsvImport : public testing::Test {
 protected:
  Result<Dataset> import(const std::string& text) {
    request_.format = "csv";
    request_.data_path = files_.put("c.csv", text);
    return import_dataset(request_, [](auto, const auto&) {});
  }
  TempFiles files_;
  ImportRequest request_;
};

TEST_F(CsvImport, NumericClassesAreSortedAsNumbers) {
  EXPECT_THAT(import("1,10\n2,9\n3,100\n")->class_names, ElementsAre("9", "10", "100"));
}

// What imports gave before they were read in two passes: the shuffle alone decides.
TEST_F(CsvImport, BytesOfAPlainImportStayWhatTheyWere) {
  std::string text = "a,b,kind\n";
  for (int i = 0; i < 40; ++i)
    text += std::to_string(i * 7 % 40) + "," + std::to_string(i - 20) +
            (i % 3 == 0 ? ",up\n" : ",down\n");
  request_.seed = 3;
  request_.skip = 2;
  request_.train = 20;
  request_.heldout = 5;
  request_.test = 6;
  EXPECT_EQ(sha256(encode_dataset(*import(text))).hex(),
            "246353905479b4c352ed64c540fabc57c166667e984e8542e8560f01ac661cc7");
}

TEST_F(CsvImport, StratifiedWhereAsked) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += std::to_string(i) + (i % 10 == 0 ? ",a\n" : ",b\n");
  request_.stratify = true;
  const auto d = import(text);
  ASSERT_TRUE(d.ok()) << d.status();
  std::uint32_t of_a = 0;
  for (std::uint32_t i = 0; i < d->counts[0]; ++i) of_a += d->labels[i] == 0;
  EXPECT_EQ(of_a, 16u);
}

TEST_F(CsvImport, AFolderAndAnOwnTestSet) {
  request_.format = "";
  files_.put("train/b.csv", "x,l\n3,a\n4,b\n");
  files_.put("train/a.csv", "x,l\n1,a\n2,b\n");
  files_.put("train/notes.txt", "no");
  request_.data_path = files_.path("train");
  request_.test_data_path = files_.put("test.csv", "x,l\n9,b\n");
  request_.train = 4;
  request_.test = 1;
  auto d = import_dataset(request_, [](auto, const auto&) {});
  ASSERT_TRUE(d.ok()) << d.status();
  for (std::uint32_t i = 0; i < 4; ++i)
    EXPECT_EQ(d->value(i, 0), static_cast<float>(d->source_index[i] + 1));
  EXPECT_EQ(d->value(4, 0), 9);
  files_.put("train/c.csv", "y,l\n9,b\n");
  d = import_dataset(request_, [](auto, const auto&) {});
  EXPECT_THAT(std::string(d.status().message()), HasSubstr("value 0 is 'y'"));
  request_.test_data_path = files_.put("test.csv", "x,z,l\n9,9,b\n");
  d = import_dataset(request_, [](auto, const auto&) {});
  EXPECT_THAT(std::string(d.status().message()), HasSubstr("the training data has [1]"));
}

TEST_F(CsvImport, TheFormatIsGuessedByTheName) {
  EXPECT_EQ(*guess_format(files_.put("X.CSV", "1,a")), "csv");
  EXPECT_EQ(*guess_format(files_.put("x.npz", "")), "npz");
  EXPECT_EQ(*guess_format(files_.put("train-images-idx3-ubyte.gz", "")), "idx");
  EXPECT_THAT(std::string(guess_format(files_.put("a.bin", "")).status().message()),
              HasSubstr("a.bin: the name does not tell the format; say --format, one of idx, csv"));
}

}  // namespace
}  // namespace odt::data::csv_test
