// Frozen outputs and tail images: the bits of the whole model with its samples.
#include "worker/freeze.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "base/ids.h"
#include "compiler/tail.h"
#include "data/batcher.h"
#include "random_graph.h"
#include "worker/host_model.h"

namespace odt::worker {
namespace {

using odt::testing::Choices;
using odt::testing::GraphLimits;
using odt::testing::NetSpec;
using ::testing::HasSubstr;

std::string text_of(const std::vector<std::uint8_t>& bytes) {
  return std::string(bytes.begin(), bytes.end());
}

struct Case {
  NetSpec net;
  std::string image, tail, train, heldout;
};

// A random model with layers in front of the trained ones; false: it has no tail.
bool make_case(std::uint32_t seed, int task, Case& c) {
  Choices choices(seed);
  GraphLimits limits;
  limits.task = task;
  c.net = random_graph(choices, limits);
  c.image = text_of(build_image(c.net));
  auto tail = compiler::cut_tail(c.image, "net");
  EXPECT_TRUE(tail.ok()) << tail.status();
  if (!tail.ok() || tail->image.empty()) return false;
  c.tail = tail->image;
  EXPECT_LT(c.tail.size(), c.image.size() + 32);
  const auto set = random_graph_samples(choices, c.net, 20);
  std::vector<int> which(12);
  std::iota(which.begin(), which.end(), 0);
  c.train = text_of(samples_blob(set, which));
  std::iota(which.begin(), which.end(), 8);
  c.heldout = text_of(samples_blob(set, which));
  return true;
}

odt_run_spec_t spec_for(const NetSpec& net) {
  odt_run_spec_t spec = HostTrainer::inference_spec();
  if (net.task == 0 && net.target_correct.empty()) spec.loss = ODT_LOSS_CE;
  spec.batch = 4;
  spec.epochs = 3;
  spec.train_samples = spec.heldout_samples = 12;
  spec.mu_offset = 1;
  spec.order_seed = 7;
  spec.guard = true;
  std::memset(spec.sample_set_hash, 0x5A, sizeof spec.sample_set_hash);
  return spec;
}

struct End {
  std::string state, weights, model;
  std::uint64_t heldout_loss = 0;
};

std::uint64_t evaluate(HostTrainer& host, const HostSamples& s, std::uint32_t* correct) {
  std::uint64_t loss = 0;
  EXPECT_EQ(odt_trainer_eval(host.get(), &s.get(), 0, s.get().count, correct, &loss, nullptr),
            ODT_OK);
  return loss;
}

// A whole guarded run.
End train(const std::string& image, const NetSpec& net, const std::string& train_blob,
          const std::string& heldout_blob) {
  End end;
  auto host = HostTrainer::create(image, spec_for(net));
  EXPECT_TRUE(host.ok()) << host.status();
  if (!host.ok()) return end;
  auto samples = HostSamples::open(train_blob, (*host)->model());
  auto heldout = HostSamples::open(heldout_blob, (*host)->model());
  EXPECT_TRUE(samples.ok()) << samples.status();
  EXPECT_TRUE(heldout.ok()) << heldout.status();
  if (!samples.ok() || !heldout.ok()) return end;
  odt_trainer_t* t = (*host)->get();
  const auto score = [&](std::uint32_t correct, std::uint64_t loss) {
    return net.task == 0
               ? correct
               : static_cast<std::uint32_t>(std::min<std::uint64_t>(loss, UINT32_MAX - 1u));
  };
  std::uint32_t correct = 0;
  end.heldout_loss = evaluate(**host, *heldout, &correct);
  odt_trainer_set_start(t, score(correct, end.heldout_loss), 12);
  odt_error_t err{};
  while (!odt_trainer_done(t)) {
    odt_step_record_t step;
    while (!odt_trainer_epoch_complete(t))
      if (odt_trainer_step_resident(t, &samples->get(), &step, &err) != ODT_OK) {
        ADD_FAILURE() << host_status(err);
        return end;
      }
    correct = 0;
    const std::uint64_t loss = evaluate(**host, *heldout, &correct);
    odt_epoch_record_t epoch;
    EXPECT_EQ(odt_trainer_end_epoch(t, score(correct, loss), 12, &epoch, &err), ODT_OK) << err.what;
  }
  Hash hash;
  odt_state_hash(t, hash.bytes.data());
  end.state = hash.hex();
  odt_weights_hash(t, false, hash.bytes.data());
  end.weights = hash.hex();
  std::memcpy(hash.bytes.data(), (*host)->model().hash, 32);
  end.model = hash.hex();
  return end;
}

TEST(Freeze, WholeAndTailTrainToTheSameBits) {
  int tails = 0, wide = 0;
  for (int task : {0, 1, 2})
    for (std::uint32_t seed = 1; seed <= 60; ++seed) {
      SCOPED_TRACE(::testing::Message() << "task " << task << ", seed " << seed);
      Case c;
      if (!make_case(seed, task, c)) continue;
      ++tails;
      const auto train_frozen = freeze_samples(c.image, c.train);
      const auto heldout_frozen = freeze_samples(c.image, c.heldout);
      ASSERT_TRUE(train_frozen.ok()) << train_frozen.status();
      ASSERT_TRUE(heldout_frozen.ok()) << heldout_frozen.status();
      wide += (*train_frozen)[6] == ODT_S16 ? 1 : 0;
      const End raw = train(c.image, c.net, c.train, c.heldout);
      const End frozen = train(c.image, c.net, *train_frozen, *heldout_frozen);
      const End tail = train(c.tail, c.net, *train_frozen, *heldout_frozen);
      EXPECT_EQ(frozen.state, raw.state);
      EXPECT_EQ(tail.state, raw.state);
      EXPECT_EQ(tail.weights, raw.weights);
      EXPECT_EQ(tail.heldout_loss, raw.heldout_loss);
      EXPECT_EQ(tail.model, sha256(c.image).hex());
      // What the daemon streams of it.
      auto set = data::SampleSet::parse(std::make_shared<const std::string>(*train_frozen),
                                        c.net.task == 0 ? 0 : c.net.n_classes);
      ASSERT_TRUE(set.ok()) << set.status();
      EXPECT_TRUE(set->frozen());
      const std::string batch = set->slice(3, 4);
      auto host = HostTrainer::create(c.tail, spec_for(c.net));
      EXPECT_TRUE(HostSamples::open(batch, (*host)->model()).ok());
    }
  EXPECT_GE(tails, 40);
  EXPECT_GE(wide, 1) << "no cut of int16 among them";
}

Case first_case() {
  Case c;
  for (std::uint32_t seed = 1; seed <= 60; ++seed)
    if (make_case(seed, 0, c)) return c;
  ADD_FAILURE() << "no model with a frozen part";
  return c;
}

Status opened(const std::string& image, const NetSpec& net, const std::string& samples) {
  auto host = HostTrainer::create(image, spec_for(net));
  if (!host.ok()) return host.status();
  return HostSamples::open(samples, (*host)->model()).status();
}

TEST(Freeze, WhatDoesNotBelongTogetherIsRefused) {
  Case c = first_case();
  auto frozen = freeze_samples(c.image, c.train);
  ASSERT_TRUE(frozen.ok());
  EXPECT_TRUE(opened(c.tail, c.net, *frozen).ok());
  // Other trainable layers make another model.
  std::string other = *frozen;
  other[other.size() - 64] = static_cast<char>(other[other.size() - 64] ^ 1);
  EXPECT_THAT(opened(c.tail, c.net, other).ToString(), HasSubstr("of another model"));
  EXPECT_THAT(opened(c.image, c.net, other).ToString(), HasSubstr("of another model"));
  EXPECT_THAT(opened(c.tail, c.net, c.train).ToString(), HasSubstr("frozen outputs only"));
  EXPECT_THAT(freeze_samples(c.image, *frozen).status().ToString(), HasSubstr("already"));
  std::string unfrozen = *frozen;
  unfrozen[7] = 4;
  EXPECT_THAT(opened(c.tail, c.net, unfrozen).ToString(), HasSubstr("samples: flags"));
  EXPECT_THAT(opened(c.tail, c.net, frozen->substr(0, frozen->size() - 1)).ToString(),
              HasSubstr("samples: bytes"));
}

TEST(Freeze, BadTailImages) {
  Case c = first_case();
  const auto with = [&](std::size_t at, char value) {
    std::string image = c.tail;
    image[at] = value;
    return opened(image, c.net, "").ToString();
  };
  EXPECT_EQ(opened(c.tail, c.net, "").ToString(), "OK");
  EXPECT_THAT(with(6, 95), HasSubstr("header bytes"));
  EXPECT_THAT(with(39, 1), HasSubstr("tail image: arithmetic"));
  // Its first op is a trained one.
  std::uint32_t ops;
  std::memcpy(&ops, c.tail.data() + 24, 4);
  EXPECT_NE(with(ops + 1, 0), "OK");
  // A tail is cut once, and a model that trains every layer has none.
  auto again = compiler::cut_tail(c.tail, "tail");
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->image.empty());
}

}  // namespace
}  // namespace odt::worker
