#include "odt/device/v1/device.pb.h"
#include "wire/codec_parts.h"
#include "wire/device_codec.h"

namespace odt::wire::request {
namespace {

namespace pb = ::odt::device::v1;

std::string hash_or_empty(const Hash& hash) { return hash.is_zero() ? std::string() : hash.str(); }

// Absent settings stay off the wire: a board of release 0.1 sees what it knows.
void fill_precision(const model::HyperParams& h, pb::RunSpec& to) {
  for (const auto k : h.layer_k) to.mutable_layer_k()->push_back(static_cast<char>(k));
  to.set_apt_mode(static_cast<std::uint32_t>(h.apt));
  to.set_apt_k_max(h.apt_k_max.value_or(0));
  to.set_apt_offsets(h.apt_offsets.value_or(false));
  to.set_apt_t_min_q8(h.apt_t_min_q8.value_or(0));
  to.set_apt_t_max_q8(h.apt_t_max_q8.value_or(0));
  const auto lr = [&](std::size_t third) -> std::uint32_t {
    return h.lr_m.empty() ? 0 : h.lr_m[std::min(third, h.lr_m.size() - 1)];
  };
  to.set_lr_m_0(lr(0));
  to.set_lr_m_1(lr(1));
  to.set_lr_m_2(lr(2));
  to.set_lr_s(h.lr_s.value_or(0));
  to.set_blocked(h.blocked.value_or(false));
}

// Settings come resolved; an absent one takes the wire's zero, which is its default.
void fill_spec(const model::DeviceRunSpec& from, pb::RunSpec& to) {
  const model::HyperParams& h = from.hyper;
  to.set_rule_set(static_cast<std::uint32_t>(h.rule_set));
  to.set_rounding(static_cast<std::uint32_t>(h.rounding));
  to.set_loss(static_cast<std::uint32_t>(h.loss));
  to.set_shift_source(static_cast<std::uint32_t>(h.shift_source));
  const auto mu = [&](std::size_t third) -> std::int32_t {
    if (h.mu_weight.empty()) return 0;
    return h.mu_weight[std::min(third, h.mu_weight.size() - 1)];
  };
  to.set_mu_weight_0(mu(0));
  to.set_mu_weight_1(mu(1));
  to.set_mu_weight_2(mu(2));
  to.set_mu_offset(h.mu_offset.value_or(0));
  to.set_dead_zone(h.dead_zone.value_or(0));
  to.set_k(h.k.value_or(0));
  to.set_batch(h.batch.value_or(0));
  to.set_epochs(h.epochs.value_or(0));
  to.set_train_samples(from.train_samples);
  to.set_heldout_samples(from.heldout_samples);
  to.set_order_seed(h.order_seed.value_or(0));
  to.set_sr_seed(h.sr_seed.value_or(0));
  to.set_guard(h.guard.value_or(false) && from.heldout_samples != 0);
  to.set_best_on_host(to.guard() && h.best_on_host.value_or(false));
  to.set_sample_set_hash(hash_or_empty(from.sample_set_hash));
  to.set_streamed(from.streamed);
  to.set_hold_at_epoch(from.hold_at_epoch);
  to.set_telemetry_every(from.telemetry_every);
  to.set_commit_every(h.commit_every.value_or(0));
  fill_precision(h, to);
}

}  // namespace

std::string get_state(bool with_hash) {
  pb::Request r;
  r.mutable_get_state()->set_with_state_hash(with_hash);
  return r.SerializeAsString();
}

std::string xfer_open(const XferOpen& open) {
  pb::Request r;
  pb::XferOpen& m = *r.mutable_xfer_open();
  m.set_xfer_id(open.xfer_id);
  m.set_resource(static_cast<pb::Resource>(open.resource));
  m.set_index(open.index);
  m.set_direction(open.to_board ? pb::DIRECTION_TO_BOARD : pb::DIRECTION_TO_HOST);
  m.set_size(open.size);
  m.set_crc32(open.crc32);
  m.set_resume_offset(open.resume_offset);
  m.set_prefix_crc(open.prefix_crc);
  m.set_batch_id(open.batch_id);
  m.set_expect_hash(hash_or_empty(open.expect));
  return r.SerializeAsString();
}

std::string xfer_commit(std::uint32_t xfer_id, std::uint32_t crc32) {
  pb::Request r;
  r.mutable_xfer_commit()->set_xfer_id(xfer_id);
  r.mutable_xfer_commit()->set_crc32(crc32);
  return r.SerializeAsString();
}

std::string xfer_abort(std::uint32_t xfer_id) {
  pb::Request r;
  r.mutable_xfer_abort()->set_xfer_id(xfer_id);
  return r.SerializeAsString();
}

std::string start_run(const StartRun& start) {
  pb::Request r;
  pb::StartRun& m = *r.mutable_start_run();
  m.set_run_id(start.run_id.str());
  m.set_attempt(start.attempt);
  fill_spec(start.spec, *m.mutable_spec());
  m.set_expect_state_hash(hash_or_empty(start.expect_state));
  m.set_from_weights(start.from_weights);
  m.set_expect_weights_hash(hash_or_empty(start.expect_weights));
  for (const auto& steer : start.steering) {
    pb::Steer& s = *m.add_steering();
    s.set_step(steer.step);
    s.set_layer(steer.layer);
    s.set_k(steer.k);
  }
  return r.SerializeAsString();
}

std::string train_step(const Uuid& run, std::uint32_t attempt, std::uint32_t step,
                       std::uint32_t batch_id, std::uint32_t slot) {
  pb::Request r;
  pb::TrainStep& m = *r.mutable_train_step();
  m.set_run_id(run.str());
  m.set_attempt(attempt);
  m.set_step(step);
  m.set_batch_id(batch_id);
  m.set_slot(slot);
  return r.SerializeAsString();
}

std::string end_epoch(const Uuid& run, std::uint32_t attempt, std::uint32_t epoch,
                      std::uint32_t eval_id) {
  pb::Request r;
  pb::EndEpoch& m = *r.mutable_end_epoch();
  m.set_run_id(run.str());
  m.set_attempt(attempt);
  m.set_epoch(epoch);
  m.set_eval_id(eval_id);
  return r.SerializeAsString();
}

std::string ack_epoch(const Uuid& run, std::uint32_t attempt, std::uint32_t epoch) {
  pb::Request r;
  pb::AckEpoch& m = *r.mutable_ack_epoch();
  m.set_run_id(run.str());
  m.set_attempt(attempt);
  m.set_epoch(epoch);
  return r.SerializeAsString();
}

std::string get_epoch(std::uint32_t epoch) {
  pb::Request r;
  r.mutable_get_epoch()->set_epoch(epoch);
  return r.SerializeAsString();
}

std::string job_control(const Uuid& run, int action) {
  pb::Request r;
  r.mutable_job_control()->set_run_id(run.str());
  r.mutable_job_control()->set_action(static_cast<pb::JobControl::Action>(action));
  return r.SerializeAsString();
}

std::string set_precision(const Uuid& run, std::uint32_t attempt, const model::Steer& steer) {
  pb::Request r;
  pb::SetPrecision& m = *r.mutable_set_precision();
  m.set_run_id(run.str());
  m.set_attempt(attempt);
  m.set_step(steer.step);
  m.set_layer(steer.layer);
  m.set_k(steer.k);
  return r.SerializeAsString();
}

std::string best_kept(const Uuid& run, std::uint32_t attempt, const Hash& weights) {
  pb::Request r;
  pb::BestKept& m = *r.mutable_best_kept();
  m.set_run_id(run.str());
  m.set_attempt(attempt);
  m.set_weights_hash(weights.str());
  return r.SerializeAsString();
}

std::string evaluate(std::uint32_t eval_id, model::SampleRole role, std::uint32_t total) {
  pb::Request r;
  pb::Evaluate& m = *r.mutable_evaluate();
  m.set_eval_id(eval_id);
  m.set_role(static_cast<pb::SampleRole>(role));
  m.set_total(total);
  return r.SerializeAsString();
}

std::string eval_step(std::uint32_t eval_id, std::uint32_t seq, std::uint32_t batch_id,
                      std::uint32_t slot) {
  pb::Request r;
  pb::EvalStep& m = *r.mutable_eval_step();
  m.set_eval_id(eval_id);
  m.set_seq(seq);
  m.set_batch_id(batch_id);
  m.set_slot(slot);
  return r.SerializeAsString();
}

std::string get_eval(std::uint32_t eval_id) {
  pb::Request r;
  r.set_get_eval(eval_id);
  return r.SerializeAsString();
}

std::string infer() {
  pb::Request r;
  r.mutable_infer();
  return r.SerializeAsString();
}

std::string get_telemetry_from(std::uint32_t event_id) {
  pb::Request r;
  r.mutable_get_telemetry_from()->set_event_id(event_id);
  return r.SerializeAsString();
}

std::string identify(std::uint32_t seconds) {
  pb::Request r;
  r.mutable_identify()->set_seconds(seconds);
  return r.SerializeAsString();
}

std::string reset() {
  pb::Request r;
  r.mutable_reset();
  return r.SerializeAsString();
}

std::string capture_start(const model::CaptureSettings& s) {
  pb::Request r;
  pb::CaptureStart& m = *r.mutable_capture_start();
  m.set_window_steps(s.window_steps);
  m.set_stride_steps(s.stride_steps);
  m.set_slots(s.slots);
  m.mutable_mul()->Assign(s.mul.begin(), s.mul.end());
  m.mutable_add()->Assign(s.add.begin(), s.add.end());
  m.set_shift(s.shift);
  m.set_trigger(static_cast<pb::CaptureStart::Trigger>(s.trigger));
  m.set_trigger_channel(s.trigger_channel);
  m.set_trigger_level(s.trigger_level);
  for (const auto& rule : s.rules) {
    pb::LabelRule& to = *m.add_rules();
    to.set_of(static_cast<pb::LabelRule::Of>(rule.of));
    to.set_channel(rule.channel);
    to.set_min(rule.min);
    to.set_max(rule.max);
    to.set_label(rule.label);
  }
  m.set_button_label(s.button_label ? *s.button_label + 1 : 0);
  m.set_label(s.label ? *s.label + 1 : 0);
  m.set_keep(static_cast<pb::SampleRole>(s.keep));
  m.set_heldout_every(s.heldout_every);
  m.set_channels(s.channels);
  m.set_dtype(s.dtype);
  return r.SerializeAsString();
}

std::string capture_stop() {
  pb::Request r;
  r.mutable_capture_stop();
  return r.SerializeAsString();
}

std::string get_windows(std::uint32_t from_id) {
  pb::Request r;
  r.mutable_get_windows()->set_from_id(from_id);
  return r.SerializeAsString();
}

std::string label_window(std::uint32_t window_id, std::uint32_t label, model::SampleRole keep) {
  pb::Request r;
  pb::LabelWindow& m = *r.mutable_label_window();
  m.set_window_id(window_id);
  m.set_label(label);
  m.set_keep(static_cast<pb::SampleRole>(keep));
  return r.SerializeAsString();
}

std::string feed_sensor(std::uint64_t first, std::string_view steps) {
  pb::Request r;
  r.mutable_feed_sensor()->set_first(first);
  r.mutable_feed_sensor()->set_steps(std::string(steps));
  return r.SerializeAsString();
}

std::string nvm_commit(std::uint32_t commit_id, const Hash& expect) {
  pb::Request r;
  r.mutable_nvm_commit()->set_commit_id(commit_id);
  r.mutable_nvm_commit()->set_expect_hash(hash_or_empty(expect));
  return r.SerializeAsString();
}

std::string nvm_erase(std::uint32_t commit_id) {
  pb::Request r;
  r.mutable_nvm_erase()->set_commit_id(commit_id);
  return r.SerializeAsString();
}

std::string nvm_status(bool restore) {
  pb::Request r;
  r.mutable_nvm_status()->set_restore(restore);
  return r.SerializeAsString();
}

}  // namespace odt::wire::request
