#include "api/api_convert.h"

#include <algorithm>

#include "api/convert_parts.h"
#include "api/errors.h"

namespace odt::api {
namespace {

// What a board reports of itself is the head of a hash; the rest is zero until GET_STATE.
std::string reported_hash(const Hash& hash, std::size_t most) {
  if (hash.is_zero()) return {};
  const bool head_only = std::all_of(hash.bytes.begin() + 16, hash.bytes.end(),
                                     [](std::uint8_t byte) { return byte == 0; });
  return hash.str().substr(0, head_only ? 16 : most);
}

template <typename Make>
void set_outputs(const model::Outputs& outputs, Make make) {
  if (outputs.count == 0) return;
  v1::Outputs* out = make();
  out->set_task(static_cast<v1::Task>(static_cast<int>(outputs.task) + 1));
  out->set_count(outputs.count);
  copy_all(outputs.offset, out->mutable_offset());
  copy_all(outputs.scale, out->mutable_scale());
}

void set_link(const model::LinkStats& link, v1::LinkStats* out) {
  out->set_endpoint(clean_text(link.endpoint));
  out->set_rx_frames(link.rx_frames);
  out->set_tx_frames(link.tx_frames);
  out->set_rx_bytes(link.rx_bytes);
  out->set_tx_bytes(link.tx_bytes);
  out->set_crc_errors(link.crc_errors);
  out->set_retries(link.retries);
  out->set_telemetry_gaps(link.telemetry_gaps);
  out->set_rtt_us(link.rtt_us);
  out->set_session_count(link.session_count);
}

void set_timing(const model::RunTiming& timing, v1::RunTiming* out) {
  out->set_step_us(timing.step_us);
  out->set_link_bytes_per_s(timing.link_bytes_per_s);
  out->set_sample_us(timing.sample_us);
  out->set_epoch_us(timing.epoch_us);
}

}  // namespace

v1::Board to_proto(const model::Board& board) {
  v1::Board out;
  out.set_uid(board.uid.str());
  out.set_name(clean_text(board.name));
  out.set_place(clean_text(board.place));
  for (const auto& [key, value] : board.labels)
    (*out.mutable_labels())[clean_text(key)] = clean_text(value);
  out.set_board_type(clean_text(board.board_type));
  out.set_core(clean_text(board.core));
  out.set_fw_version(clean_text(board.fw_version));
  out.set_rules_version(board.rules_version);
  out.set_boot_id(board.boot_id);
  out.set_caps(board.caps);
  out.set_ram_bytes(board.ram_bytes);
  out.set_max_layers(board.max_layers);
  out.set_max_batch(board.max_batch);
  out.set_mtu(board.mtu);
  out.set_status(static_cast<v1::BoardStatus>(board.status));
  out.set_last_seen_time_us(board.last_seen_time_us);
  out.set_online_since_time_us(board.online_since_time_us);
  out.set_model_hash(reported_hash(board.model_hash, 32));
  out.set_state_hash(reported_hash(board.state_hash, 16));
  out.set_run_id(id_bytes(board.run_id));
  out.set_last_step(board.last_step);
  out.set_reset_reason(clean_text(board.reset_reason));
  out.set_boots_seen(board.boots_seen);
  out.set_nvm_sequence(board.nvm_sequence);
  out.set_nvm_step(board.nvm_step);
  out.set_restored(board.restored);
  set_link(board.link, out.mutable_link());
  if (!board.lease.what.empty()) *out.mutable_lease() = to_proto(board.lease);
  add_lab(board, out);
  set_meta(board.meta, out.mutable_meta());
  return out;
}

v1::Port to_proto(const model::Port& port) {
  v1::Port out;
  out.set_path(clean_text(port.path));
  out.set_by_id(clean_text(port.by_id));
  out.set_by_path(clean_text(port.by_path));
  out.set_usb_vid(port.usb_vid);
  out.set_usb_pid(port.usb_pid);
  out.set_usb_serial(clean_text(port.usb_serial));
  out.set_description(clean_text(port.description));
  out.set_state(static_cast<v1::PortState>(port.state));
  out.set_adopted(port.adopted);
  out.set_allowed(port.allowed);
  out.set_board_uid(port.board_uid.str());
  out.set_baud(port.baud);
  out.set_expect_uid(port.expect_uid.str());
  set_reason(port.reason, out.mutable_reason());
  set_meta(port.meta, out.mutable_meta());
  return out;
}

v1::Model to_proto(const model::Model& model) {
  v1::Model out;
  out.set_hash(id_bytes(model.hash));
  out.set_name(clean_text(model.name));
  out.set_image_bytes(model.image_bytes);
  out.set_onnx_hash(id_bytes(model.onnx_hash));
  out.set_trainable_layers(model.trainable_layers);
  out.set_n_classes(model.n_classes);
  copy_all(model.input_shape, out.mutable_input_shape());
  set_accuracy(model.source_accuracy, out.mutable_source_accuracy());
  out.set_has_ce_scale(model.has_ce_scale);
  out.set_arithmetic(model.arithmetic);
  set_outputs(model.outputs, [&out] { return out.mutable_outputs(); });
  for (const auto& layer : model.layers) {
    auto* item = out.add_layers();
    item->set_name(clean_text(layer.name));
    item->set_kind(clean_text(layer.kind));
    copy_all(layer.weight_shape, item->mutable_weight_shape());
    copy_all(layer.output_shape, item->mutable_output_shape());
    item->set_weights(layer.weights);
    item->set_k_out_min(layer.k_out_min);
    item->set_k_out_max(layer.k_out_max);
    item->set_macs(layer.macs);
    item->set_trainable(layer.trainable);
  }
  out.set_ram_k8_bytes(model.ram_k8_bytes);
  out.set_ram_k16_bytes(model.ram_k16_bytes);
  set_meta(model.meta, out.mutable_meta());
  return out;
}

v1::Dataset to_proto(const model::Dataset& dataset) {
  v1::Dataset out;
  out.set_id(id_bytes(dataset.id));
  out.set_content_hash(id_bytes(dataset.content_hash));
  out.set_name(clean_text(dataset.name));
  out.set_dtype(clean_text(dataset.dtype));
  copy_all(dataset.shape, out.mutable_shape());
  out.set_train(dataset.train);
  out.set_heldout(dataset.heldout);
  out.set_test(dataset.test);
  out.set_n_classes(dataset.n_classes);
  for (const auto& name : dataset.class_names) out.add_class_names(clean_text(name));
  copy_all(dataset.class_counts, out.mutable_class_counts());
  out.set_source(clean_text(dataset.source));
  out.set_bytes(dataset.bytes);
  out.set_outputs(dataset.outputs);
  for (const auto& warning : dataset.warnings) out.add_warnings(clean_text(warning));
  set_meta(dataset.meta, out.mutable_meta());
  return out;
}

v1::Snapshot to_proto(const model::Snapshot& snapshot) {
  v1::Snapshot out;
  out.set_hash(id_bytes(snapshot.hash));
  out.set_model_hash(id_bytes(snapshot.model_hash));
  out.set_board_uid(snapshot.board_uid.str());
  out.set_run_id(id_bytes(snapshot.run_id));
  out.set_attempt(snapshot.attempt);
  out.set_step(snapshot.step);
  out.set_parent(id_bytes(snapshot.parent));
  for (const auto& alias : snapshot.aliases) out.add_aliases(clean_text(alias));
  set_accuracy(snapshot.heldout, out.mutable_heldout());
  set_known_loss(snapshot.heldout_loss, [&out] { return out.mutable_heldout_loss(); });
  out.set_bytes(snapshot.bytes);
  out.set_note(clean_text(snapshot.note));
  for (const auto& parent : snapshot.parents) out.add_parents(parent.str());
  out.set_campaign_id(id_bytes(snapshot.campaign_id));
  out.set_chain(id_bytes(snapshot.chain));
  out.set_origin(clean_text(snapshot.origin));
  out.set_pinned(snapshot.pinned);
  set_meta(snapshot.meta, out.mutable_meta());
  return out;
}

v1::Evaluation to_proto(const model::Evaluation& evaluation) {
  v1::Evaluation out;
  out.set_id(id_bytes(evaluation.id));
  out.set_board_uid(evaluation.board_uid.str());
  out.set_model_hash(id_bytes(evaluation.model_hash));
  out.set_snapshot(id_bytes(evaluation.snapshot));
  out.set_dataset_id(id_bytes(evaluation.dataset_id));
  out.set_split(clean_text(evaluation.split));
  set_accuracy(evaluation.accuracy, out.mutable_accuracy());
  copy_all(evaluation.confusion, out.mutable_confusion());
  set_loss(evaluation.loss, out.mutable_loss());
  set_outputs(evaluation.outputs, [&out] { return out.mutable_outputs(); });
  if (const auto& s = evaluation.scores; !s.blob.is_zero()) {
    out.mutable_scores()->set_min(s.min);
    out.mutable_scores()->set_median(s.median);
    out.mutable_scores()->set_p95(s.p95);
    out.mutable_scores()->set_max(s.max);
    out.mutable_scores()->set_blob(id_bytes(s.blob));
  }
  out.set_wrong(id_bytes(evaluation.wrong));
  copy_all(evaluation.class_totals, out.mutable_class_totals());
  copy_all(evaluation.class_correct, out.mutable_class_correct());
  set_meta(evaluation.meta, out.mutable_meta());
  return out;
}

v1::InferResponse to_proto(const model::Inference& inference) {
  v1::InferResponse out;
  set_outputs(inference.outputs, [&out] { return out.mutable_outputs(); });
  out.set_total(inference.there);
  for (const auto& sample : inference.samples) {
    auto* item = out.add_samples();
    item->set_index(sample.index);
    item->set_outputs(sample.outputs.data(), sample.outputs.size());
    item->set_predicted(sample.predicted);
    item->set_wanted(sample.wanted.data(), sample.wanted.size());
  }
  return out;
}

v1::Job to_proto(const model::Job& job) {
  v1::Job out;
  out.set_id(id_bytes(job.id));
  out.set_kind(static_cast<v1::Job::Kind>(job.kind));
  out.set_state(static_cast<v1::Job::State>(job.state));
  out.set_progress_permille(job.progress_permille);
  out.set_message(clean_text(job.message));
  set_reason(job.reason, out.mutable_reason());
  out.set_result_key(job.result_key.data(), job.result_key.size());
  out.set_result_json(clean_text(job.result_json));
  set_meta(job.meta, out.mutable_meta());
  return out;
}

v1::Upload to_proto(const model::Upload& upload) {
  v1::Upload out;
  out.set_id(id_bytes(upload.id));
  out.set_name(clean_text(upload.name));
  out.set_size(upload.size);
  out.set_sha256(id_bytes(upload.sha256));
  out.set_received(upload.received);
  set_meta(upload.meta, out.mutable_meta());
  return out;
}

v1::HyperParams to_proto(const model::HyperParams& hyper) {
  v1::HyperParams out;
  out.set_policy(static_cast<v1::Policy>(hyper.policy));
  out.set_rule_set(static_cast<v1::RuleSet>(hyper.rule_set));
  out.set_rounding(static_cast<v1::Rounding>(hyper.rounding));
  out.set_loss(static_cast<v1::LossKind>(hyper.loss));
  out.set_shift_source(static_cast<v1::ShiftSource>(hyper.shift_source));
  copy_all(hyper.mu_weight, out.mutable_mu_weight());
  if (hyper.mu_offset) out.set_mu_offset(*hyper.mu_offset);
  if (hyper.dead_zone) out.set_dead_zone(*hyper.dead_zone);
  if (hyper.k) out.set_k(*hyper.k);
  if (hyper.batch) out.set_batch(*hyper.batch);
  if (hyper.epochs) out.set_epochs(*hyper.epochs);
  if (hyper.order_seed) out.set_order_seed(*hyper.order_seed);
  if (hyper.sr_seed) out.set_sr_seed(*hyper.sr_seed);
  if (hyper.guard) out.set_guard(*hyper.guard);
  if (hyper.telemetry_every) out.set_telemetry_every(*hyper.telemetry_every);
  if (hyper.streamed) out.set_streamed(*hyper.streamed);
  if (hyper.checkpoint_epochs) out.set_checkpoint_epochs(*hyper.checkpoint_epochs);
  copy_all(hyper.layer_k, out.mutable_layer_k());
  out.set_apt(static_cast<v1::AptMode>(hyper.apt));
  if (hyper.apt_k_max) out.set_apt_k_max(*hyper.apt_k_max);
  if (hyper.apt_offsets) out.set_apt_offsets(*hyper.apt_offsets);
  if (hyper.apt_t_min_q8) out.set_apt_t_min_q8(*hyper.apt_t_min_q8);
  if (hyper.apt_t_max_q8) out.set_apt_t_max_q8(*hyper.apt_t_max_q8);
  copy_all(hyper.lr_m, out.mutable_lr_m());
  if (hyper.lr_s) out.set_lr_s(*hyper.lr_s);
  if (hyper.blocked) out.set_blocked(*hyper.blocked);
  if (hyper.best_on_host) out.set_best_on_host(*hyper.best_on_host);
  if (hyper.frozen) out.set_frozen(*hyper.frozen);
  if (hyper.tail) out.set_tail(*hyper.tail);
  if (hyper.commit_every) out.set_commit_every(*hyper.commit_every);
  return out;
}

v1::RunSpec to_proto(const model::RunSpec& spec) {
  v1::RunSpec out;
  out.set_board_uid(spec.board_uid.str());
  out.set_model_hash(id_bytes(spec.model_hash));
  out.set_dataset_id(id_bytes(spec.dataset_id));
  out.set_captured(spec.captured);
  *out.mutable_hyper() = to_proto(spec.hyper);
  out.set_start_snapshot(id_bytes(spec.start_snapshot));
  out.set_evaluate(spec.evaluate);
  out.set_name(clean_text(spec.name));
  out.set_resume_deadline_s(spec.resume_deadline_s);
  out.set_campaign_id(id_bytes(spec.campaign_id));
  out.set_campaign_unit(spec.campaign_unit);
  out.set_priority(spec.priority);
  return out;
}

v1::Run to_proto(const model::Run& run) {
  v1::Run out;
  out.set_id(id_bytes(run.id));
  *out.mutable_spec() = to_proto(run.spec);
  out.set_state(static_cast<v1::RunState>(run.state));
  out.set_desired(static_cast<v1::DesiredState>(run.desired));
  set_reason(run.reason, out.mutable_reason());
  out.set_attempt(run.attempt);
  *out.mutable_effective() = to_proto(run.effective);
  out.set_steps_done(run.steps_done);
  out.set_steps_total(run.steps_total);
  out.set_epochs_done(run.epochs_done);
  set_accuracy(run.before, out.mutable_before());
  set_accuracy(run.after, out.mutable_after());
  set_accuracy(run.heldout_start, out.mutable_heldout_start());
  set_accuracy(run.heldout_best, out.mutable_heldout_best());
  set_outputs(run.outputs, [&out] { return out.mutable_outputs(); });
  set_known_loss(run.before_loss, [&out] { return out.mutable_before_loss(); });
  set_known_loss(run.after_loss, [&out] { return out.mutable_after_loss(); });
  set_known_loss(run.heldout_start_loss, [&out] { return out.mutable_heldout_start_loss(); });
  set_known_loss(run.heldout_best_loss, [&out] { return out.mutable_heldout_best_loss(); });
  out.set_best_step(run.best_step);
  out.set_final_state_hash(id_bytes(run.final_state_hash));
  out.set_final_weights_hash(id_bytes(run.final_weights_hash));
  out.set_rules_version(run.rules_version);
  out.set_start_time_us(run.start_time_us);
  out.set_end_time_us(run.end_time_us);
  out.set_train_samples(run.train_samples);
  out.set_replay(static_cast<v1::Run::ReplayVerdict>(run.replay));
  out.set_placement(clean_text(run.placement));
  out.set_pinned(run.pinned);
  out.set_owner(clean_text(run.owner));
  for (const auto& setting : run.settings) *out.add_settings() = to_proto(setting);
  if (!run.nvm_points.empty()) out.set_nvm_step(run.nvm_points.back().step);
  for (const auto& steer : run.steering) {
    auto* item = out.add_steering();
    item->set_step(steer.step);
    item->set_layer(steer.layer);
    item->set_k(steer.k);
  }
  out.set_retry_of(id_bytes(run.retry_of));
  out.set_priority(run.priority);
  out.set_queue_rank(run.queue_rank);
  out.set_eta_time_us(run.eta_time_us);
  set_timing(run.timing, out.mutable_timing());
  out.set_guard_verdict(static_cast<v1::GuardVerdict>(run.guard_verdict));
  out.set_verdict_text(clean_text(run.verdict_text));
  for (const auto& warning : run.warnings) set_reason(warning, out.add_warnings());
  set_meta(run.meta, out.mutable_meta());
  return out;
}

v1::RunEvent to_proto(const model::RunEvent& event) {
  v1::RunEvent out;
  out.set_run_id(id_bytes(event.run_id));
  out.set_seq(event.seq);
  out.set_time_us(event.time_us);
  out.set_from(static_cast<v1::RunState>(event.from));
  out.set_to(static_cast<v1::RunState>(event.to));
  out.set_cause(clean_text(event.cause));
  out.set_actor(clean_text(event.actor));
  out.set_command_id(id_bytes(event.command_id));
  return out;
}

v1::EpochResult to_proto(const model::EpochResult& epoch) {
  v1::EpochResult out;
  out.set_run_id(id_bytes(epoch.run_id));
  out.set_attempt(epoch.attempt);
  out.set_epoch(epoch.epoch);
  out.set_step(epoch.step);
  set_loss(epoch.loss, out.mutable_loss());
  set_accuracy(epoch.train, out.mutable_train());
  set_accuracy(epoch.heldout, out.mutable_heldout());
  set_known_loss(epoch.heldout_loss, [&out] { return out.mutable_heldout_loss(); });
  out.set_best_step(epoch.best_step);
  out.set_alarms(epoch.alarms);
  out.set_state_hash(id_bytes(epoch.state_hash));
  out.set_step_us(epoch.step_us);
  for (const auto& layer : epoch.layers) {
    auto* item = out.add_layers();
    item->set_bits_min(layer.bits_min);
    item->set_bits_mean_q8(layer.bits_mean_q8);
    item->set_bits_max(layer.bits_max);
    item->set_shift(layer.shift);
    item->set_nonzero_deltas_ppm(layer.nonzero_deltas_ppm);
    item->set_mean_abs_delta_q8(layer.mean_abs_delta_q8);
    item->set_zero_propagated_ppm(layer.zero_propagated_ppm);
    item->set_saturated(layer.saturated);
    item->set_dead_units(layer.dead_units);
    item->set_k(layer.k);
    item->set_u_q8(layer.u_q8);
    item->set_k_off(layer.k_off);
    item->set_e_d(layer.e_d);
    item->set_w_min(layer.w_min);
    item->set_w_max(layer.w_max);
    item->set_sum_abs_g(layer.sum_abs_g);
    item->set_sum_n(layer.sum_n);
    item->set_logical_bits(layer.logical_bits);
    item->set_resident_bytes(layer.resident_bytes);
    item->set_mu(layer.mu);
    item->set_mu_clamped(layer.mu_clamped);
    item->set_gavg_q8(layer.gavg_q8);
  }
  out.set_time_us(epoch.time_us);
  out.set_board_uid(epoch.board_uid.str());
  return out;
}

void fill(v1::TelemetryFrame& out, const model::TelemetryFrame& frame) {
  out.Clear();
  if (!frame.run_id.is_zero()) out.set_run_id(frame.run_id.bytes.data(), frame.run_id.bytes.size());
  out.set_attempt(frame.attempt);
  out.set_step(frame.step);
  out.set_board_uid(frame.board_uid.bytes.data(), frame.board_uid.bytes.size());
  out.set_time_us(frame.time_us);
  out.set_boot_id(frame.boot_id);
  out.set_event_id(frame.event_id);
  set_loss(frame.loss, out.mutable_loss());
  out.set_correct(frame.correct);
  std::uint32_t number = 0;
  for (const auto& layer : frame.layers) {
    auto* item = out.add_layers();
    item->set_layer(number++);
    item->set_bits(layer.bits);
    item->set_shift(layer.shift);
    item->set_k(layer.k);
  }
  out.set_gap(frame.gap);
}

v1::TelemetryFrame to_proto(const model::TelemetryFrame& frame) {
  v1::TelemetryFrame out;
  fill(out, frame);
  return out;
}

}  // namespace odt::api
