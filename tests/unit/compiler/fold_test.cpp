#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/onnx_graph.h"

// Constant folding, operator by operator.
namespace odt::test::folding {
namespace {

using compiler::Node;
using compiler::Tensor;
using testing::ElementsAre;

Tensor list(std::vector<std::int64_t> v) {
  Tensor t;
  t.integer = true;
  t.dims = {static_cast<std::int64_t>(v.size())};
  t.i = std::move(v);
  return t;
}
Tensor reals(std::vector<float> v, std::vector<std::int64_t> dims = {}) {
  Tensor t;
  t.dims = dims.empty() ? std::vector<std::int64_t>{static_cast<std::int64_t>(v.size())} : dims;
  t.f = std::move(v);
  return t;
}
Node node(const std::string& op) {
  Node n;
  n.op = op;
  n.outputs = {"y"};
  return n;
}
Tensor folded(const Node& n, const std::vector<Tensor>& inputs) {
  std::vector<const Tensor*> pointers;
  for (const auto& t : inputs) pointers.push_back(t.size() == 0 && t.dims.empty() ? nullptr : &t);
  auto out = compiler::fold(n, pointers);
  EXPECT_TRUE(out.ok()) << n.op << ": " << out.status();
  return out.ok() ? *out : Tensor{};
}

TEST(Fold, Arithmetic) {
  EXPECT_THAT(folded(node("Add"), {list({1, 2}), list({10, 20})}).i, ElementsAre(11, 22));
  EXPECT_THAT(folded(node("Sub"), {reals({1, 2}), reals({4}, {1})}).f, ElementsAre(-3, -2));
  EXPECT_THAT(folded(node("Mul"), {reals({1, 2, 3, 4}, {2, 2}), reals({10, 100}, {2})}).f,
              ElementsAre(10, 200, 30, 400));
  EXPECT_THAT(folded(node("Div"), {list({7, 9, 1}), list({2, 3, 0})}).i, ElementsAre(3, 3, 0));
  EXPECT_THAT(folded(node("Pow"), {reals({2, 3}), reals({3, 2})}).f, ElementsAre(8, 9));
  EXPECT_THAT(folded(node("Mod"), {list({-1, 7}), list({4, 4})}).i, ElementsAre(3, 3));
  EXPECT_THAT(folded(node("Min"), {list({1, 9}), list({4, 4}), list({3, 3})}).i, ElementsAre(1, 3));
  EXPECT_THAT(folded(node("Max"), {reals({1, 9}), reals({4, 4})}).f, ElementsAre(4, 9));
}

TEST(Fold, ComparisonsAndChoice) {
  EXPECT_THAT(folded(node("Equal"), {list({1, 2}), list({1, 3})}).i, ElementsAre(1, 0));
  EXPECT_THAT(folded(node("Greater"), {reals({1, 4}), reals({2, 2})}).i, ElementsAre(0, 1));
  EXPECT_THAT(folded(node("LessOrEqual"), {reals({1, 2}), reals({2, 1})}).i, ElementsAre(1, 0));
  EXPECT_THAT(folded(node("Not"), {list({0, 1})}).i, ElementsAre(1, 0));
  EXPECT_THAT(folded(node("And"), {list({1, 1}), list({0, 1})}).i, ElementsAre(0, 1));
  EXPECT_THAT(folded(node("Where"), {list({1, 0}), reals({5}, {1}), reals({7, 8})}).f,
              ElementsAre(5, 8));
}

TEST(Fold, OneValueAtATime) {
  EXPECT_THAT(folded(node("Reciprocal"), {reals({4, -2})}).f, ElementsAre(0.25f, -0.5f));
  EXPECT_THAT(folded(node("Abs"), {list({-3, 3})}).i, ElementsAre(3, 3));
  EXPECT_THAT(folded(node("Sign"), {reals({-3, 0, 2})}).f, ElementsAre(-1, 0, 1));
  EXPECT_THAT(folded(node("Log"), {reals({1, std::exp(2.0f)})}).f,
              ElementsAre(0, testing::FloatNear(2, 1e-6f)));
  EXPECT_THAT(folded(node("Round"), {reals({0.5f, 1.5f, -0.6f})}).f, ElementsAre(0, 2, -1));
  EXPECT_THAT(folded(node("Ceil"), {reals({0.5f, -0.5f})}).f, ElementsAre(1, 0));
  EXPECT_THAT(folded(node("Clip"), {reals({-5, 5}), reals({0}, {1}), reals({3}, {1})}).f,
              ElementsAre(0, 3));
  Node cast = node("Cast");
  cast.attributes["to"].i = 7;
  EXPECT_THAT(folded(cast, {reals({2.7f, -2.7f})}).i, ElementsAre(2, -2));
}

TEST(Fold, MovingValues) {
  EXPECT_THAT(folded(node("Expand"), {reals({1, 2}, {2, 1}), list({2, 3})}).f,
              ElementsAre(1, 1, 1, 2, 2, 2));
  EXPECT_THAT(folded(node("Range"), {list({2}), list({9}), list({3})}).i, ElementsAre(2, 5, 8));
  EXPECT_THAT(folded(node("Tile"), {list({1, 2}), list({2})}).i, ElementsAre(1, 2, 1, 2));
  Node gather = node("Gather");
  gather.attributes["axis"].i = 1;
  EXPECT_THAT(folded(gather, {reals({1, 2, 3, 4, 5, 6}, {2, 3}), list({2, -3})}).f,
              ElementsAre(3, 1, 6, 4));
  EXPECT_THAT(
      folded(node("Slice"), {list({1, 2, 3, 4, 5}), list({4}), list({-6}), list({0}), list({-2})})
          .i,
      ElementsAre(5, 3, 1));
  EXPECT_THAT(folded(node("Transpose"), {reals({1, 2, 3, 4, 5, 6}, {2, 3})}).f,
              ElementsAre(1, 4, 2, 5, 3, 6));
  Node concat = node("Concat");
  concat.attributes["axis"].i = 1;
  EXPECT_THAT(folded(concat, {reals({1, 2}, {2, 1}), reals({3, 4, 5, 6}, {2, 2})}).f,
              ElementsAre(1, 3, 4, 2, 5, 6));
  Node filled = node("ConstantOfShape");
  filled.tensors["value"] = list({7});
  EXPECT_THAT(folded(filled, {list({3})}).i, ElementsAre(7, 7, 7));
  EXPECT_THAT(folded(node("ReduceProd"), {list({2, 3, 4})}).i, ElementsAre(24));
  Node sum = node("ReduceSum");
  sum.attributes["keepdims"].i = 0;
  const Tensor t = folded(sum, {reals({1, 2, 3, 4, 5, 6}, {2, 3}), list({-1})});
  EXPECT_THAT(t.f, ElementsAre(6, 15));
  EXPECT_THAT(t.dims, ElementsAre(2));
  EXPECT_THAT(folded(node("Unsqueeze"), {list({1, 2}), list({0, 2})}).dims, ElementsAre(1, 2, 1));
  EXPECT_THAT(folded(node("Squeeze"), {reals({1, 2}, {1, 2, 1}), list({0})}).dims,
              ElementsAre(2, 1));
}

TEST(Fold, WhatCannotBeIsAnErrorAndTakesNoMemory) {
  const auto refused = [](const Node& n, const std::vector<Tensor>& inputs) {
    std::vector<const Tensor*> pointers;
    for (const auto& t : inputs) pointers.push_back(&t);
    return !compiler::fold(n, pointers).ok();
  };
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_TRUE(refused(node("ConstantOfShape"), {list({huge, huge})}));
  EXPECT_TRUE(refused(node("Expand"), {list({1}), list({huge})}));
  EXPECT_TRUE(refused(node("Range"), {list({0}), list({huge}), list({1})}));
  EXPECT_TRUE(refused(node("Range"), {list({0}), list({1}), list({0})}));
  EXPECT_TRUE(refused(node("Range"), {reals({0}), reals({NAN}), reals({1})}));
  EXPECT_TRUE(refused(node("Tile"), {list({1, 2}), list({huge})}));
  EXPECT_TRUE(refused(node("Reshape"), {list({1, 2}), list({-1, -1})}));
  EXPECT_TRUE(refused(node("Reshape"), {list({1, 2}), list({3})}));
  EXPECT_TRUE(refused(node("Gather"), {list({1, 2}), list({5})}));
  EXPECT_TRUE(refused(node("Add"), {list({1, 2}), list({1, 2, 3})}));
  EXPECT_TRUE(refused(node("Add"), {list({1, 2})}));
  EXPECT_TRUE(refused(node("Unsqueeze"), {list({1, 2}), list({9})}));
  EXPECT_TRUE(refused(node("RandomNormalLike"), {list({1, 2})}));
  // The extremes of 64 bits overflow nowhere.
  EXPECT_THAT(folded(node("Add"), {list({INT64_MAX}), list({1})}).i, ElementsAre(INT64_MIN));
  EXPECT_THAT(folded(node("Neg"), {list({INT64_MIN})}).i, ElementsAre(INT64_MIN));
  EXPECT_THAT(folded(node("Div"), {list({INT64_MIN}), list({-1})}).i, ElementsAre(0));
}

}  // namespace
}  // namespace odt::test::folding
