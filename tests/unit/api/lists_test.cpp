#include "api/lists.h"

#include <gtest/gtest.h>

namespace odt::api {
namespace {

// A store with `total` boards, whose pages have at most 3 items.
Result<store::Page<model::Board>> page_of(int total, const store::ListQuery& query) {
  store::Page<model::Board> page;
  const int first = query.page_token.empty() ? 0 : std::stoi(query.page_token);
  for (int i = first; i < total && i < first + 3; ++i) {
    model::Board board;
    board.name = std::to_string(i);
    board.core = i % 2 == 0 ? "even" : "odd";
    page.items.push_back(board);
  }
  if (first + 3 < total) page.next_token = std::to_string(first + 3);
  return page;
}

std::string walk(int total, std::uint32_t page_size, const std::string& filter) {
  std::string names, token;
  for (int pages = 0; pages < 100; ++pages) {
    const auto params = list_params(page_size, token, filter, *v1::Board::descriptor());
    EXPECT_TRUE(params.ok()) << params.status();
    const auto page = list_from<v1::Board, model::Board>(
        *params, [&](const auto& query) { return page_of(total, query); },
        [](const auto& board) { return to_proto(board); });
    EXPECT_TRUE(page.ok());
    EXPECT_LE(page->items.size(), page_size);
    for (const auto& board : page->items) names += board.name() + " ";
    token = page->next_token;
    if (token.empty()) return names;
  }
  return "endless";
}

TEST(Lists, PagesMeetWithoutGapOrOverlap) {
  for (std::uint32_t size : {1u, 2u, 3u, 4u, 7u, 10u})
    EXPECT_EQ(walk(10, size, ""), "0 1 2 3 4 5 6 7 8 9 ") << size;
  for (std::uint32_t size : {1u, 2u, 5u, 6u})
    EXPECT_EQ(walk(10, size, "core=odd"), "1 3 5 7 9 ") << size;
  EXPECT_EQ(walk(0, 5, ""), "");
}

TEST(Lists, ParametersAreChecked) {
  const auto& board = *v1::Board::descriptor();
  EXPECT_EQ(list_params(0, "", "", board)->page_size, 100u);
  EXPECT_TRUE(list_params(1000, "", "", board).ok());
  EXPECT_FALSE(list_params(1001, "", "", board).ok());
  EXPECT_FALSE(list_params(1, "rubbish", "", board).ok());
  EXPECT_FALSE(list_params(1, "-1.x", "", board).ok());
}

}  // namespace
}  // namespace odt::api
