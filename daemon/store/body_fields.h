#pragma once

#include "model/event.h"
#include "store/keys.h"

// Names of every stored field, once for writing and reading: visitor(name, member). A name is on
// disk: never give one another meaning. Inside of body_codec.cpp.
namespace odt::store {

template <typename V>
void fields(V& f, model::Meta& v) {
  f("gateway_id", v.gateway_id);
  f("created_by", v.created_by);
  f("create_time_us", v.create_time_us);
  f("etag", v.etag);
}
template <typename V>
void fields(V& f, model::Loss& v) {
  f("sum", v.sum);
  f("exp2", v.exp2);
  f("count", v.count);
  f("kind", v.kind);
}
template <typename V>
void fields(V& f, model::Accuracy& v) {
  f("correct", v.correct);
  f("total", v.total);
}
template <typename V>
void fields(V& f, model::Outputs& v) {
  f("task", v.task);
  f("count", v.count);
  f("offset_f32", v.offset);
  f("scale_f32", v.scale);
}
template <typename V>
void fields(V& f, model::Scores& v) {
  f("min", v.min);
  f("median", v.median);
  f("p95", v.p95);
  f("max", v.max);
  f("blob", v.blob);
}
template <typename V>
void fields(V& f, model::Reason& v) {
  f("code", v.code);
  f("text", v.text);
  f("remedy", v.remedy);
}
template <typename V>
void fields(V& f, model::Board& v) {
  f("uid", v.uid);
  f("name", v.name);
  f("place", v.place);
  f("labels", v.labels);
  f("board_type", v.board_type);
  f("core", v.core);
  f("fw_version", v.fw_version);
  f("rules_version", v.rules_version);
  f("boot_id", v.boot_id);
  f("caps", v.caps);
  f("ram_bytes", v.ram_bytes);
  f("max_layers", v.max_layers);
  f("max_batch", v.max_batch);
  f("mtu", v.mtu);
  f("status", v.status);
  f("last_seen_time_us", v.last_seen_time_us);
  f("online_since_time_us", v.online_since_time_us);
  f("model_hash", v.model_hash);
  f("state_hash", v.state_hash);
  f("run_id", v.run_id);
  f("last_step", v.last_step);
  f("reset_reason", v.reset_reason);
  f("boots_seen", v.boots_seen);
  f("nvm_sequence", v.nvm_sequence);
  f("nvm_step", v.nvm_step);
  f("restored", v.restored);
  f("reservation", v.reservation);
  f("maintenance", v.maintenance);
  f("target_snapshot", v.target_snapshot);
  f("power_last_us", v.power.last_us);
  f("meta", v.meta);
}
template <typename V>
void fields(V& f, model::Port& v) {
  f("path", v.path);
  f("by_id", v.by_id);
  f("by_path", v.by_path);
  f("usb_vid", v.usb_vid);
  f("usb_pid", v.usb_pid);
  f("usb_serial", v.usb_serial);
  f("description", v.description);
  f("adopted", v.adopted);
  f("allowed", v.allowed);
  f("board_uid", v.board_uid);
  f("expect_uid", v.expect_uid);
  f("baud", v.baud);
  f("meta", v.meta);
}
template <typename V>
void fields(V& f, model::LayerInfo& v) {
  f("name", v.name);
  f("kind", v.kind);
  f("weight_shape", v.weight_shape);
  f("output_shape", v.output_shape);
  f("weights", v.weights);
  f("k_out_min", v.k_out_min);
  f("k_out_max", v.k_out_max);
  f("macs", v.macs);
  f("trainable", v.trainable);
}
template <typename V>
void fields(V& f, model::RamPlan& v) {
  f("weights_k8", v.weights_k8);
  f("weights_k16", v.weights_k16);
  f("work_1", v.work_1);
  f("work_2", v.work_2);
  f("work_4", v.work_4);
  f("work_8", v.work_8);
  f("work_per_8", v.work_per_8);
}
template <typename V>
void fields(V& f, model::TailPlan& v) {
  f("image", v.image);
  f("image_bytes", v.image_bytes);
  f("sample_bytes", v.sample_bytes);
  f("ram", v.ram);
}
template <typename V>
void fields(V& f, model::StepTime& v) {
  f("board", v.board);
  f("infer_ns", v.infer_ns);
  f("k8_b1_ns", v.k8_b1_ns);
  f("k8_b8_ns", v.k8_b8_ns);
  f("k15_b1_ns", v.k15_b1_ns);
  f("k15_b8_ns", v.k15_b8_ns);
}
template <typename V>
void fields(V& f, model::Model& v) {
  f("hash", v.hash);
  f("name", v.name);
  f("image_bytes", v.image_bytes);
  f("onnx_hash", v.onnx_hash);
  f("trainable_layers", v.trainable_layers);
  f("n_classes", v.n_classes);
  f("input_shape", v.input_shape);
  f("source_accuracy", v.source_accuracy);
  f("has_ce_scale", v.has_ce_scale);
  f("arithmetic", v.arithmetic);
  f("input_value_bytes", v.input_value_bytes);
  f("outputs", v.outputs);
  f("layers", v.layers);
  f("ram_k8_bytes", v.ram_k8_bytes);
  f("ram_k16_bytes", v.ram_k16_bytes);
  f("ram", v.ram);
  f("tail", v.tail);
  f("times", v.times);
  f("meta", v.meta);
}
template <typename V>
void fields(V& f, model::Dataset& v) {
  f("id", v.id);
  f("content_hash", v.content_hash);
  f("name", v.name);
  f("dtype", v.dtype);
  f("shape", v.shape);
  f("train", v.train);
  f("heldout", v.heldout);
  f("test", v.test);
  f("n_classes", v.n_classes);
  f("class_names", v.class_names);
  f("class_counts", v.class_counts);
  f("source", v.source);
  f("bytes", v.bytes);
  f("outputs", v.outputs);
  f("warnings", v.warnings);
  f("report_hash", v.report_hash);
  f("meta", v.meta);
}
template <typename V>
void fields(V& f, model::DerivedSamples& v) {
  f("content_hash", v.content_hash);
  f("model_hash", v.model_hash);
  f("train", v.train);
  f("heldout", v.heldout);
  f("test", v.test);
  f("sample_set_hash", v.sample_set_hash);
  f("outputs", v.outputs);
  f("frozen_train", v.frozen_train);
  f("frozen_heldout", v.frozen_heldout);
  f("frozen_test", v.frozen_test);
}
template <typename V>
void fields(V& f, model::Snapshot& v) {
  f("hash", v.hash);
  f("model_hash", v.model_hash);
  f("board_uid", v.board_uid);
  f("run_id", v.run_id);
  f("attempt", v.attempt);
  f("step", v.step);
  f("parent", v.parent);
  f("aliases", v.aliases);
  f("heldout", v.heldout);
  f("heldout_loss", v.heldout_loss);
  f("bytes", v.bytes);
  f("note", v.note);
  f("parents", v.parents);
  f("campaign_id", v.campaign_id);
  f("chain", v.chain);
  f("parent_chain", v.parent_chain);
  f("origin", v.origin);
  f("pinned", v.pinned);
  f("meta", v.meta);
}
template <typename V>
void fields(V& f, model::Evaluation& v) {
  f("id", v.id);
  f("board_uid", v.board_uid);
  f("model_hash", v.model_hash);
  f("snapshot", v.snapshot);
  f("dataset_id", v.dataset_id);
  f("split", v.split);
  f("accuracy", v.accuracy);
  f("confusion", v.confusion);
  f("loss", v.loss);
  f("outputs", v.outputs);
  f("scores", v.scores);
  f("wrong", v.wrong);
  f("class_totals", v.class_totals);
  f("class_correct", v.class_correct);
  f("meta", v.meta);
}
template <typename V>
void fields(V& f, model::Job& v) {
  f("id", v.id);
  f("kind", v.kind);
  f("state", v.state);
  f("progress_permille", v.progress_permille);
  f("message", v.message);
  f("reason", v.reason);
  f("result_key", v.result_key);
  f("result_json", v.result_json);
  f("request_json", v.request_json);
  f("meta", v.meta);
}
template <typename V>
void fields(V& f, model::Upload& v) {
  f("id", v.id);
  f("name", v.name);
  f("size", v.size);
  f("sha256", v.sha256);
  f("received", v.received);
  f("meta", v.meta);
}
template <typename V>
void fields(V& f, model::HyperParams& v) {
  f("policy", v.policy);
  f("rule_set", v.rule_set);
  f("rounding", v.rounding);
  f("loss", v.loss);
  f("shift_source", v.shift_source);
  f("mu_weight", v.mu_weight);
  f("mu_offset", v.mu_offset);
  f("dead_zone", v.dead_zone);
  f("k", v.k);
  f("batch", v.batch);
  f("epochs", v.epochs);
  f("order_seed", v.order_seed);
  f("sr_seed", v.sr_seed);
  f("guard", v.guard);
  f("telemetry_every", v.telemetry_every);
  f("streamed", v.streamed);
  f("checkpoint_epochs", v.checkpoint_epochs);
  f("layer_k", v.layer_k);
  f("apt", v.apt);
  f("apt_k_max", v.apt_k_max);
  f("apt_t_min_q8", v.apt_t_min_q8);
  f("apt_t_max_q8", v.apt_t_max_q8);
  f("apt_offsets", v.apt_offsets);
  f("lr_m", v.lr_m);
  f("lr_s", v.lr_s);
  f("blocked", v.blocked);
  f("best_on_host", v.best_on_host);
  f("frozen", v.frozen);
  f("tail", v.tail);
  f("commit_every", v.commit_every);
}
template <typename V>
void fields(V& f, model::Steer& v) {
  f("step", v.step);
  f("layer", v.layer);
  f("k", v.k);
}
template <typename V>
void fields(V& f, model::NvmPoint& v) {
  f("step", v.step);
  f("state_hash", v.state_hash);
}
template <typename V>
void fields(V& f, model::RunSpec& v) {
  f("board_uid", v.board_uid);
  f("model_hash", v.model_hash);
  f("dataset_id", v.dataset_id);
  f("hyper", v.hyper);
  f("start_snapshot", v.start_snapshot);
  f("evaluate", v.evaluate);
  f("name", v.name);
  f("resume_deadline_s", v.resume_deadline_s);
  f("campaign_id", v.campaign_id);
  f("campaign_unit", v.campaign_unit);
  f("priority", v.priority);
  f("captured", v.captured);
}
template <typename V>
void fields(V& f, model::RunTiming& v) {
  f("step_us", v.step_us);
  f("link_bytes_per_s", v.link_bytes_per_s);
  f("sample_us", v.sample_us);
  f("epoch_us", v.epoch_us);
}
template <typename V>
void fields(V& f, model::RunSetting& v) {
  f("key", v.key);
  f("value", v.value);
  f("scope", v.scope);
  f("target", v.target);
}
template <typename V>
void fields(V& f, model::Run& v) {
  f("id", v.id);
  f("spec", v.spec);
  f("state", v.state);
  f("desired", v.desired);
  f("reason", v.reason);
  f("attempt", v.attempt);
  f("effective", v.effective);
  f("steps_done", v.steps_done);
  f("steps_total", v.steps_total);
  f("epochs_done", v.epochs_done);
  f("before", v.before);
  f("after", v.after);
  f("heldout_start", v.heldout_start);
  f("heldout_best", v.heldout_best);
  f("outputs", v.outputs);
  f("before_loss", v.before_loss);
  f("after_loss", v.after_loss);
  f("heldout_start_loss", v.heldout_start_loss);
  f("heldout_best_loss", v.heldout_best_loss);
  f("best_step", v.best_step);
  f("final_state_hash", v.final_state_hash);
  f("final_weights_hash", v.final_weights_hash);
  f("rules_version", v.rules_version);
  f("start_time_us", v.start_time_us);
  f("end_time_us", v.end_time_us);
  f("train_samples", v.train_samples);
  f("replay", v.replay);
  f("checkpoint_state", v.checkpoint_state);
  f("checkpoint_best", v.checkpoint_best);
  f("best_weights", v.best_weights);
  f("checkpoint_step", v.checkpoint_step);
  f("waiting_since_us", v.waiting_since_us);
  f("steering", v.steering);
  f("placement", v.placement);
  f("nvm_points", v.nvm_points);
  f("pinned", v.pinned);
  f("settings", v.settings);
  f("attempt_step", v.attempt_step);
  f("captured_set", v.captured_set);
  f("captured_heldout", v.captured_heldout);
  f("retry_of", v.retry_of);
  f("priority", v.priority);
  f("queue_rank", v.queue_rank);
  f("eta_time_us", v.eta_time_us);
  f("timing", v.timing);
  f("guard_verdict", v.guard_verdict);
  f("verdict_text", v.verdict_text);
  f("warnings", v.warnings);
  f("owner", v.owner);
  f("meta", v.meta);
}
template <typename V>
void fields(V& f, model::RunEvent& v) {
  f("run_id", v.run_id);
  f("seq", v.seq);
  f("time_us", v.time_us);
  f("from", v.from);
  f("to", v.to);
  f("cause", v.cause);
  f("actor", v.actor);
  f("command_id", v.command_id);
}
template <typename V>
void fields(V& f, model::LayerEpoch& v) {
  f("bits_min", v.bits_min);
  f("bits_mean_q8", v.bits_mean_q8);
  f("bits_max", v.bits_max);
  f("shift", v.shift);
  f("nonzero_deltas_ppm", v.nonzero_deltas_ppm);
  f("mean_abs_delta_q8", v.mean_abs_delta_q8);
  f("zero_propagated_ppm", v.zero_propagated_ppm);
  f("saturated", v.saturated);
  f("dead_units", v.dead_units);
  f("k", v.k);
  f("u_q8", v.u_q8);
  f("k_off", v.k_off);
  f("sum_n", v.sum_n);
  f("logical_bits", v.logical_bits);
  f("resident_bytes", v.resident_bytes);
  f("e_d", v.e_d);
  f("w_min", v.w_min);
  f("w_max", v.w_max);
  f("mu", v.mu);
  f("sum_abs_g", v.sum_abs_g);
  f("mu_clamped", v.mu_clamped);
  f("gavg_q8", v.gavg_q8);
}
template <typename V>
void fields(V& f, model::EpochResult& v) {
  f("run_id", v.run_id);
  f("attempt", v.attempt);
  f("epoch", v.epoch);
  f("step", v.step);
  f("loss", v.loss);
  f("train", v.train);
  f("heldout", v.heldout);
  f("heldout_loss", v.heldout_loss);
  f("best_step", v.best_step);
  f("alarms", v.alarms);
  f("state_hash", v.state_hash);
  f("step_us", v.step_us);
  f("layers", v.layers);
  f("time_us", v.time_us);
  f("board_uid", v.board_uid);
}
template <typename V>
void fields(V& f, model::Warning& v) {
  f("reason", v.reason);
  f("board_uid", v.board_uid);
  f("run_id", v.run_id);
}
template <typename V>
void fields(V& f, model::BoardCommand& v) {
  f("id", v.id);
  f("uid", v.uid);
  f("kind", v.kind);
  f("target", v.target);
  f("state", v.state);
  f("deadline_us", v.deadline_us);
  f("run_id", v.run_id);
}
template <typename V>
void fields(V& f, TrashRecord& v) {
  f("kind", v.kind);
  f("name", v.name);
  f("actor", v.actor);
  f("time_us", v.time_us);
  f("body", v.body);
}

}  // namespace odt::store
