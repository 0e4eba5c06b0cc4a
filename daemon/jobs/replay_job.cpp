#include "jobs/replay_job.h"

#include <nlohmann/json.hpp>

namespace odt::jobs {
namespace {

using nlohmann::json;

struct Record {
  model::Run run;
  model::Dataset dataset;
  model::DerivedSamples samples;
  std::vector<model::EpochResult> epochs;
};

Result<Record> read_record(store::ControlStore& s, Uuid id) {
  Record r;
  ODT_ASSIGN(r.run, s.run(id));
  if (!model::is_final(r.run.state))
    return absl::FailedPreconditionError("run " + id.hex() +
                                         " has not ended; replay it when it has");
  ODT_ASSIGN(r.dataset, s.dataset(r.run.spec.dataset_id));
  ODT_ASSIGN(r.samples, s.derived(r.dataset.content_hash, r.run.spec.model_hash));
  ODT_ASSIGN(r.epochs, s.epochs(id));
  return r;
}

json spec_json(const Record& r) {
  const model::HyperParams& h = r.run.effective;
  const bool heldout = !r.samples.heldout.is_zero();
  return {{"rule_set", static_cast<int>(h.rule_set)},
          {"rounding", static_cast<int>(h.rounding)},
          {"loss", static_cast<int>(h.loss)},
          {"shift_source", static_cast<int>(h.shift_source)},
          {"mu_weight", h.mu_weight},
          {"mu_offset", h.mu_offset.value_or(1)},
          {"dead_zone", h.dead_zone.value_or(0)},
          {"k", h.k.value_or(8)},
          {"batch", h.batch.value_or(8)},
          {"epochs", h.epochs.value_or(10)},
          {"order_seed", h.order_seed.value_or(0)},
          {"sr_seed", h.sr_seed.value_or(0)},
          {"guard", h.guard.value_or(true) && heldout},
          {"layer_k", h.layer_k},
          {"apt_mode", static_cast<int>(h.apt)},
          {"apt_k_max", h.apt_k_max.value_or(0)},
          {"apt_offsets", h.apt_offsets.value_or(false)},
          {"apt_t_min_q8", h.apt_t_min_q8.value_or(0)},
          {"apt_t_max_q8", h.apt_t_max_q8.value_or(0)},
          {"lr_m", h.lr_m},
          {"lr_s", h.lr_s.value_or(0)},
          {"blocked", h.blocked.value_or(false)},
          {"train_samples", r.run.train_samples > 0 ? r.run.train_samples : r.dataset.train},
          {"heldout_samples", heldout ? r.dataset.heldout : 0}};
}

}  // namespace

Result<json> prepare_replay(const WorkContext& c, Uuid run) {
  Record r;
  ODT_ASSIGN(r, c.control.call_sync([run](store::ControlStore& s) { return read_record(s, run); }));
  json job = {{"kind", "replay"},
              {"spec", spec_json(r)},
              {"rules_version", r.run.rules_version},
              {"sample_set_hash", r.samples.sample_set_hash.hex()},
              {"steering", json::array()},
              {"epochs", json::array()}};
  for (const auto& s : r.run.steering)
    job["steering"].push_back({{"step", s.step}, {"layer", s.layer}, {"k", s.k}});
  ODT_ASSIGN(job["image"], blob_file(c, r.run.spec.model_hash, "in.odtm"));
  ODT_ASSIGN(job["train"], blob_file(c, r.samples.train, "train.odts"));
  if (!r.samples.heldout.is_zero()) {
    ODT_ASSIGN(job["heldout"], blob_file(c, r.samples.heldout, "heldout.odts"));
  }
  if (!r.run.spec.start_snapshot.is_zero()) {
    ODT_ASSIGN(job["start_weights"], blob_file(c, r.run.spec.start_snapshot, "start.odtw"));
  }
  for (const auto& e : r.epochs)
    job["epochs"].push_back(
        {{"epoch", e.epoch}, {"step", e.step}, {"state_hash", e.state_hash.hex()}});
  if (r.run.state != model::RunState::kSucceeded) return job;
  if (!r.run.final_state_hash.is_zero()) job["final_state_hash"] = r.run.final_state_hash.hex();
  if (!r.run.final_weights_hash.is_zero())
    job["final_weights_hash"] = r.run.final_weights_hash.hex();
  return job;
}

}  // namespace odt::jobs
