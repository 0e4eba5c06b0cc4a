#include "worker/replay.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "worker/host_model.h"

namespace odt::worker {
namespace {

Hash to_hash(const std::uint8_t (&raw)[32]) {
  Hash h;
  std::copy(std::begin(raw), std::end(raw), h.bytes.begin());
  return h;
}

Status load_weights(const std::string& blob, HostTrainer& host) {
  if (blob.empty()) return absl::OkStatus();
  odt_error_t error{};
  if (odt_weights_write(host.get(), false, 0, reinterpret_cast<const std::uint8_t*>(blob.data()),
                        static_cast<std::uint32_t>(blob.size()), &error) != ODT_OK ||
      odt_weights_write_end(host.get(), false, &error) != ODT_OK)
    return Status(host_status(error).code(),
                  absl::StrCat("start weights: ", host_status(error).message()));
  return absl::OkStatus();
}

// score: right answers or, without classes, the loss as the guard tells it (rule 1.10).
struct Heldout {
  std::uint32_t score = 0, total = 0;
};

Result<Heldout> eval_heldout(HostTrainer& host, const HostSamples& samples) {
  Heldout h;
  h.total = samples.get().count;
  if (h.total == 0) return h;
  std::uint64_t loss = 0;
  if (odt_trainer_eval(host.get(), &samples.get(), 0, h.total, &h.score, &loss, nullptr) != ODT_OK)
    return absl::InternalError("the held-out set cannot be evaluated");
  if (host.model().task != ODT_TASK_CLASSIFY)
    h.score = static_cast<std::uint32_t>(std::min<std::uint64_t>(loss, 0xFFFFFFFE));
  return h;
}

class Replay {
 public:
  Replay(const ReplayRequest& request, HostTrainer& host, const HostSamples& train,
         const HostSamples& heldout)
      : request_(request), host_(host), train_(train), heldout_(heldout) {}

  Result<ReplayVerdict> run(const data::Progress& progress) {
    if (heldout_.get().count > 0) {
      Heldout start;
      ODT_ASSIGN(start, eval_heldout(host_, heldout_));
      odt_trainer_set_start(host_.get(), start.score, start.total);
    }
    const std::uint32_t epochs = request_.spec.epochs;
    for (std::uint32_t e = 0; e < epochs; ++e) {
      ODT_TRY(epoch(e));
      progress(1000 * (e + 1) / epochs, absl::StrCat("epoch ", e + 1, " of ", epochs));
    }
    finish();
    return verdict_;
  }

 private:
  Status epoch(std::uint32_t e) {
    odt_error_t error{};
    while (!odt_trainer_epoch_complete(host_.get())) {
      odt_step_record_t rec{};
      ODT_TRY(steer());
      if (odt_trainer_step_resident(host_.get(), &train_.get(), &rec, &error) != ODT_OK)
        return host_status(error);
      compare_step(e, rec);
    }
    Heldout h;
    ODT_ASSIGN(h, eval_heldout(host_, heldout_));
    odt_epoch_record_t rec{};
    if (odt_trainer_end_epoch(host_.get(), h.score, h.total, &rec, &error) != ODT_OK)
      return host_status(error);
    const Hash hash = to_hash(rec.state_hash);
    verdict_.epoch_hashes.push_back(hash);
    for (const auto& known : request_.epochs) {
      if (known.epoch != e || known.state_hash.is_zero()) continue;
      ++verdict_.epochs_compared;
      if (known.state_hash != hash) differ(e, std::nullopt, known.state_hash);
    }
    return absl::OkStatus();
  }

  Status steer() {
    odt_error_t error{};
    for (const auto& s : request_.steering) {
      if (s.step != odt_trainer_step_count(host_.get())) continue;
      if (odt_trainer_set_k(host_.get(), s.layer, s.k, &error) != ODT_OK) return host_status(error);
    }
    return absl::OkStatus();
  }

  void compare_step(std::uint32_t e, const odt_step_record_t& rec) {
    while (next_step_ < request_.steps.size() && request_.steps[next_step_].step < rec.step)
      ++next_step_;
    if (next_step_ == request_.steps.size() || request_.steps[next_step_].step != rec.step) return;
    const auto& known = request_.steps[next_step_];
    ++verdict_.steps_compared;
    if (known.loss != rec.loss || known.correct != rec.correct) differ(e, rec.step, Hash{});
  }

  void differ(std::uint32_t e, std::optional<std::uint32_t> step, const Hash& expected) {
    if (!verdict_.first_different_epoch) {
      verdict_.first_different_epoch = e;
      verdict_.first_different_step = step;
    }
    if (verdict_.expected_state_hash.is_zero()) verdict_.expected_state_hash = expected;
  }

  void finish() {
    std::uint8_t raw[32];
    odt_state_hash(host_.get(), raw);
    verdict_.state_hash = to_hash(raw);
    odt_weights_hash(host_.get(), false, raw);
    verdict_.weights_hash = to_hash(raw);
    const std::uint32_t last = request_.spec.epochs - 1u;
    const bool state_known = !request_.final_state_hash.is_zero();
    if (state_known && request_.final_state_hash != verdict_.state_hash)
      differ(last, std::nullopt, request_.final_state_hash);
    if (!request_.final_weights_hash.is_zero() &&
        request_.final_weights_hash != verdict_.weights_hash)
      differ(last, std::nullopt, request_.final_state_hash);
    if (verdict_.expected_state_hash.is_zero())
      verdict_.expected_state_hash = request_.final_state_hash;
    verdict_.equal = !verdict_.first_different_epoch.has_value();
  }

  const ReplayRequest& request_;
  HostTrainer& host_;
  const HostSamples& train_;
  const HostSamples& heldout_;
  ReplayVerdict verdict_;
  std::size_t next_step_ = 0;
};

}  // namespace

Result<ReplayVerdict> replay(const ReplayRequest& request, const data::Progress& progress) {
  if (request.rules_version != 0 && request.rules_version != ODT_RULES_VERSION)
    return absl::FailedPreconditionError(
        absl::StrCat("the run was made with rules_version ", request.rules_version,
                     "; this release replays rules_version ", ODT_RULES_VERSION,
                     "; use the release of the firmware that ran it"));
  if (request.epochs.empty() && request.final_state_hash.is_zero() &&
      request.final_weights_hash.is_zero())
    return absl::FailedPreconditionError("the run recorded no hash to compare with");
  std::unique_ptr<HostTrainer> host;
  ODT_ASSIGN(host, HostTrainer::create(request.image, request.spec));
  HostSamples train, heldout;
  ODT_ASSIGN(train, HostSamples::open(request.train, host->model()));
  ODT_ASSIGN(heldout, HostSamples::open(request.heldout, host->model()));
  if (train.get().count != request.spec.train_samples ||
      heldout.get().count != request.spec.heldout_samples)
    return absl::InvalidArgumentError(absl::StrCat(
        "the run had ", request.spec.train_samples, " training and ", request.spec.heldout_samples,
        " held-out samples; the sets have ", train.get().count, " and ", heldout.get().count));
  ODT_TRY(load_weights(request.start_weights, *host));
  return Replay(request, *host, train, heldout).run(progress);
}

}  // namespace odt::worker
