// Resident and streamed frozen outputs, on the whole model and on its trainable part alone.
#include <cstring>

#include "board_rig.h"
#include "image_builder.h"

namespace odt::testing {
namespace {

constexpr std::uint32_t kIn = 12, kCut = 5, kFrozenTrain = 24, kFrozenHeldout = 8;

std::string text_of(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

// 12 -> 5 (frozen) -> 4 -> 3.
NetSpec partial_net() {
  NetSpec net;
  net.input_dims = {kIn};
  net.n_classes = 3;
  net.target_correct = {60, 60, 60};
  net.target_wrong = {-20, -20, -20};
  std::uint32_t in = kIn, seed = 3;
  for (const std::uint32_t out : {kCut, std::uint32_t{4}, std::uint32_t{3}}) {
    LayerSpec l;
    l.relu = out != 3;
    l.trainable = in != kIn;
    l.clip_lo = l.relu ? 0 : -128;
    l.clip_hi = l.relu ? 255 : 127;
    l.outputs = out;
    for (std::uint32_t i = 0; i < in * out; i++)
      l.weights.push_back(static_cast<std::int8_t>((seed = seed * 1664525u + 1013904223u) >> 25));
    l.offsets.assign(out, 40);
    l.k.assign(out, 6);
    net.layers.push_back(l);
    in = out;
  }
  return net;
}

std::string whole_image() { return text_of(build_image(partial_net())); }

// By hand, from proto/README.md: the trainable layers as a net of their own, 32 bytes of hash
// behind the header.
std::string tail_image() {
  NetSpec net = partial_net();
  net.input_dtype = DType::kU8;
  net.input_dims = {kCut};
  net.layers.erase(net.layers.begin());
  std::string image = text_of(build_image(net));
  const auto shift = [&image](std::size_t at) {
    std::uint32_t v;
    std::memcpy(&v, image.data() + at, 4);
    if (v != 0) v += 32;
    std::memcpy(image.data() + at, &v, 4);
  };
  std::uint32_t ops;
  std::memcpy(&ops, image.data() + 24, 4);
  for (std::size_t i = 0; i < net.layers.size(); i++)
    for (const std::size_t at : {16, 24, 32, 36}) shift(ops + 96 * i + at);
  for (const std::size_t at : {8, 20, 24, 28, 32}) shift(at);
  image[6] = 96;
  return image.substr(0, 64) + sha256(whole_image()) + image.substr(64);
}

std::string raw_set(std::uint32_t first, const std::vector<std::uint32_t>& which) {
  std::vector<std::int8_t> labels;
  std::vector<std::uint8_t> data;
  for (const auto i : which) {
    const int at = static_cast<int>(first + i);
    labels.push_back(static_cast<std::int8_t>(at % 3));
    for (int j = 0; j < static_cast<int>(kIn); j++)
      data.push_back(static_cast<std::uint8_t>(
          static_cast<std::int8_t>((at * 37 + j * 11) % 90 - 45 + (j % 3 == at % 3 ? 40 : 0))));
  }
  return text_of(build_samples(DType::kS8, kIn, labels, data));
}

std::vector<std::uint32_t> first_n(std::uint32_t n) {
  std::vector<std::uint32_t> out(n);
  for (std::uint32_t i = 0; i < n; i++) out[i] = i;
  return out;
}
const std::string kTrain = raw_set(0, first_n(kFrozenTrain));
const std::string kHeldout = raw_set(500, first_n(kFrozenHeldout));

// The library on the host, as the daemon's worker does it.
std::string frozen_of(const std::string& raw, bool source = true) {
  const std::string image = whole_image();
  std::vector<std::uint64_t> words(image.size() / 8 + 1), arena(4096);
  std::memcpy(words.data(), image.data(), image.size());
  auto model = std::make_unique<odt_model_t>();
  auto trainer = std::make_unique<odt_trainer_t>();
  odt_error_t err;
  EXPECT_EQ(
      odt_model_open(model.get(), words.data(), static_cast<std::uint32_t>(image.size()), &err),
      ODT_OK);
  odt_run_spec_t spec{};
  spec.rule_set = ODT_RULE_NITI;
  spec.loss = ODT_LOSS_MSE;
  spec.shift_source = ODT_SHIFT_EXACT;
  spec.k = 8;
  spec.batch = 1;
  spec.epochs = spec.train_samples = 1;
  std::memset(spec.class_weights, 64, sizeof spec.class_weights);
  EXPECT_EQ(odt_trainer_init(trainer.get(), model.get(), &spec, false, arena.data(),
                             static_cast<std::uint32_t>(arena.size() * 8), &err),
            ODT_OK)
      << err.what;
  const auto count = static_cast<std::uint8_t>(raw[8]);
  const std::size_t data = 16 + (count + 3u) / 4 * 4;
  std::string out = raw.substr(0, data);
  out[6] = ODT_U8;
  out[7] = source ? ODT_SAMPLES_FROZEN | ODT_SAMPLES_SOURCE : ODT_SAMPLES_FROZEN;
  out[12] = kCut;
  for (std::size_t i = 0; i < count; i++) {
    std::uint8_t y[kCut];
    EXPECT_EQ(
        odt_trainer_freeze(trainer.get(),
                           reinterpret_cast<const std::uint8_t*>(raw.data()) + data + i * kIn, y),
        ODT_OK);
    out.append(reinterpret_cast<const char*>(y), sizeof y);
  }
  return source ? out + sha256(image) + sha256(raw) : out;
}

struct End {
  std::string state, weights, content;
  std::uint32_t best_step = 0;
  bool operator==(const End&) const = default;
};

End end_of(BoardRig& rig) {
  const auto s = state_of(rig);
  EXPECT_EQ(s.job(), pb::JOB_STATE_DONE);
  return {s.state_hash(), s.weights_hash(), rig.pull(pb::RESOURCE_WEIGHTS), s.best_step()};
}

void put_sets(BoardRig& rig, const std::string& image, const std::string& train,
              const std::string& heldout) {
  rig.hello();
  ASSERT_FALSE(rig.push(pb::RESOURCE_MODEL_IMAGE, image).has_error());
  for (const auto& [set, role] : {std::pair{train, 1u}, std::pair{heldout, 2u}}) {
    const auto pushed = rig.push(pb::RESOURCE_SAMPLES, set, role);
    ASSERT_FALSE(pushed.has_error()) << pushed.ShortDebugString();
  }
}

End resident(const std::string& image, const std::string& train, const std::string& heldout) {
  BoardRig rig;
  put_sets(rig, image, train, heldout);
  EXPECT_EQ(state_of(rig).sample_set_hash(), sample_set_hash(kTrain, kHeldout));
  const auto started = rig.request(start_request(small_spec(kTrain, kHeldout)));
  EXPECT_FALSE(started.has_error()) << started.ShortDebugString();
  rig.settle();
  return end_of(rig);
}

TEST(Frozen, ResidentSetsEndAsTheSamplesTheyCameFrom) {
  const End raw = resident(whole_image(), kTrain, kHeldout);
  const std::string train = frozen_of(kTrain), heldout = frozen_of(kHeldout);
  EXPECT_EQ(resident(whole_image(), train, heldout), raw);
  EXPECT_EQ(resident(whole_image(), kTrain, heldout), raw) << "each set by itself";
  EXPECT_EQ(resident(tail_image(), train, heldout), raw);
}

TEST(Frozen, ATailSaysSoAndIsTheModel) {
  BoardRig rig;
  put_sets(rig, tail_image(), frozen_of(kTrain), frozen_of(kHeldout));
  const auto hello = rig.hello();
  EXPECT_NE(hello.caps() & 1u << 14, 0u);
  EXPECT_EQ(hello.model_hash(), sha256(whole_image()).substr(0, 16));
  const auto state = state_of(rig);
  EXPECT_TRUE(state.tail());
  EXPECT_EQ(state.model_hash(), sha256(whole_image()));
  BoardRig whole;
  put_sets(whole, whole_image(), kTrain, kHeldout);
  EXPECT_FALSE(state_of(whole).tail());
  EXPECT_EQ(rig.pull(pb::RESOURCE_WEIGHTS), whole.pull(pb::RESOURCE_WEIGHTS));
  // Logits of one sample: there its frozen outputs are the input.
  const auto infer = [](BoardRig& board, const std::string& set, std::uint32_t len) {
    EXPECT_FALSE(
        board.push(pb::RESOURCE_INFER_INPUT, set.substr(16 + kFrozenTrain, len)).has_error());
    pb::Request q;
    q.mutable_infer();
    return board.request(q).infer().logits();
  };
  EXPECT_EQ(infer(rig, frozen_of(kTrain), kCut), infer(whole, kTrain, kIn));
}

TEST(Frozen, StreamedOnATail) {
  const End raw = resident(whole_image(), kTrain, kHeldout);
  BoardRig rig;
  rig.hello();
  ASSERT_FALSE(rig.push(pb::RESOURCE_MODEL_IMAGE, tail_image()).has_error());
  auto spec = small_spec(kTrain, kHeldout);
  spec.set_streamed(true);
  ASSERT_FALSE(rig.request(start_request(spec)).has_error());
  const auto evaluate = [&](std::uint32_t id) {
    pb::Request q;
    q.mutable_evaluate()->set_eval_id(id);
    q.mutable_evaluate()->set_total(kFrozenHeldout);
    EXPECT_FALSE(rig.request(q).has_error());
    EXPECT_FALSE(
        rig.push(pb::RESOURCE_BATCH, frozen_of(kHeldout, false), 1, 5000 + id).has_error());
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
      const std::string batch = frozen_of(raw_set(0, {from, from + 8}), false);
      const std::uint32_t step = e * 3 + i;
      ASSERT_FALSE(rig.push(pb::RESOURCE_BATCH, batch, 0, step + 1).has_error());
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
  EXPECT_EQ(end_of(rig), raw);
}

// A state goes from the whole model to the tail of another board and on to the same end.
TEST(Frozen, ResumesAcrossForms) {
  const End raw = resident(whole_image(), kTrain, kHeldout);
  BoardRig first;
  put_sets(first, whole_image(), kTrain, kHeldout);
  auto spec = small_spec(kTrain, kHeldout);
  spec.set_hold_at_epoch(true);
  ASSERT_FALSE(first.request(start_request(spec)).has_error());
  first.settle();
  ASSERT_EQ(state_of(first).job(), pb::JOB_STATE_EPOCH_HOLD);
  const std::string state = first.pull(pb::RESOURCE_STATE),
                    best = first.pull(pb::RESOURCE_BEST_WEIGHTS);
  BoardRig second;
  put_sets(second, tail_image(), frozen_of(kTrain), frozen_of(kHeldout));
  ASSERT_FALSE(second.push(pb::RESOURCE_STATE, state).has_error());
  ASSERT_FALSE(second.push(pb::RESOURCE_BEST_WEIGHTS, best).has_error());
  spec.set_hold_at_epoch(false);
  auto start = start_request(spec, std::string(16, 'r'), 2);
  start.mutable_start_run()->set_expect_state_hash(sha256(state));
  const auto started = second.request(start);
  ASSERT_FALSE(started.has_error()) << started.ShortDebugString();
  second.settle();
  EXPECT_EQ(end_of(second), raw);
}

TEST(Frozen, RefusedWithOneClearError) {
  BoardRig rig;
  rig.hello();
  ASSERT_FALSE(rig.push(pb::RESOURCE_MODEL_IMAGE, tail_image()).has_error());
  const auto refusal = [&rig](const std::string& set) {
    return rig.push(pb::RESOURCE_SAMPLES, set, 1).error().text();
  };
  EXPECT_NE(refusal(kTrain).find("frozen outputs only"), std::string::npos) << refusal(kTrain);
  std::string other = frozen_of(kTrain);
  other[other.size() - 33] = static_cast<char>(other[other.size() - 33] ^ 0x40);
  EXPECT_NE(refusal(other).find("of another model"), std::string::npos) << refusal(other);
  EXPECT_EQ(state_of(rig).samples_train(), 0u) << "nothing of it stays";
  // Outputs of other samples than those of the run.
  ASSERT_FALSE(rig.push(pb::RESOURCE_SAMPLES, frozen_of(raw_set(901, first_n(kFrozenTrain))), 1)
                   .has_error());
  ASSERT_FALSE(rig.push(pb::RESOURCE_SAMPLES, frozen_of(kHeldout), 2).has_error());
  const auto started = rig.request(start_request(small_spec(kTrain, kHeldout)));
  EXPECT_NE(started.error().text().find("sample_set_hash"), std::string::npos)
      << started.ShortDebugString();
  // A set that does not say of what it is stands for itself.
  ASSERT_FALSE(rig.push(pb::RESOURCE_SAMPLES, frozen_of(kTrain, false), 1).has_error());
  ASSERT_FALSE(rig.push(pb::RESOURCE_SAMPLES, frozen_of(kHeldout, false), 2).has_error());
  EXPECT_EQ(state_of(rig).sample_set_hash(),
            sample_set_hash(frozen_of(kTrain, false), frozen_of(kHeldout, false)));
  std::string image = tail_image();
  image[6] = 100;
  EXPECT_NE(rig.push(pb::RESOURCE_MODEL_IMAGE, image).error().text().find("header bytes"),
            std::string::npos);
}

}  // namespace
}  // namespace odt::testing
