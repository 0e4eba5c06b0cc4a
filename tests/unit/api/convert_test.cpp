#include <gtest/gtest.h>

#include <set>

#include "api/api_convert.h"
#include "model/setting_rules.h"

namespace odt::api {
namespace {

v1::RunSpec good_spec() {
  v1::RunSpec spec;
  spec.set_board_uid(std::string(8, 'b'));
  spec.set_model_hash(std::string(32, 'm'));
  spec.set_dataset_id(std::string(16, 'd'));
  spec.mutable_hyper()->set_k(8);
  spec.mutable_hyper()->add_mu_weight(-2);
  return spec;
}

std::string field_at_fault(const v1::RunSpec& spec) {
  const auto parsed = from_proto(spec);
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  const auto field = parsed.status().GetPayload("odt/field");
  return field ? std::string(*field) : "";
}

TEST(Convert, RunSpecComesBackAsItWent) {
  const auto spec = from_proto(good_spec());
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(to_proto(*spec).SerializeAsString(), good_spec().SerializeAsString());
}

TEST(Convert, EveryFieldOfARunSpecIsChecked) {
  v1::RunSpec spec = good_spec();
  spec.set_board_uid("short");
  EXPECT_EQ(field_at_fault(spec), "spec.board_uid");
  spec = good_spec();
  spec.set_model_hash("");
  EXPECT_EQ(field_at_fault(spec), "spec.model_hash");
  spec = good_spec();
  spec.set_dataset_id(std::string(16, '\0'));
  EXPECT_EQ(field_at_fault(spec), "spec.dataset_id");
  spec = good_spec();
  spec.set_start_snapshot("x");
  EXPECT_EQ(field_at_fault(spec), "spec.start_snapshot");
  spec = good_spec();
  spec.set_name("a\nb");
  EXPECT_EQ(field_at_fault(spec), "spec.name");
}

TEST(Convert, HyperParametersHaveTheirRanges) {
  for (const std::uint32_t k : {1u, 17u}) {
    v1::RunSpec spec = good_spec();
    spec.mutable_hyper()->set_k(k);
    EXPECT_EQ(field_at_fault(spec), "spec.hyper.k");
  }
  for (const std::uint32_t k : {2u, 16u}) {
    v1::RunSpec spec = good_spec();
    spec.mutable_hyper()->set_k(k);
    EXPECT_TRUE(from_proto(spec).ok());
  }
  v1::RunSpec spec = good_spec();
  spec.mutable_hyper()->add_mu_weight(0);
  EXPECT_EQ(field_at_fault(spec), "spec.hyper.mu_weight");
  spec = good_spec();
  spec.mutable_hyper()->set_mu_offset(8);
  EXPECT_EQ(field_at_fault(spec), "spec.hyper.mu_offset");
  spec = good_spec();
  spec.mutable_hyper()->set_epochs(0);
  EXPECT_EQ(field_at_fault(spec), "spec.hyper.epochs");
  spec = good_spec();
  spec.mutable_hyper()->set_policy(static_cast<v1::Policy>(77));
  EXPECT_EQ(field_at_fault(spec), "spec.hyper.policy");
}

TEST(Convert, PrecisionGoesThereAndBack) {
  v1::RunSpec spec = good_spec();
  v1::HyperParams& h = *spec.mutable_hyper();
  h.set_rule_set(v1::RULE_SET_NITI);
  for (const unsigned k : {0u, 12u}) h.add_layer_k(k);
  h.set_apt(v1::APT_MODE_EPOCHS);
  h.set_apt_k_max(14);
  h.set_apt_offsets(true);
  h.set_apt_t_min_q8(77);
  h.set_apt_t_max_q8(400);
  for (const unsigned m : {3u, 2u, 1u}) h.add_lr_m(m);
  h.set_lr_s(20);
  h.set_blocked(false);
  const auto read = from_proto(spec);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(to_proto(read->hyper).SerializeAsString(), h.SerializeAsString());
  h.set_apt_k_max(17);
  EXPECT_EQ(field_at_fault(spec), "spec.hyper.apt_k_max");
  h.set_apt_k_max(16);
  h.set_apt_t_min_q8(0);
  EXPECT_EQ(field_at_fault(spec), "spec.hyper.apt_t_min_q8");
  h.set_apt_t_min_q8(1);
  h.add_lr_m(4);
  EXPECT_EQ(field_at_fault(spec), "spec.hyper.lr_m");
  h.clear_lr_m();
  h.add_layer_k(17);
  EXPECT_EQ(field_at_fault(spec), "spec.hyper.layer_k");
  h.clear_layer_k();
  h.set_apt(static_cast<v1::AptMode>(9));
  EXPECT_EQ(field_at_fault(spec), "spec.hyper.apt");
}

TEST(Convert, AbsentIsAbsent) {
  EXPECT_FALSE(from_proto(good_spec())->hyper.epochs.has_value());
  const auto run = to_proto(model::Run());
  EXPECT_TRUE(run.id().empty());
  EXPECT_TRUE(run.final_state_hash().empty());
  EXPECT_FALSE(run.effective().has_k());
}

TEST(Convert, LossesWhereThereAreNoClasses) {
  model::Run run;
  run.outputs = {model::Task::kAutoencode, 64, {-128}, {0.5f}};
  run.heldout_best_loss = {1234, 0, 80, model::LossKind::kMse};
  const auto out = to_proto(run);
  EXPECT_EQ(out.outputs().task(), v1::TASK_AUTOENCODE);
  EXPECT_EQ(out.outputs().count(), 64u);
  EXPECT_EQ(out.outputs().scale(0), 0.5f);
  EXPECT_EQ(out.heldout_best_loss().sum(), 1234);
  EXPECT_FALSE(out.has_before_loss()) << "not measured";
  EXPECT_FALSE(to_proto(model::Run()).has_outputs()) << "of before there were others";
  model::Evaluation evaluation;
  EXPECT_FALSE(to_proto(evaluation).has_scores());
  evaluation.scores = {1, 2, 3, 4, sha256("scores")};
  EXPECT_EQ(to_proto(evaluation).scores().p95(), 3u);
  model::Inference inference;
  inference.there = 9;
  inference.samples.push_back({3, {-128, 127}, 1, {5, -5}});
  const auto answer = to_proto(inference);
  EXPECT_EQ(answer.samples(0).outputs(), std::string("\x80\x7f", 2));
  EXPECT_EQ(answer.samples(0).wanted(), std::string("\x05\xfb", 2));
}

TEST(Convert, WhatABoardSaysIsMadeClean) {
  model::Board board;
  board.fw_version = "1.0\x1B[2J";
  board.reset_reason = "\xFF";
  EXPECT_EQ(to_proto(board).fw_version(), "1.0?[2J");
  EXPECT_EQ(to_proto(board).reset_reason(), "?");
}

TEST(Convert, ReportedHashesAreHeadsUntilTheyAreWhole) {
  model::Board board;
  for (int i = 0; i < 16; ++i) board.model_hash.bytes[static_cast<std::size_t>(i)] = 7;
  EXPECT_EQ(to_proto(board).model_hash().size(), 16u);
  board.model_hash.bytes[31] = 1;
  EXPECT_EQ(to_proto(board).model_hash().size(), 32u);
  board.state_hash = board.model_hash;
  EXPECT_EQ(to_proto(board).state_hash().size(), 16u);
}

TEST(Convert, EventsOfAllKinds) {
  model::Event event;
  event.seq = 5;
  const std::vector<model::EventBody> bodies = {
      model::Board(),    model::Port(),       model::Model(),    model::Dataset(),
      model::Snapshot(), model::Run(),        model::RunEvent(), model::EpochResult(),
      model::Job(),      model::Evaluation(), model::Deleted(),  model::Warning()};
  std::set<int> cases;
  for (const auto& body : bodies) {
    event.body = body;
    const v1::Event proto = to_proto(event);
    EXPECT_EQ(proto.event_seq(), 5);
    EXPECT_NE(proto.what_case(), v1::Event::WHAT_NOT_SET);
    cases.insert(proto.what_case());
  }
  EXPECT_EQ(cases.size(), bodies.size());
}

TEST(Convert, CohortsAskForTheApisStatusWords) {
  for (int status = v1::BoardStatus_MIN; status <= v1::BoardStatus_MAX; ++status) {
    if (!v1::BoardStatus_IsValid(status)) continue;
    model::Board board;
    board.status = static_cast<model::BoardStatus>(status);
    EXPECT_EQ("BOARD_STATUS_" + model::query_fields(board)["status"],
              v1::BoardStatus_Name(static_cast<v1::BoardStatus>(status)));
  }
}

TEST(Convert, ImportOptionsAreChecked) {
  v1::ImportOptions options;
  options.set_name("digits");
  options.set_format("idx");
  EXPECT_TRUE(from_proto(options).ok());
  options.add_resize(14);
  EXPECT_FALSE(from_proto(options).ok());
  options.add_resize(14);
  EXPECT_TRUE(from_proto(options).ok());
  options.set_format("xlsx");
  EXPECT_FALSE(from_proto(options).ok());
}

}  // namespace
}  // namespace odt::api
