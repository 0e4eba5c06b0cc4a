#include "compile_check.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "data/quantize.h"
#include "onnx_fixture.h"
#include "worker/host_model.h"

namespace odt::test {

compiler::Compiled compile_ok(const std::string& bytes, std::uint32_t trainable) {
  auto c = compiler::compile(bytes, "m.onnx", {"m", trainable});
  EXPECT_TRUE(c.ok()) << c.status();
  return c.ok() ? *std::move(c) : compiler::Compiled{};
}

// Random source values in lo..hi; logits of image + input stage against the nodes in float32.
void expect_equal(const std::string& bytes, int lo, int hi, bool float_source, bool must_vary) {
  const auto compiled = compile_ok(bytes);
  ASSERT_FALSE(compiled.image.empty());
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(bytes));
  auto host = worker::HostTrainer::create(compiled.image, worker::HostTrainer::inference_spec());
  ASSERT_TRUE(host.ok()) << host.status();
  auto stage = data::parse_input_stage(compiled.manifest);
  ASSERT_TRUE(stage.ok()) << stage.status();
  std::mt19937 random(7);
  bool varied = false;
  std::vector<std::int8_t> last;
  for (int s = 0; s < 40; ++s) {
    data::Dataset d;
    d.dtype = float_source ? data::Dtype::kF32 : data::Dtype::kS16;
    d.shape = stage->shape;
    d.counts[0] = 1;
    std::vector<float> input;
    for (std::uint32_t i = 0; i < stage->count(); ++i) {
      const int v = lo + static_cast<int>(random() % static_cast<unsigned>(hi - lo + 1));
      const float f = float_source ? static_cast<float>(v) + 0.37f : static_cast<float>(v);
      input.push_back(f);
      const auto i16 = static_cast<std::int16_t>(v);
      const auto* raw = float_source ? reinterpret_cast<const std::uint8_t*>(&f)
                                     : reinterpret_cast<const std::uint8_t*>(&i16);
      d.values.insert(d.values.end(), raw, raw + (float_source ? 4 : 2));
    }
    std::vector<std::uint8_t> sample;
    if (stage->has_prequant()) {
      auto q = data::quantize_samples(*stage, d, 0, 1);
      ASSERT_TRUE(q.ok()) << q.status();
      sample = *q;
    } else {
      for (float f : input) sample.push_back(static_cast<std::uint8_t>(static_cast<int>(f)));
    }
    std::vector<std::int8_t> logits(compiled.network.n_classes());
    ASSERT_EQ(odt_trainer_infer((*host)->get(), sample.data(), logits.data()), ODT_OK);
    const auto expected = evaluate(model, input);
    ASSERT_EQ(expected.v.size(), logits.size());
    // Outputs are int8: what the file has beyond saturates.
    for (std::size_t c = 0; c < logits.size(); ++c)
      ASSERT_EQ(static_cast<float>(logits[c]), std::clamp(expected.v[c], -128.0f, 127.0f))
          << "sample " << s << " output " << c;
    varied = varied || (!last.empty() && last != logits);
    last = logits;
  }
  EXPECT_TRUE(varied || !must_vary) << "the fixture saturates: it shows nothing";
}

}  // namespace odt::test
