#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>

#include "data/quantize.h"
#include "training/orchestrator_impl.h"
#include "training/run_checks.h"

// Samples of a split through the weights that a board holds, one at a time.
namespace odt::training {
namespace {

Hash split_blob(const model::DerivedSamples& d, const std::string& split, bool frozen) {
  if (split == "train") return frozen ? d.frozen_train : d.train;
  if (split == "heldout") return frozen ? d.frozen_heldout : d.heldout;
  return frozen ? d.frozen_test : d.test;
}

std::vector<std::int8_t> integers(const std::string& bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace

asio::awaitable<Result<Orchestrator::Impl::ModelSamples>> Orchestrator::Impl::samples_of(
    Uuid dataset, Hash model_hash, std::string split, bool frozen) {
  jobs::JobControl& jobs = env_->jobs;
  CallContext ctx;
  ctx.command_id = new_uuid();
  std::function<void(Done<model::DerivedSamples>)> operation =
      [&jobs, ctx, dataset, model_hash, frozen](Done<model::DerivedSamples> done) {
        if (frozen)
          jobs.freeze(ctx, dataset, model_hash, std::move(done));
        else
          jobs.derive(ctx, dataset, model_hash, std::move(done));
      };
  auto derived = co_await await_done<model::DerivedSamples>(env_->io, std::move(operation));
  if (!derived.ok()) co_return derived.status();
  auto net = co_await find_model(*env_, model_hash);
  if (!net.ok()) co_return net.status();
  ModelSamples out;
  out.outputs = derived->outputs.count != 0 ? derived->outputs : net->outputs;
  const Hash blob = split_blob(*derived, split, frozen);
  auto set = co_await load_samples(*env_, blob, target_count(net->outputs, frozen));
  if (!set.ok()) co_return set.status();
  if (set->empty())
    co_return with_reason(
        absl::FailedPreconditionError("the dataset has no samples in split " + split), "NO_SAMPLES",
        "Choose another split.");
  out.set = std::move(*set);
  out.dfp16 = net->arithmetic == 1;
  co_return out;
}

asio::awaitable<Result<model::InferReport>> Orchestrator::Impl::infer_one(
    Session session, std::shared_ptr<const std::string> input) {
  auto sent = co_await session->send(model::Resource::kInferInput, 0, std::move(input));
  if (!sent.ok()) co_return sent;
  env_->progress(session->hello().uid);
  auto report = co_await session->infer();
  co_return report;
}

asio::awaitable<Result<Hash>> Orchestrator::Impl::keep_wrong(
    Session session, std::shared_ptr<const data::SampleSet> set, std::vector<std::uint32_t> wrong,
    StopFn stop) {
  if (wrong.empty()) co_return Hash{};
  auto bytes = std::make_shared<std::string>();
  const auto put = [&bytes](std::uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8)
      bytes->push_back(static_cast<char>(value >> shift & 255));
  };
  for (const std::uint32_t index : wrong) {
    if (stop()) co_return absl::CancelledError("the evaluation was stopped");
    auto input = std::make_shared<const std::string>(set->values(index));
    auto report = co_await infer_one(session, input);
    if (!report.ok()) co_return report.status();
    put(index);
    put(static_cast<unsigned char>(set->labels(index)[0]));
    put(report->predicted);
  }
  auto blob = co_await env_->write_blob(std::move(bytes));
  co_return blob;
}

namespace {

// Source values as the model's input stage makes them.
Result<std::string> quantised(const data::InputStage& in, const std::vector<float>& values) {
  if (values.size() != in.count())
    return with_reason(absl::InvalidArgumentError(absl::StrCat(
                           "values: ", values.size(), " are given; the model takes ", in.count())),
                       "SHAPE_MISMATCH", "Give one value for each of the model's inputs.");
  const std::size_t channels = std::max<std::size_t>(1, in.offset.size());
  const std::size_t each = std::max<std::size_t>(1, values.size() / channels);
  const bool wide = in.dtype == data::Dtype::kS16;
  const std::int32_t low = in.dtype == data::Dtype::kU8 ? 0 : wide ? -32768 : -128;
  const std::int32_t high = in.dtype == data::Dtype::kU8 ? 255 : wide ? 32767 : 127;
  std::string out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float v = values[i];
    if (!std::isfinite(v))
      return absl::InvalidArgumentError(absl::StrCat("values: number ", i, " is not finite"));
    std::int32_t q = 0;
    if (in.has_prequant()) {
      const auto channel = static_cast<std::uint32_t>(std::min(i / each, channels - 1));
      q = v == std::floor(v) && std::fabs(v) < 32768
              ? data::quantize_int(in, channel, static_cast<std::int32_t>(v))
              : data::quantize_float(in, channel, v);
    } else if (v != std::floor(v) || v < static_cast<float>(low) || v > static_cast<float>(high)) {
      return with_reason(absl::InvalidArgumentError(absl::StrCat("values: number ", i, " is ", v,
                                                                 "; the model takes integers from ",
                                                                 low, " to ", high)),
                         "OUT_OF_RANGE",
                         "Its file has no input scaling: give the values that the board gets.");
    } else {
      q = static_cast<std::int32_t>(v);
    }
    out.push_back(static_cast<char>(q & 255));
    if (wide) out.push_back(static_cast<char>(q >> 8 & 255));
  }
  return out;
}

}  // namespace

asio::awaitable<Result<model::Inference>> Orchestrator::Impl::infer_values(
    CallContext ctx, BoardUid uid, std::vector<float> values) {
  const auto self = shared_from_this();
  auto session = require_session(uid);
  if (!session.ok()) co_return session.status();
  auto free = require_free(uid);
  if (!free.ok()) co_return free;
  auto guard = co_await slot(uid).exclusive.lock(Uuid{}, "infer", ctx.actor);
  auto state = co_await (*session)->get_state(false);
  if (!state.ok()) co_return state.status();
  if (state->model_hash.is_zero() || !state->has_weights)
    co_return with_reason(absl::FailedPreconditionError("the board holds no weights"), "NO_WEIGHTS",
                          "Restore a snapshot, or train first.");
  if (state->tail)
    co_return with_reason(absl::FailedPreconditionError(
                              "the board holds the trainable part of its model alone, which "
                              "takes frozen outputs"),
                          "TAIL_ONLY",
                          "Use a sample of a dataset, or a board with room for the whole model.");
  auto net = co_await find_model(*env_, state->model_hash);
  if (!net.ok()) co_return net.status();
  auto stage = co_await input_stage(*env_, state->model_hash);
  if (!stage.ok()) co_return stage.status();
  auto input = quantised(*stage, values);
  if (!input.ok()) co_return input.status();
  auto report =
      co_await infer_one(*session, std::make_shared<const std::string>(std::move(*input)));
  if (!report.ok()) co_return report.status();
  model::Inference out;
  out.outputs = net->outputs;
  out.there = 1;
  model::Inference::Sample sample;
  sample.outputs = std::move(report->logits);
  sample.predicted = report->predicted;
  out.samples.push_back(std::move(sample));
  co_return out;
}

asio::awaitable<Result<model::Inference>> Orchestrator::Impl::infer(BoardUid uid, Uuid dataset,
                                                                    std::string split,
                                                                    std::uint32_t first,
                                                                    std::uint32_t count) {
  const auto self = shared_from_this();
  auto session = require_session(uid);
  if (!session.ok()) co_return session.status();
  auto free = require_free(uid);
  if (!free.ok()) co_return free;
  auto guard = co_await slot(uid).exclusive.lock(Uuid{}, "infer", "odtd");
  auto state = co_await (*session)->get_state(false);
  if (!state.ok()) co_return state.status();
  if (state->model_hash.is_zero() || !state->has_weights)
    co_return with_reason(absl::FailedPreconditionError("the board holds no weights"), "NO_WEIGHTS",
                          "Restore a snapshot, or train first.");
  auto samples = co_await samples_of(dataset, state->model_hash, split, state->tail);
  if (!samples.ok()) co_return samples.status();
  if (samples->dfp16 && !samples->outputs.has_classes())
    co_return with_reason(
        absl::UnimplementedError(
            "outputs of a DFP16 model without classes come without their exponent"),
        "DFP16_OUTPUTS", "Measure it: odtctl eval.");
  model::Inference out;
  out.outputs = samples->outputs;
  out.there = samples->set.count();
  if (first >= out.there)
    co_return with_reason(
        absl::InvalidArgumentError(absl::StrCat("first is ", first, "; split ", split, " has ",
                                                out.there, " samples, from 0")),
        "OUT_OF_RANGE", absl::StrCat("Choose a sample below ", out.there, "."));
  for (std::uint32_t i = first; i < out.there && i - first < count; ++i) {
    if (env_->stopping) co_return absl::CancelledError("odtd stops");
    auto input = std::make_shared<const std::string>(samples->set.values(i));
    auto report = co_await infer_one(*session, input);
    if (!report.ok()) co_return report.status();
    model::Inference::Sample sample;
    sample.index = i;
    sample.outputs = std::move(report->logits);
    sample.predicted = report->predicted;
    const bool own = out.outputs.task == model::Task::kAutoencode && !state->tail;
    sample.wanted = integers(own ? *input : samples->set.labels(i));
    out.samples.push_back(std::move(sample));
  }
  co_return out;
}

}  // namespace odt::training
