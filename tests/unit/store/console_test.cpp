#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "store/console_book.h"
#include "store_fixture.h"

// What boards print: kept in order, found again, bounded, there after a restart.
namespace odt::store {
namespace {

BoardUid board(int number) {
  BoardUid uid;
  uid.bytes = {9, 9, 9, 9, 9, 9, 9, static_cast<std::uint8_t>(number)};
  return uid;
}

class ConsoleBookTest : public testing::Test {
 protected:
  ConsoleBookTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~ConsoleBookTest() override { std::filesystem::remove_all(folder_); }

  void open(ConsoleLimits limits = {}) {
    book_.reset();
    warning_.clear();
    book_ = ConsoleBook::open(path(), clock_, &warning_, limits);
  }
  std::string path() const { return folder_ + "/console.db"; }
  void say(int number, const std::string& text, int level = 2,
           model::ConsoleSource source = model::ConsoleSource::kLog) {
    book_->add(board(number), source, level, text);
  }
  ConsolePage list(const ConsoleQuery& query = {}) {
    std::promise<Result<ConsolePage>> answer;
    book_->list(query, [&](Result<ConsolePage> page) { answer.set_value(std::move(page)); });
    auto page = answer.get_future().get();
    EXPECT_TRUE(page.ok()) << page.status();
    return page.ok() ? *page : ConsolePage();
  }
  static std::vector<std::string> texts(const ConsolePage& page) {
    std::vector<std::string> out;
    for (const auto& line : page.lines) out.push_back(line.text);
    return out;
  }
  using Texts = std::vector<std::string>;

  SystemClock clock_;
  std::string folder_ = testing::TempDir() + "console-" +
                        testing::UnitTest::GetInstance()->current_test_info()->name() + "-" +
                        std::to_string(::getpid());
  std::string warning_;
  std::unique_ptr<ConsoleBook> book_;
};

TEST_F(ConsoleBookTest, LinesComeInOrderMergedAndByBoard) {
  open();
  say(1, "one");
  say(2, "two", 3, model::ConsoleSource::kRaw);
  say(1, "three", 4);
  const ConsolePage all = list();
  EXPECT_EQ(texts(all), (Texts{"one", "two", "three"}));
  EXPECT_EQ(all.lines[1].board_uid, board(2));
  EXPECT_EQ(all.lines[1].source, model::ConsoleSource::kRaw);
  EXPECT_EQ(all.lines[1].level, 3);
  EXPECT_GT(all.lines[0].time_us, 0);
  EXPECT_EQ(all.newest_seq, 3u);
  EXPECT_EQ(all.kept, 3u);
  ConsoleQuery query;
  query.boards = {board(1)};
  EXPECT_EQ(texts(list(query)), (Texts{"one", "three"}));
  EXPECT_EQ(list(query).kept, 2u);
  query.least_level = 4;
  EXPECT_EQ(texts(list(query)), Texts{"three"});
  query.boards = {board(7)};
  EXPECT_TRUE(list(query).lines.empty());
}

TEST_F(ConsoleBookTest, PagesGoBothWays) {
  open();
  for (int i = 1; i <= 10; ++i) say(1, std::to_string(i));
  ConsoleQuery query;
  query.page_size = 4;
  ConsolePage page = list(query);
  EXPECT_EQ(texts(page), (Texts{"7", "8", "9", "10"}));
  EXPECT_TRUE(page.more);
  query.before_seq = 5;
  page = list(query);
  EXPECT_EQ(texts(page), (Texts{"1", "2", "3", "4"}));
  EXPECT_FALSE(page.more);
  query.before_seq = 0;
  query.after_seq = 3;
  page = list(query);
  EXPECT_EQ(texts(page), (Texts{"4", "5", "6", "7"}));
  EXPECT_TRUE(page.more);
  query.after_seq = 10;
  EXPECT_TRUE(list(query).lines.empty());
  query.after_seq = 0;
  query.begin = true;
  EXPECT_EQ(texts(list(query)), (Texts{"1", "2", "3", "4"}));
}

TEST_F(ConsoleBookTest, WordsAreFoundInAnyCaseAndLeftOut) {
  open();
  say(1, "HardFault at 0x1234");
  say(1, "window 12: class 1 (100%)");
  say(1, "hardfault again");
  ConsoleQuery query;
  query.with = {"HARDFAULT"};
  EXPECT_EQ(texts(list(query)), (Texts{"HardFault at 0x1234", "hardfault again"}));
  query.without = {"again"};
  EXPECT_EQ(texts(list(query)), Texts{"HardFault at 0x1234"});
  query = {};
  query.with = {"%", "1)"};  // no wildcard
  EXPECT_TRUE(list(query).lines.empty());
  query.with = {"100%)"};
  EXPECT_EQ(list(query).lines.size(), 1u);
}

TEST_F(ConsoleBookTest, ABoardThatTalksMuchPushesOutItsOwnLinesOnly) {
  open({80, 1000, 20'000});
  say(2, "quiet");
  for (int i = 0; i < 500; ++i) {
    say(1, std::to_string(i));
    if (i % 50 == 0) list();
  }
  ConsoleQuery query;
  query.boards = {board(1)};
  query.page_size = 1000;
  const ConsolePage page = list(query);
  EXPECT_GE(page.lines.size(), 80u);
  EXPECT_LE(page.lines.size(), 90u);
  EXPECT_EQ(page.kept, page.lines.size());
  EXPECT_EQ(page.lines.back().text, "499");
  query.boards = {board(2)};
  EXPECT_EQ(texts(list(query)), Texts{"quiet"});
}

TEST_F(ConsoleBookTest, AllBoardsTogetherAreBounded) {
  open({80, 160, 20'000});
  for (int i = 0; i < 50; ++i)
    for (int b = 0; b < 10; ++b) say(b, std::to_string(i));
  ConsoleQuery query;
  query.page_size = 1000;
  const ConsolePage page = list(query);
  EXPECT_GE(page.lines.size(), 160u);
  EXPECT_LE(page.lines.size(), 180u);
  EXPECT_EQ(page.kept, page.lines.size());
}

TEST_F(ConsoleBookTest, WhatComesTooFastIsLostAndCounted) {
  open({10'000, 100'000, 100});
  for (int i = 0; i < 50'000; ++i) say(1, "flood");
  ConsoleQuery query;
  query.page_size = 100'000;
  const ConsolePage page = list(query);
  EXPECT_GE(page.lines.size(), 100u);
  EXPECT_EQ(page.newest_seq + page.lost, 50'000u);
}

TEST_F(ConsoleBookTest, LinesOutliveARestartAndNumbersGoOn) {
  open();
  say(1, "before");
  const std::uint64_t epoch = list().epoch;
  open();
  EXPECT_TRUE(warning_.empty()) << warning_;
  say(1, "after");
  const ConsolePage page = list();
  EXPECT_EQ(texts(page), (Texts{"before", "after"}));
  EXPECT_EQ(page.epoch, epoch);
  EXPECT_EQ(page.lines[1].seq, 2u);
  book_->stop();
  bool answered = false;
  book_->list(
      {}, [&](const Result<ConsolePage>& late) { answered = absl::IsUnavailable(late.status()); });
  EXPECT_TRUE(answered);
}

TEST_F(ConsoleBookTest, ADamagedFileIsSetAside) {
  std::ofstream(path()) << std::string(8192, 'x');
  open();
  EXPECT_NE(warning_.find("set aside"), std::string::npos) << warning_;
  say(1, "alive");
  EXPECT_EQ(texts(list()), Texts{"alive"});
  int damaged = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    damaged += entry.path().string().find(".damaged-") != std::string::npos;
  EXPECT_EQ(damaged, 1);
}

TEST_F(ConsoleBookTest, WhereNothingCanBeWrittenMemoryServes) {
  std::filesystem::create_directories(path());  // a folder in its place
  open();
  EXPECT_NE(warning_.find("memory"), std::string::npos) << warning_;
  say(1, "still");
  EXPECT_EQ(texts(list()), Texts{"still"});
}

}  // namespace
}  // namespace odt::store
