// Transfers in both directions, compare-and-set, resume, memory.
#include "board_rig.h"

namespace odt::testing {
namespace {

TEST(TransferIn, ImageMakesAModel) {
  BoardRig rig;
  rig.hello();
  const std::string image = golden_image();
  ASSERT_FALSE(rig.push(pb::RESOURCE_MODEL_IMAGE, image).has_error());
  EXPECT_EQ(rig.hello().model_hash(), sha256(image).substr(0, 16));
}

TEST(TransferIn, EveryChunkIsAnsweredAndTheWindowMoves) {
  BoardRig rig;
  rig.hello();
  const std::string image = golden_image();
  const auto opened = rig.open(pb::RESOURCE_MODEL_IMAGE, image, 0, 0);
  EXPECT_EQ(opened.chunk(), 512u);
  EXPECT_EQ(opened.window(), 2048u);
  const auto w = rig.chunks(image, 0, 1024);
  EXPECT_EQ(w.offset(), 1024u);
  EXPECT_EQ(w.end(), 1024u + 2048u);
  EXPECT_FALSE(w.retransmit());
}

TEST(TransferIn, AGapIsReportedOnceAndACopyIsAnswered) {
  BoardRig rig;
  rig.hello();
  const std::string image = golden_image();
  rig.open(pb::RESOURCE_MODEL_IMAGE, image, 0, 0);
  rig.chunks(image, 0, 512);
  auto w = rig.chunks(image, 1024, 1536);
  EXPECT_TRUE(w.retransmit());
  EXPECT_EQ(w.offset(), 512u);
  w = rig.chunks(image, 1536, 2048);
  EXPECT_EQ(w.offset(), 0u) << "silent until the gap is filled";
  w = rig.chunks(image, 0, 512);
  EXPECT_EQ(w.offset(), 512u);
  w = rig.chunks(image, 512, static_cast<std::uint32_t>(image.size()));
  EXPECT_EQ(w.offset(), image.size());
  EXPECT_FALSE(rig.commit(image).has_error());
}

TEST(TransferIn, AChunkThatOverlapsWhatIsHeldCounts) {
  BoardRig rig;
  rig.hello();
  const std::string image = golden_image();
  rig.open(pb::RESOURCE_MODEL_IMAGE, image, 0, 0);
  rig.chunks(image, 0, 512);
  EXPECT_EQ(rig.chunks(image, 256, 700).offset(), 700u);
  rig.chunks(image, 700, static_cast<std::uint32_t>(image.size()));
  EXPECT_FALSE(rig.commit(image).has_error());
}

TEST(TransferIn, CommitRepeatedIsOk) {
  BoardRig rig;
  rig.hello();
  const std::string image = golden_image();
  ASSERT_FALSE(rig.push(pb::RESOURCE_MODEL_IMAGE, image).has_error());
  EXPECT_FALSE(rig.commit(image).has_error());
  rig.xfer_id++;
  EXPECT_EQ(rig.commit(image).error().code(), pb::STATUS_CODE_NOT_FOUND);
}

TEST(TransferIn, IncompleteAndDifferentContentAreRefused) {
  BoardRig rig;
  rig.hello();
  const std::string image = golden_image();
  rig.open(pb::RESOURCE_MODEL_IMAGE, image, 0, 0);
  rig.chunks(image, 0, 1024);
  EXPECT_EQ(rig.commit(image).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
  std::string other = image;
  other[4000] ^= 1;
  rig.chunks(other, 1024, static_cast<std::uint32_t>(image.size()));
  EXPECT_EQ(rig.commit(image).error().code(), pb::STATUS_CODE_DATA_LOSS);
  EXPECT_TRUE(rig.hello().model_hash().empty());
}

TEST(TransferIn, MoreThanAnnouncedIsRefused) {
  BoardRig rig;
  rig.hello();
  const std::string image = golden_image();
  rig.open(pb::RESOURCE_MODEL_IMAGE, image.substr(0, 600), 0, 0);
  const auto w = rig.chunks(image, 0, 1024);
  EXPECT_EQ(w.status(), pb::STATUS_CODE_OUT_OF_RANGE);
  EXPECT_EQ(rig.commit(image.substr(0, 600)).error().code(), pb::STATUS_CODE_OUT_OF_RANGE);
}

TEST(TransferIn, AMalformedImageLeavesNoModel) {
  BoardRig rig;
  rig.hello();
  std::string image = golden_image();
  image[0] = 'X';
  EXPECT_EQ(rig.push(pb::RESOURCE_MODEL_IMAGE, image).error().code(),
            pb::STATUS_CODE_INVALID_ARGUMENT);
  EXPECT_TRUE(rig.hello().model_hash().empty());
  EXPECT_FALSE(rig.push(pb::RESOURCE_MODEL_IMAGE, golden_image()).has_error());
}

TEST(TransferIn, WhatDoesNotFitSaysHowMuchIsThere) {
  RigOptions o;
  o.arena = 40000;
  BoardRig rig(o);
  rig.hello();
  ASSERT_FALSE(rig.push(pb::RESOURCE_MODEL_IMAGE, golden_image()).has_error());
  const std::string all = golden_samples();
  pb::Request q;
  q.mutable_xfer_open()->set_xfer_id(9000);
  q.mutable_xfer_open()->set_resource(pb::RESOURCE_SAMPLES);
  q.mutable_xfer_open()->set_index(pb::SAMPLE_ROLE_TRAIN);
  q.mutable_xfer_open()->set_direction(pb::DIRECTION_TO_BOARD);
  q.mutable_xfer_open()->set_size(static_cast<std::uint32_t>(all.size()));
  const auto r = rig.request(q);
  EXPECT_EQ(r.error().code(), pb::STATUS_CODE_RESOURCE_EXHAUSTED);
  EXPECT_GT(r.error().limit(), 20000u);
  EXPECT_LT(r.error().limit(), 40000u);
  EXPECT_NE(r.error().text().find(std::to_string(all.size())), std::string::npos);
  q.mutable_xfer_open()->set_size(UINT32_MAX);
  EXPECT_EQ(rig.request(q).error().code(), pb::STATUS_CODE_RESOURCE_EXHAUSTED);
}

TEST(Resume, GoesOnInANewSessionWhereThePrefixAgrees) {
  BoardRig rig;
  rig.hello();
  const std::string image = golden_image();
  rig.open(pb::RESOURCE_MODEL_IMAGE, image, 0, 0);
  rig.chunks(image, 0, 4096);
  rig.hello();
  // The host knows of less than the board holds.
  EXPECT_EQ(rig.open(pb::RESOURCE_MODEL_IMAGE, image, 0, 2048).offset(), 2048u);
  rig.chunks(image, 2048, static_cast<std::uint32_t>(image.size()));
  EXPECT_FALSE(rig.commit(image).has_error());
}

TEST(Resume, Report10_StartsAnewAfterAbortResetOrOtherContent) {
  BoardRig rig;
  const std::string image = golden_image();
  const auto part = [&] {
    rig.hello();
    rig.open(pb::RESOURCE_MODEL_IMAGE, image, 0, 0);
    rig.chunks(image, 0, 4096);
  };
  part();
  pb::Request abort;
  abort.mutable_xfer_abort()->set_xfer_id(rig.xfer_id);
  rig.request(abort);
  EXPECT_EQ(rig.open(pb::RESOURCE_MODEL_IMAGE, image, 0, 4096).offset(), 0u);
  part();
  rig.restart();
  rig.hello();
  EXPECT_EQ(rig.open(pb::RESOURCE_MODEL_IMAGE, image, 0, 4096).offset(), 0u);
  part();
  std::string other = image;
  other[100] ^= 1;
  EXPECT_EQ(rig.open(pb::RESOURCE_MODEL_IMAGE, other, 0, 4096).offset(), 0u);
  part();
  // One byte of the prefix held is not what the host thinks.
  rig.app().config->arena[rig.app().region[APP_REGION_IMAGE].at + 50] ^= 1;
  EXPECT_EQ(rig.open(pb::RESOURCE_MODEL_IMAGE, image, 0, 2048).offset(), 0u);
}

TEST(TransferOut, WeightsOfTheImageWithoutARun) {
  BoardRig rig;
  load(rig, "");
  const std::string weights = rig.pull(pb::RESOURCE_WEIGHTS);
  EXPECT_EQ(weights.substr(0, 4), "ODTW");
  pb::Request q;
  q.mutable_get_state()->set_with_state_hash(true);
  EXPECT_EQ(rig.request(q).state().weights_hash(), sha256(weights));
}

TEST(TransferOut, RetransmitGoesBack) {
  BoardRig rig;
  load(rig, "");
  pb::Request q;
  q.mutable_xfer_open()->set_xfer_id(++rig.xfer_id);
  q.mutable_xfer_open()->set_resource(pb::RESOURCE_WEIGHTS);
  q.mutable_xfer_open()->set_direction(pb::DIRECTION_TO_HOST);
  rig.request(q);
  pb::Window w;
  w.set_end(1024);
  rig.send(FRAME_WINDOW_TO_BOARD, rig.xfer_id, w.SerializeAsString());
  rig.turns(2);
  const auto first = rig.take(FRAME_CHUNK_TO_HOST);
  rig.take();
  w.set_retransmit(true);
  rig.send(FRAME_WINDOW_TO_BOARD, rig.xfer_id, w.SerializeAsString());
  rig.turns(2);
  const auto again = rig.take(FRAME_CHUNK_TO_HOST);
  ASSERT_TRUE(first && again);
  EXPECT_EQ(first->body, again->body);
}

TEST(TransferOut, WhatIsNotThereIsRefused) {
  BoardRig rig;
  rig.hello();
  pb::Request q;
  q.mutable_xfer_open()->set_xfer_id(1);
  q.mutable_xfer_open()->set_direction(pb::DIRECTION_TO_HOST);
  for (const auto what : {pb::RESOURCE_WEIGHTS, pb::RESOURCE_STATE, pb::RESOURCE_BEST_WEIGHTS,
                          pb::RESOURCE_EVAL_RESULT}) {
    q.mutable_xfer_open()->set_resource(what);
    EXPECT_EQ(rig.request(q).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION) << what;
  }
  q.mutable_xfer_open()->set_resource(pb::RESOURCE_MODEL_IMAGE);
  EXPECT_EQ(rig.request(q).error().code(), pb::STATUS_CODE_INVALID_ARGUMENT);
}

TEST(Weights, PushedWithoutARunAreHeldAndEvaluated) {
  BoardRig a;
  const std::string train = golden_part(0, 40);
  load(a, train);
  ASSERT_FALSE(a.request(start_request(small_spec(train))).has_error());
  a.settle();
  const std::string trained = a.pull(pb::RESOURCE_WEIGHTS);

  BoardRig b;
  load(b, train);
  EXPECT_NE(b.pull(pb::RESOURCE_WEIGHTS), trained);
  ASSERT_FALSE(b.push(pb::RESOURCE_WEIGHTS, trained).has_error());
  EXPECT_EQ(b.pull(pb::RESOURCE_WEIGHTS), trained);
  const auto evaluate = [](BoardRig& rig) {
    pb::Request q;
    q.mutable_evaluate()->set_eval_id(7);
    q.mutable_evaluate()->set_role(pb::SAMPLE_ROLE_TRAIN);
    EXPECT_NE(rig.request(q).accepted_ms(), 0u);
    rig.settle();
    pb::Request g;
    g.set_get_eval(7);
    return rig.request(g).eval();
  };
  EXPECT_EQ(evaluate(a).SerializeAsString(), evaluate(b).SerializeAsString());
}

TEST(Weights, ATornPushLeavesNoneUntilTheNextOne) {
  BoardRig rig;
  load(rig, golden_part(0, 8));
  const std::string weights = rig.pull(pb::RESOURCE_WEIGHTS);
  rig.open(pb::RESOURCE_WEIGHTS, weights, 0, 0);
  rig.chunks(weights, 0, 1024);
  pb::Request q;
  q.mutable_evaluate()->set_eval_id(1);
  q.mutable_evaluate()->set_role(pb::SAMPLE_ROLE_TRAIN);
  EXPECT_EQ(rig.request(q).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
  pb::Request s;
  s.mutable_get_state();
  EXPECT_FALSE(rig.request(s).state().has_weights());
  EXPECT_FALSE(rig.push(pb::RESOURCE_WEIGHTS, weights).has_error());
  EXPECT_TRUE(rig.request(s).state().has_weights());
}

TEST(Weights, OfAnotherModelAreRefused) {
  BoardRig rig;
  load(rig, "");
  std::string weights = rig.pull(pb::RESOURCE_WEIGHTS);
  weights[20] ^= 1;  // model hash
  EXPECT_EQ(rig.push(pb::RESOURCE_WEIGHTS, weights).error().code(),
            pb::STATUS_CODE_FAILED_PRECONDITION);
  EXPECT_EQ(rig.push(pb::RESOURCE_WEIGHTS, std::string("short")).error().code(),
            pb::STATUS_CODE_INVALID_ARGUMENT);
}

TEST(CompareAndSet, ExpectHashRefusesAnotherState) {
  BoardRig rig;
  const std::string train = golden_part(0, 16);
  load(rig, train);
  rig.request(start_request(small_spec(train)));
  rig.settle();
  const std::string state = rig.pull(pb::RESOURCE_STATE);
  pb::Request q;
  auto* o = q.mutable_xfer_open();
  o->set_xfer_id(++rig.xfer_id);
  o->set_resource(pb::RESOURCE_STATE);
  o->set_direction(pb::DIRECTION_TO_BOARD);
  o->set_size(static_cast<std::uint32_t>(state.size()));
  o->set_expect_hash(std::string(32, 'q'));
  EXPECT_EQ(rig.request(q).error().code(), pb::STATUS_CODE_FAILED_PRECONDITION);
  o->set_expect_hash(sha256(state));
  EXPECT_FALSE(rig.request(q).has_error());
}

}  // namespace
}  // namespace odt::testing
