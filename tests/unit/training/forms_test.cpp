// Which form of a partly trained model a board gets: samples, frozen outputs, the tail alone.
#include <gtest/gtest.h>

#include "training/ram_fit.h"

namespace odt::training {
namespace {

// 1000 input values, a frozen part of 30 KB, 100 frozen outputs.
model::Model partial() {
  model::Model m;
  m.name = "part";
  m.image_bytes = 40000;
  m.input_shape = {1000};
  m.n_classes = 4;
  m.trainable_layers = 2;
  m.ram = {4000, 8000, 3000, 3400, 4200, 5800, 3000};
  m.tail.image = Hash{{1}};
  m.tail.image_bytes = 10000;
  m.tail.sample_bytes = 100;
  m.tail.ram = {4000, 8000, 1000, 1200, 1600, 2400, 1600};
  return m;
}

model::Board board(std::uint32_t ram, std::uint32_t caps = 0x7FFF) {
  model::Board b;
  b.name = "board";
  b.ram_bytes = ram;
  b.caps = caps;
  b.max_batch = 64;
  return b;
}

model::HyperParams fixed_size() {
  model::HyperParams asked;
  asked.k = 8;
  asked.batch = 8;
  return asked;
}

constexpr SampleCounts kCounts{100, 20, false, false, true};

TEST(Forms, TheRoomDecides) {
  struct Step {
    std::uint32_t ram;
    Form form;
    bool streamed, host;
  };
  const model::Model m = partial();
  const Step steps[] = {{200000, Form::kRaw, false, false}, {70000, Form::kFrozen, false, false},
                        {62500, Form::kRaw, true, false},   {58000, Form::kFrozen, true, false},
                        {52000, Form::kFrozen, true, true}, {40000, Form::kTail, false, false},
                        {22000, Form::kTail, true, false}};
  for (const auto& step : steps) {
    SCOPED_TRACE(step.ram);
    const auto places = placements(m, board(step.ram), kCounts, fixed_size(), 8);
    ASSERT_TRUE(places.ok()) << places.status();
    EXPECT_EQ(places->front().form, step.form);
    EXPECT_EQ(places->front().streamed, step.streamed);
    EXPECT_EQ(places->front().best_on_host, step.host);
    EXPECT_LE(ram_need(m, kCounts, places->front()).total(), step.ram);
    const auto text = placement_text(m, board(step.ram), kCounts, fixed_size(), places->front());
    EXPECT_EQ(text.find("trainable part alone") != std::string::npos, step.form == Form::kTail)
        << text;
  }
  EXPECT_TRUE(
      absl::IsResourceExhausted(placements(m, board(12000), kCounts, fixed_size(), 8).status()));
}

TEST(Forms, AskedForAndPossible) {
  const model::Model m = partial();
  auto asked = fixed_size();
  asked.frozen = true;
  EXPECT_EQ(placements(m, board(200000), kCounts, asked, 8)->front().form, Form::kFrozen);
  EXPECT_EQ(placements(m, board(40000), kCounts, asked, 8)->front().form, Form::kTail);
  asked.frozen = false;
  EXPECT_EQ(placements(m, board(200000), kCounts, asked, 8)->front().form, Form::kRaw);
  const auto refused = placements(m, board(40000), kCounts, asked, 8);
  EXPECT_NE(refused.status().message().find("has 40000"), std::string::npos) << refused.status();
  // Firmware before CAP 14, and models without a frozen part, go on as they did.
  EXPECT_FALSE(placements(m, board(40000, 0x3FFF), kCounts, fixed_size(), 8).ok());
  model::Model all = partial();
  all.tail = {};
  const auto whole = placements(all, board(200000), kCounts, fixed_size(), 8);
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (const auto& place : *whole) EXPECT_EQ(place.form, Form::kRaw);
}

}  // namespace
}  // namespace odt::training
