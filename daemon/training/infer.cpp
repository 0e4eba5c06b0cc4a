#include <absl/strings/str_cat.h>

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

asio::awaitable<Result<model::Inference>> Orchestrator::Impl::infer(BoardUid uid, Uuid dataset,
                                                                    std::string split,
                                                                    std::uint32_t first,
                                                                    std::uint32_t count) {
  const auto self = shared_from_this();
  auto session = require_session(uid);
  if (!session.ok()) co_return session.status();
  auto free = require_free(uid);
  if (!free.ok()) co_return free;
  auto guard = co_await slot(uid).exclusive.lock();
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
    auto sent = co_await (*session)->send(model::Resource::kInferInput, 0, input);
    if (!sent.ok()) co_return sent;
    auto report = co_await (*session)->infer();
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
