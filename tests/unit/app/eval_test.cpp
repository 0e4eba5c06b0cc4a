// Evaluation, confusion counts, inference.
#include <cstring>

#include "board_rig.h"

namespace odt::testing {
namespace {

pb::Request evaluate(std::uint32_t id, pb::SampleRole role, std::uint32_t total = 0) {
  pb::Request q;
  q.mutable_evaluate()->set_eval_id(id);
  q.mutable_evaluate()->set_role(role);
  q.mutable_evaluate()->set_total(total);
  return q;
}

pb::Request eval_step(std::uint32_t id, std::uint32_t seq, std::uint32_t batch_id) {
  pb::Request q;
  q.mutable_eval_step()->set_eval_id(id);
  q.mutable_eval_step()->set_seq(seq);
  q.mutable_eval_step()->set_batch_id(batch_id);
  q.mutable_eval_step()->set_slot(0);
  return q;
}

TEST(Evaluate, ResidentRunsByItselfAndReportsConfusion) {
  BoardRig rig;
  load(rig, golden_part(0, 100));
  EXPECT_NE(rig.request(evaluate(1, pb::SAMPLE_ROLE_TRAIN)).accepted_ms(), 0u);
  rig.settle();
  ASSERT_EQ(rig.events.size(), 1u);
  const auto& e = rig.events[0].second.eval();
  EXPECT_TRUE(e.done());
  EXPECT_EQ(e.total(), 100u);
  EXPECT_GT(e.loss(), 0u);
  const std::string counts = rig.pull(pb::RESOURCE_EVAL_RESULT);
  ASSERT_EQ(counts.size(), 400u);
  std::uint32_t sum = 0;
  std::uint32_t diagonal = 0;
  for (std::uint32_t i = 0; i < 100; i++) {
    std::uint32_t v;
    std::memcpy(&v, counts.data() + 4 * i, 4);
    sum += v;
    if (i % 11 == 0) diagonal += v;
  }
  EXPECT_EQ(sum, 100u);
  EXPECT_EQ(diagonal, e.correct());
}

TEST(Evaluate, StreamedEqualsResident) {
  BoardRig rig;
  load(rig, golden_part(0, 30));
  rig.request(evaluate(1, pb::SAMPLE_ROLE_TRAIN));
  rig.settle();
  const auto resident = rig.events[0].second.eval();
  ASSERT_FALSE(rig.request(evaluate(2, pb::SAMPLE_ROLE_UNSPECIFIED, 30)).has_error());
  for (std::uint32_t i = 0; i < 3; i++) {
    rig.push(pb::RESOURCE_BATCH, golden_part(10 * i, 10), 0, i + 1);
    const auto r = rig.request(eval_step(2, i, i + 1));
    EXPECT_EQ(r.eval().next_seq(), i + 1);
    EXPECT_EQ(r.eval().done(), i == 2);
    if (i < 2) continue;
    EXPECT_EQ(r.eval().correct(), resident.correct());
    EXPECT_EQ(r.eval().loss(), resident.loss());
  }
  // Repeated: the same answer, nothing counted twice.
  EXPECT_EQ(rig.request(eval_step(2, 2, 3)).eval().total(), 30u);
}

TEST(Evaluate, EqualIdIsWithoutEffect) {
  BoardRig rig;
  load(rig, golden_part(0, 30));
  rig.request(evaluate(1, pb::SAMPLE_ROLE_TRAIN));
  rig.settle();
  const auto again = rig.request(evaluate(1, pb::SAMPLE_ROLE_TRAIN));
  EXPECT_TRUE(again.eval().done());
  rig.settle();
  EXPECT_EQ(rig.events.size(), 1u);
}

TEST(Evaluate, LeavesATrainingRunAlone) {
  const std::string train = golden_part(0, 80);
  BoardRig a;
  load(a, train);
  a.request(start_request(small_spec(train)));
  a.settle();
  BoardRig b;
  load(b, train);
  b.request(start_request(small_spec(train)));
  b.turns(5);
  EXPECT_FALSE(b.request(evaluate(1, pb::SAMPLE_ROLE_TRAIN)).has_error());
  b.settle();
  pb::Request q;
  q.mutable_get_state()->set_with_state_hash(true);
  EXPECT_EQ(a.request(q).state().state_hash(), b.request(q).state().state_hash());
}

TEST(Evaluate, Refusals) {
  BoardRig rig;
  rig.hello();
  EXPECT_EQ(rig.request(evaluate(1, pb::SAMPLE_ROLE_TEST)).error().code(),
            pb::STATUS_CODE_FAILED_PRECONDITION);
  load(rig, "");
  EXPECT_EQ(rig.request(evaluate(0, pb::SAMPLE_ROLE_TEST)).error().code(),
            pb::STATUS_CODE_INVALID_ARGUMENT);
  EXPECT_EQ(rig.request(evaluate(1, pb::SAMPLE_ROLE_TEST)).error().code(),
            pb::STATUS_CODE_FAILED_PRECONDITION);
  EXPECT_EQ(rig.request(evaluate(1, pb::SAMPLE_ROLE_UNSPECIFIED)).error().code(),
            pb::STATUS_CODE_INVALID_ARGUMENT);
  EXPECT_EQ(rig.request(eval_step(1, 0, 1)).error().code(), pb::STATUS_CODE_NOT_FOUND);
  rig.request(evaluate(2, pb::SAMPLE_ROLE_UNSPECIFIED, 5));
  rig.push(pb::RESOURCE_BATCH, golden_part(0, 6), 0, 1);
  EXPECT_EQ(rig.request(eval_step(2, 1, 1)).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
  EXPECT_EQ(rig.request(eval_step(2, 0, 9)).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
  EXPECT_EQ(rig.request(eval_step(2, 0, 1)).error().code(), pb::STATUS_CODE_OUT_OF_RANGE);
  pb::Request g;
  g.set_get_eval(77);
  EXPECT_EQ(rig.request(g).error().code(), pb::STATUS_CODE_NOT_FOUND);
}

TEST(Infer, GivesLogitsOfTheSampleSent) {
  BoardRig rig;
  load(rig, "");
  pb::Request q;
  q.mutable_infer();
  EXPECT_EQ(rig.request(q).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
  const std::string blob = golden_part(3, 1);
  const std::string sample = blob.substr(20);
  ASSERT_EQ(sample.size(), 196u);
  EXPECT_EQ(rig.push(pb::RESOURCE_INFER_INPUT, sample.substr(1)).error().code(),
            pb::STATUS_CODE_INVALID_ARGUMENT);
  ASSERT_FALSE(rig.push(pb::RESOURCE_INFER_INPUT, sample).has_error());
  const auto r = rig.request(q);
  ASSERT_EQ(r.infer().logits().size(), 10u);
  std::size_t best = 0;
  for (std::size_t i = 1; i < 10; i++) {
    const auto& z = r.infer().logits();
    if (static_cast<signed char>(z[i]) > static_cast<signed char>(z[best])) best = i;
  }
  EXPECT_EQ(r.infer().predicted(), best);
  // The same sample evaluated: correct if its label is what was predicted.
  rig.push(pb::RESOURCE_SAMPLES, blob, pb::SAMPLE_ROLE_TEST);
  rig.request(evaluate(1, pb::SAMPLE_ROLE_TEST));
  rig.settle();
  EXPECT_EQ(rig.events.back().second.eval().correct(),
            best == static_cast<std::size_t>(blob[16]) ? 1u : 0u);
}

}  // namespace
}  // namespace odt::testing
