#pragma once

#include "store/body_fields.h"

// body_fields.h of campaigns. Inside of body_codec.cpp.
namespace odt::store {

template <typename V>
void fields(V& f, model::SweepAxis& v) {
  f("name", v.name);
  f("values", v.values);
}
template <typename V>
void fields(V& f, model::SweepSpec& v) {
  f("strategy", v.strategy);
  f("axes", v.axes);
  f("trials", v.trials);
  f("seed", v.seed);
  f("eta", v.eta);
  f("min_epochs", v.min_epochs);
  f("budget_board_s", v.budget_board_s);
}
template <typename V>
void fields(V& f, model::RolloutSpec& v) {
  f("snapshot", v.snapshot);
  f("canary_ppm", v.canary_ppm);
  f("phases_ppm", v.phases_ppm);
  f("max_drop_ppm", v.max_drop_ppm);
  f("split", v.split);
  f("commit", v.commit);
}
template <typename V>
void fields(V& f, model::FederatedSpec& v) {
  f("rounds", v.rounds);
  f("min_boards", v.min_boards);
  f("deadline_s", v.deadline_s);
  f("outlier_q8", v.outlier_q8);
  f("personalise_epochs", v.personalise_epochs);
}
template <typename V>
void fields(V& f, model::BoardDataset& v) {
  f("board", v.board);
  f("dataset", v.dataset);
}
template <typename V>
void fields(V& f, model::CampaignSpec& v) {
  f("name", v.name);
  f("kind", v.kind);
  f("query", v.query);
  f("boards", v.boards);
  f("model_hash", v.model_hash);
  f("dataset_id", v.dataset_id);
  f("datasets", v.datasets);
  f("hyper", v.hyper);
  f("start_snapshot", v.start_snapshot);
  f("evaluate", v.evaluate);
  f("resume_deadline_s", v.resume_deadline_s);
  f("sweep", v.sweep);
  f("hyper_b", v.hyper_b);
  f("rollout", v.rollout);
  f("federated", v.federated);
  f("max_parallel", v.max_parallel);
}
template <typename V>
void fields(V& f, model::TwinResult& v) {
  f("what", v.what);
  f("step", v.step);
  f("layer", v.layer);
  f("a", v.a);
  f("b", v.b);
  f("first_state_epoch", v.first_state_epoch);
  f("steps_compared", v.steps_compared);
  f("settings", v.settings);
}
template <typename V>
void fields(V& f, model::Campaign& v) {
  f("id", v.id);
  f("spec", v.spec);
  f("state", v.state);
  f("desired", v.desired);
  f("reason", v.reason);
  f("boards", v.boards);
  f("round", v.round);
  f("rounds_total", v.rounds_total);
  f("units_total", v.units_total);
  f("units_running", v.units_running);
  f("units_done", v.units_done);
  f("units_failed", v.units_failed);
  f("best_unit", v.best_unit);
  f("result", v.result);
  f("twin", v.twin);
  f("board_us", v.board_us);
  f("start_time_us", v.start_time_us);
  f("end_time_us", v.end_time_us);
  f("owner", v.owner);
  f("meta", v.meta);
}
template <typename V>
void fields(V& f, model::CampaignEvent& v) {
  f("campaign_id", v.campaign_id);
  f("seq", v.seq);
  f("time_us", v.time_us);
  f("from", v.from);
  f("to", v.to);
  f("cause", v.cause);
  f("actor", v.actor);
  f("command_id", v.command_id);
}
template <typename V>
void fields(V& f, model::CampaignUnit& v) {
  f("campaign_id", v.campaign_id);
  f("index", v.index);
  f("round", v.round);
  f("trial", v.trial);
  f("board", v.board);
  f("model_hash", v.model_hash);
  f("dataset_id", v.dataset_id);
  f("hyper", v.hyper);
  f("start_snapshot", v.start_snapshot);
  f("state", v.state);
  f("reason", v.reason);
  f("run_id", v.run_id);
  f("tries", v.tries);
  f("before", v.before);
  f("after", v.after);
  f("heldout_start", v.heldout_start);
  f("heldout_best", v.heldout_best);
  f("heldout_best_loss", v.heldout_best_loss);
  f("train_samples", v.train_samples);
  f("weights", v.weights);
  f("previous", v.previous);
  f("drift_l1", v.drift_l1);
  f("changed_ppm", v.changed_ppm);
  f("weight", v.weight);
  f("start_time_us", v.start_time_us);
  f("end_time_us", v.end_time_us);
  f("steps_done", v.steps_done);
  f("personal", v.personal);
  f("held", v.held);
  f("stage", v.stage);
}
template <typename V>
void fields(V& f, model::CampaignRound& v) {
  f("campaign_id", v.campaign_id);
  f("round", v.round);
  f("start", v.start);
  f("average", v.average);
  f("boards", v.boards);
  f("averaged", v.averaged);
  f("samples", v.samples);
  f("median_l1", v.median_l1);
  f("start_time_us", v.start_time_us);
  f("end_time_us", v.end_time_us);
}

}  // namespace odt::store
