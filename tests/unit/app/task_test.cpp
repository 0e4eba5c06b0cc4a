// Regressions and autoencoders on a board: the held-out loss is the guard's score, less is better.
#include "board_rig.h"
#include "image_builder.h"

namespace odt::testing {
namespace {

constexpr std::uint32_t kTaskTrain = 24, kTaskHeldout = 8, kTaskInputs = 6;

std::string text_of(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

// s8 inputs -> `outputs` values; autoencoders: as many as inputs.
NetSpec task_net(std::uint8_t task, std::uint16_t outputs) {
  NetSpec net;
  net.task = task;
  net.input_dims = {kTaskInputs};
  net.n_classes = outputs;
  std::uint32_t in = kTaskInputs, seed = 7;
  for (const std::uint32_t out : {std::uint32_t{5}, std::uint32_t{outputs}}) {
    LayerSpec l;
    l.relu = net.layers.empty();
    l.trainable = true;
    l.clip_lo = l.relu ? 0 : -128;
    l.outputs = out;
    for (std::uint32_t i = 0; i < in * out; i++)
      l.weights.push_back(static_cast<std::int8_t>((seed = seed * 1664525u + 1013904223u) >> 26));
    l.offsets.assign(out, 32);
    l.k.assign(out, 6);
    net.layers.push_back(l);
    in = out;
  }
  return net;
}

std::string task_samples(std::uint8_t task, std::uint16_t outputs, std::uint32_t first,
                         const std::vector<std::uint32_t>& which) {
  std::vector<std::int8_t> labels;
  std::vector<std::uint8_t> data;
  for (const auto i : which) {
    const int at = static_cast<int>(first + i);
    for (int j = 0; j < static_cast<int>(kTaskInputs); j++)
      data.push_back(
          static_cast<std::uint8_t>(static_cast<std::int8_t>((at * 37 + j * 11) % 90 - 45)));
    for (int o = 0; o < (task == 1 ? outputs : 1); o++)
      labels.push_back(static_cast<std::int8_t>(task == 1 ? (at * 17 + o * 40) % 100 - 50 : 0));
  }
  return text_of(build_samples(DType::kS8, kTaskInputs, static_cast<std::uint32_t>(which.size()),
                               task == 1 ? 1 : 0, labels, data));
}

std::vector<std::uint32_t> upto(std::uint32_t n) {
  std::vector<std::uint32_t> out(n);
  for (std::uint32_t i = 0; i < n; i++) out[i] = i;
  return out;
}

struct Course {
  std::string state;
  std::uint32_t best_step = 0, steps = 0, start = 0, first = 0;
};

std::string tasks_image(std::uint8_t task) {
  return text_of(build_image(task_net(task, task == 1 ? 2 : kTaskInputs)));
}

pb::RunSpec task_spec(const std::string& train, const std::string& held) {
  auto spec = small_spec(train, held);
  spec.set_guard(true);
  spec.set_epochs(3);
  return spec;
}

Course resident_course(std::uint8_t task, bool on_host) {
  const std::uint16_t outputs = task == 1 ? 2 : kTaskInputs;
  const std::string train = task_samples(task, outputs, 0, upto(kTaskTrain));
  const std::string held = task_samples(task, outputs, 500, upto(kTaskHeldout));
  BoardRig rig;
  EXPECT_NE(rig.hello().caps() & 1u << 13, 0u);
  EXPECT_FALSE(rig.push(pb::RESOURCE_MODEL_IMAGE, tasks_image(task)).has_error());
  EXPECT_FALSE(rig.push(pb::RESOURCE_SAMPLES, train, 1).has_error());
  EXPECT_FALSE(rig.push(pb::RESOURCE_SAMPLES, held, 2).has_error());
  auto spec = task_spec(train, held);
  spec.set_best_on_host(on_host);
  const auto started = rig.request(start_request(spec));
  EXPECT_FALSE(started.has_error()) << started.ShortDebugString();
  std::string best;
  for (int i = 0; i < 20; i++) {
    rig.settle();
    const auto s = state_of(rig);
    if (s.best_wait() == 1) {
      best = rig.pull(pb::RESOURCE_BEST_WEIGHTS);
      pb::Request q;
      q.mutable_best_kept()->set_run_id(std::string(16, 'r'));
      q.mutable_best_kept()->set_attempt(1);
      q.mutable_best_kept()->set_weights_hash(sha256(best));
      EXPECT_FALSE(rig.request(q).has_error());
    } else if (s.best_wait() == 2) {
      EXPECT_FALSE(rig.push(pb::RESOURCE_BEST_WEIGHTS, best).has_error());
    }
  }
  Course c;
  const auto s = state_of(rig);
  EXPECT_EQ(s.job(), pb::JOB_STATE_DONE);
  c.state = s.state_hash();
  c.steps = s.step();
  std::uint32_t lowest = 0;
  for (const auto& [id, e] : rig.events) {
    if (!e.has_epoch()) continue;
    EXPECT_EQ(e.epoch().correct(), 0u);
    EXPECT_EQ(e.epoch().heldout_total(), kTaskHeldout);
    if (e.epoch().epoch() == 0) {
      c.start = lowest = e.epoch().start_correct();
      c.first = e.epoch().heldout_correct();
    }
    lowest = std::min(lowest, e.epoch().heldout_correct());
    c.best_step = e.epoch().best_step();
  }
  EXPECT_EQ(s.best_correct(), lowest) << "the lowest loss is the best";
  // The weights of the end have that loss: evaluated again, over the link.
  pb::Request q;
  q.mutable_evaluate()->set_eval_id(9);
  q.mutable_evaluate()->set_role(pb::SAMPLE_ROLE_HELDOUT);
  EXPECT_FALSE(rig.request(q).has_error());
  rig.settle();
  pb::Request get;
  get.set_get_eval(9);
  const auto eval = rig.request(get).eval();
  EXPECT_TRUE(eval.done());
  EXPECT_EQ(eval.loss(), lowest);
  EXPECT_EQ(eval.correct(), 0u);
  pb::Request counts;
  counts.mutable_xfer_open()->set_xfer_id(9999);
  counts.mutable_xfer_open()->set_resource(pb::RESOURCE_EVAL_RESULT);
  counts.mutable_xfer_open()->set_direction(pb::DIRECTION_TO_HOST);
  EXPECT_TRUE(rig.request(counts).has_error()) << "there are no classes to count";
  // State and best go to another board as they do for classifiers.
  BoardRig other;
  other.hello();
  EXPECT_FALSE(other.push(pb::RESOURCE_MODEL_IMAGE, tasks_image(task)).has_error());
  EXPECT_FALSE(other.push(pb::RESOURCE_STATE, rig.pull(pb::RESOURCE_STATE), on_host).has_error());
  EXPECT_EQ(state_of(other).state_hash(), c.state);
  return c;
}

TEST(Tasks, RunOnABoardByTheirLoss) {
  for (const std::uint8_t task : {1, 2}) {
    SCOPED_TRACE(int{task});
    const Course a = resident_course(task, false);
    EXPECT_LT(a.first, a.start) << "it learns";
    EXPECT_EQ(resident_course(task, true).state, a.state);
  }
}

TEST(Tasks, StreamedEndsAsResident) {
  for (const std::uint8_t task : {1, 2}) {
    SCOPED_TRACE(int{task});
    const std::uint16_t outputs = task == 1 ? 2 : kTaskInputs;
    const std::string train = task_samples(task, outputs, 0, upto(kTaskTrain));
    const std::string held = task_samples(task, outputs, 500, upto(kTaskHeldout));
    BoardRig rig;
    rig.hello();
    ASSERT_FALSE(rig.push(pb::RESOURCE_MODEL_IMAGE, tasks_image(task)).has_error());
    auto spec = task_spec(train, held);
    spec.set_streamed(true);
    ASSERT_FALSE(rig.request(start_request(spec)).has_error());
    const auto evaluate = [&](std::uint32_t id) {
      pb::Request q;
      q.mutable_evaluate()->set_eval_id(id);
      q.mutable_evaluate()->set_total(kTaskHeldout);
      EXPECT_FALSE(rig.request(q).has_error());
      EXPECT_FALSE(rig.push(pb::RESOURCE_BATCH, held, 1, 5000 + id).has_error());
      pb::Request s;
      s.mutable_eval_step()->set_eval_id(id);
      s.mutable_eval_step()->set_batch_id(5000 + id);
      s.mutable_eval_step()->set_slot(1);
      EXPECT_TRUE(rig.request(s).eval().done());
    };
    evaluate(1);
    for (std::uint32_t e = 0; e < 3; e++) {
      const auto order = order_of(spec, e);
      for (std::uint32_t i = 0; i < 3; i++) {
        const auto from = order.begin() + i * 8;
        const std::vector<std::uint32_t> batch(from, from + 8);
        const std::uint32_t step = e * 3 + i;
        ASSERT_FALSE(
            rig.push(pb::RESOURCE_BATCH, task_samples(task, outputs, 0, batch), 0, step + 1)
                .has_error());
        ASSERT_FALSE(rig.request(train_step(step, step + 1, 0)).has_error());
      }
      evaluate(2 + e);
      pb::Request q;
      q.mutable_end_epoch()->set_run_id(std::string(16, 'r'));
      q.mutable_end_epoch()->set_attempt(1);
      q.mutable_end_epoch()->set_epoch(e);
      q.mutable_end_epoch()->set_eval_id(2 + e);
      ASSERT_FALSE(rig.request(q).has_error());
    }
    EXPECT_EQ(state_of(rig).state_hash(), resident_course(task, false).state);
  }
}

TEST(Tasks, WhatOnlyClassifiersHaveIsRefused) {
  const std::string train = task_samples(1, 2, 0, upto(kTaskTrain));
  BoardRig rig;
  rig.hello();
  ASSERT_FALSE(rig.push(pb::RESOURCE_MODEL_IMAGE, tasks_image(1)).has_error());
  EXPECT_TRUE(rig.push(pb::RESOURCE_SAMPLES, task_samples(2, 2, 0, upto(4)), 1).has_error())
      << "labels instead of targets";
  ASSERT_FALSE(rig.push(pb::RESOURCE_SAMPLES, train, 1).has_error());
  auto spec = small_spec(train);
  spec.set_class_weights(std::string(2, '\x40'));
  EXPECT_EQ(rig.request(start_request(spec)).error().code(), pb::STATUS_CODE_INVALID_ARGUMENT);
  // More outputs than an answer holds.
  const NetSpec wide = task_net(1, 200);
  ASSERT_FALSE(rig.push(pb::RESOURCE_MODEL_IMAGE, text_of(build_image(wide))).has_error());
  ASSERT_FALSE(rig.push(pb::RESOURCE_INFER_INPUT, std::string(kTaskInputs, 1)).has_error());
  pb::Request q;
  q.mutable_infer();
  EXPECT_EQ(rig.request(q).error().code(), pb::STATUS_CODE_OUT_OF_RANGE);
}

}  // namespace
}  // namespace odt::testing
