#include "worker/host_model.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "odt/trainer.h"

namespace odt::worker {
namespace {

std::vector<std::uint32_t> aligned(const std::string& bytes) {
  std::vector<std::uint32_t> words((bytes.size() + 3) / 4);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(words.data()));
  return words;
}

}  // namespace

Status host_status(const odt_error_t& e) {
  std::string text = e.what != nullptr ? e.what : "firmware library";
  if (e.index >= 0) absl::StrAppend(&text, " (number ", e.index, ")");
  absl::StrAppend(&text, ": got ", e.got, "; expected ", e.limit_lo, "..", e.limit_hi);
  return Status(static_cast<absl::StatusCode>(e.status), text);
}

struct HostTrainer::Impl {
  std::vector<std::uint32_t> image;
  odt_model_t model{};
  std::vector<std::uint64_t> arena;
  odt_trainer trainer{};
};

HostTrainer::HostTrainer() : impl_(std::make_unique<Impl>()) {}
HostTrainer::~HostTrainer() = default;
const odt_model_t& HostTrainer::model() const { return impl_->model; }
odt_trainer_t* HostTrainer::get() { return &impl_->trainer; }

odt_run_spec_t HostTrainer::inference_spec(bool dfp16) {
  odt_run_spec_t spec{};
  spec.rule_set = dfp16 ? ODT_RULE_DFP16 : ODT_RULE_NITI;
  spec.loss = dfp16 ? ODT_LOSS_CE : ODT_LOSS_MSE;
  spec.shift_source = ODT_SHIFT_EXACT;
  spec.k = dfp16 ? 0 : 8;
  for (auto& m : spec.lr_m) m = dfp16 ? 1 : 0;
  spec.batch = 1;
  spec.epochs = 1;
  spec.train_samples = 1;
  std::fill(std::begin(spec.class_weights), std::end(spec.class_weights), 64);
  return spec;
}

Result<std::unique_ptr<HostTrainer>> HostTrainer::create(const std::string& image,
                                                         const odt_run_spec_t& spec) {
  std::unique_ptr<HostTrainer> host(new HostTrainer);
  Impl& s = *host->impl_;
  s.image = aligned(image);
  odt_error_t error{};
  if (odt_model_open(&s.model, s.image.data(), static_cast<std::uint32_t>(image.size()), &error) !=
      ODT_OK)
    return host_status(error);
  if (odt_run_spec_check(&spec, &s.model, &error) != ODT_OK) return host_status(error);
  odt_memory_plan_t plan{};
  odt_trainer_plan(&s.model, &spec, true, &plan);
  s.arena.resize((plan.total_bytes + 7) / 8 + 1);
  if (odt_trainer_init(&s.trainer, &s.model, &spec, true, s.arena.data(),
                       static_cast<std::uint32_t>(s.arena.size() * 8), &error) != ODT_OK)
    return host_status(error);
  return host;
}

Result<HostSamples> HostSamples::open(const std::string& blob, const odt_model_t& model) {
  HostSamples s;
  if (blob.empty()) return s;
  s.words_ = aligned(blob);
  odt_error_t error{};
  if (odt_samples_open(&s.samples_, s.words_.data(), static_cast<std::uint32_t>(blob.size()),
                       &error) != ODT_OK)
    return host_status(error);
  if (odt_samples_fit(&s.samples_, &model, &error) != ODT_OK) return host_status(error);
  return s;
}

}  // namespace odt::worker
