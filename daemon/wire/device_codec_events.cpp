#include <algorithm>

#include "odt/device/v1/device.pb.h"
#include "wire/codec_parts.h"
#include "wire/device_codec.h"
#include "wire/text.h"

namespace odt::wire {
namespace {

constexpr std::size_t kMaxEventLayers = 64;
constexpr std::size_t kBytesPerLayer = 3;
constexpr std::size_t kMaxClasses = 128;
constexpr std::size_t kMaxErrorText = 160;

model::Loss board_loss(std::uint64_t sum, std::uint32_t count) {
  model::Loss loss;
  loss.sum = static_cast<std::int64_t>(sum);
  loss.count = count;
  return loss;
}

model::TelemetryFrame step_record(const pb::StepRecord& m) {
  model::TelemetryFrame frame;
  frame.step = m.step();
  frame.loss = board_loss(m.loss(), 0);
  frame.correct = m.correct();
  const std::string& packed = m.layers();
  const std::size_t first = std::min<std::size_t>(m.first_layer(), kMaxEventLayers);
  const std::size_t count = std::min(packed.size() / kBytesPerLayer, kMaxEventLayers - first);
  frame.layers.reserve(first + count);
  frame.layers.resize(first);
  for (std::size_t i = 0; i < count; ++i) {
    const char* p = packed.data() + i * kBytesPerLayer;
    frame.layers.push_back({static_cast<std::uint8_t>(p[0]), static_cast<std::int8_t>(p[1]),
                            static_cast<std::uint8_t>(p[2])});
  }
  return frame;
}

model::EpochResult epoch_record(const pb::EpochRecord& m) {
  model::EpochResult epoch;
  epoch.epoch = m.epoch();
  epoch.step = m.step();
  epoch.loss = board_loss(m.loss(), m.total());
  epoch.train = {m.correct(), m.total()};
  epoch.heldout = {m.heldout_correct(), m.heldout_total()};
  epoch.best_step = m.best_step();
  epoch.alarms = m.alarms();
  epoch.state_hash = id_or_zero<Hash>(m.state_hash());
  epoch.step_us = m.step_us();
  for (const pb::LayerEpoch& l : m.layers()) {
    if (epoch.layers.size() == kMaxEventLayers) break;
    model::LayerEpoch layer;
    layer.bits_min = l.bits_min();
    layer.bits_mean_q8 = l.bits_mean_q8();
    layer.bits_max = l.bits_max();
    layer.shift = l.shift();
    layer.nonzero_deltas_ppm = l.nonzero_deltas_ppm();
    layer.mean_abs_delta_q8 = l.mean_abs_delta_q8();
    layer.zero_propagated_ppm = l.zero_propagated_ppm();
    layer.saturated = l.saturated();
    layer.dead_units = l.dead_units();
    layer.k = l.k();
    layer.u_q8 = l.u_q8();
    layer.k_off = l.k_off();
    layer.e_d = l.e_d();
    layer.w_min = l.w_min();
    layer.w_max = l.w_max();
    layer.sum_abs_g = l.sum_abs_g();
    layer.sum_n = l.sum_n();
    layer.logical_bits = l.logical_bits();
    layer.resident_bytes = l.resident_bytes();
    layer.mu = l.mu();
    layer.mu_clamped = l.mu_clamped();
    epoch.layers.push_back(layer);
  }
  return epoch;
}

model::JobChanged job_changed(const pb::JobChanged& m) {
  model::JobChanged job;
  job.run_id = id_or_zero<Uuid>(m.run_id());
  job.attempt = m.attempt();
  job.job = job_state(m.job());
  job.step = m.step();
  job.state_hash = id_or_zero<Hash>(m.state_hash());
  job.weights_hash = id_or_zero<Hash>(m.weights_hash());
  job.text = sanitise(m.text(), kMaxErrorText);
  return job;
}

model::EvalReport eval_report(const pb::EvalResult& m) {
  model::EvalReport report;
  report.eval_id = m.eval_id();
  report.accuracy = {m.correct(), m.total()};
  report.loss = m.loss();
  report.done = m.done();
  report.next_seq = m.next_seq();
  return report;
}

model::DeviceState device_state(const pb::State& m) {
  model::DeviceState s;
  s.model_hash = id_or_zero<Hash>(m.model_hash());
  s.run_id = id_or_zero<Uuid>(m.run_id());
  s.attempt = m.attempt();
  s.job = job_state(m.job());
  s.step = m.step();
  s.epoch = m.epoch();
  s.state_hash = id_or_zero<Hash>(m.state_hash());
  s.weights_hash = id_or_zero<Hash>(m.weights_hash());
  s.best_step = m.best_step();
  s.best_correct = m.best_correct();
  s.samples_train = m.samples_train();
  s.samples_heldout = m.samples_heldout();
  s.samples_test = m.samples_test();
  s.ram_used_bytes = m.ram_used_bytes();
  s.ram_bytes = m.ram_bytes();
  s.stack_high_water_bytes = m.stack_high_water_bytes();
  s.sample_set_hash = id_or_zero<Hash>(m.sample_set_hash());
  s.has_weights = m.has_weights();
  s.oldest_unacked_epoch = m.oldest_unacked_epoch();
  s.tail = m.tail();
  if (m.best_wait() <= static_cast<std::uint32_t>(model::BestWait::kWanted))
    s.best_wait = static_cast<model::BestWait>(m.best_wait());
  s.sensor_channels = m.sensor_channels();
  s.sensor_rate_milli_hz = m.sensor_rate_milli_hz();
  s.sensor_dtype = m.sensor_dtype();
  s.nvm_step = m.nvm_step();
  s.nvm_sequence = m.nvm_sequence();
  s.restored = m.restored();
  return s;
}

model::NvmKind nvm_kind(int kind) {
  const bool known = kind > 0 && kind <= static_cast<int>(model::NvmKind::kState);
  return known ? static_cast<model::NvmKind>(kind) : model::NvmKind::kNone;
}

model::NvmInfo nvm_info(const pb::NvmStatus& m) {
  model::NvmInfo n;
  n.size = m.size();
  n.slot_bytes = m.slot_bytes();
  n.sequence = m.sequence();
  n.kind = nvm_kind(m.kind());
  n.bytes = m.bytes();
  n.step = m.step();
  n.attempt = m.attempt();
  n.run_id = id_or_zero<Uuid>(m.run_id());
  n.hash = id_or_zero<Hash>(m.hash());
  n.model_hash16 = prefix16(m.model_hash());
  n.has_image = m.has_image();
  n.has_best = m.has_best();
  n.writes_0 = m.writes_0();
  n.writes_1 = m.writes_1();
  n.want_state = m.want_state();
  n.want_best = m.want_best();
  n.want_image = m.want_image();
  return n;
}

model::NvmCommitted nvm_committed(const pb::NvmCommitted& m) {
  model::NvmCommitted c;
  c.commit_id = m.commit_id();
  c.sequence = m.sequence();
  c.kind = nvm_kind(m.kind());
  c.step = m.step();
  c.attempt = m.attempt();
  c.bytes = m.bytes();
  c.took_ms = m.took_ms();
  c.run_id = id_or_zero<Uuid>(m.run_id());
  c.hash = id_or_zero<Hash>(m.hash());
  c.text = sanitise(m.text(), kMaxErrorText);
  c.erased = m.erased();
  return c;
}

XferOpened xfer_opened(const pb::XferOpened& m) {
  return {m.offset(), m.prefix_crc(), m.window(), m.chunk(), m.size(), m.crc32(), m.version()};
}

model::InferReport infer_report(const pb::InferResult& m) {
  model::InferReport report;
  const std::size_t n = std::min(m.logits().size(), kMaxClasses);
  for (std::size_t i = 0; i < n; ++i) {
    report.logits.push_back(static_cast<std::int8_t>(m.logits()[i]));
  }
  report.predicted = m.predicted();
  return report;
}

std::uint32_t le32(const std::string& bytes, std::size_t at) {
  std::uint32_t v = 0;
  for (std::size_t i = 4; i-- > 0;) v = v << 8 | static_cast<std::uint8_t>(bytes[at + i]);
  return v;
}

model::CaptureState capture_state(const pb::Windows& m) {
  constexpr std::size_t kEntry = 12;
  model::CaptureState c;
  c.active = m.active();
  c.captured = m.captured();
  c.lost_windows = m.lost_windows();
  c.lost_steps = m.lost_steps();
  c.steps = m.steps();
  c.kept_train = m.kept_train();
  c.kept_heldout = m.kept_heldout();
  c.not_kept = m.not_kept();
  c.window_steps = m.window_steps();
  c.channels = m.channels();
  c.dtype = m.dtype();
  c.more = m.more();
  for (std::size_t at = 0; at + kEntry <= m.entries().size(); at += kEntry) {
    model::CapturedWindow w;
    w.id = le32(m.entries(), at);
    w.time_ms = le32(m.entries(), at + 4);
    if (const auto label = static_cast<std::int8_t>(m.entries()[at + 8]); label >= 0)
      w.label = static_cast<std::uint32_t>(label);
    const auto flags = static_cast<std::uint8_t>(m.entries()[at + 9]);
    w.kept = (flags & 1u) != 0   ? model::SampleRole::kTrain
             : (flags & 2u) != 0 ? model::SampleRole::kHeldout
                                 : model::SampleRole::kNone;
    w.by_rule = (flags & 4u) != 0;
    w.by_button = (flags & 8u) != 0;
    c.windows.push_back(w);
  }
  return c;
}

Status board_error(const pb::Error& e) {
  absl::StatusCode code = status_code(e.code());
  if (code == absl::StatusCode::kOk) code = absl::StatusCode::kUnknown;
  std::string text = sanitise(e.text(), kMaxErrorText);
  if (text.empty()) text = "refused";
  if (e.limit() != 0) text += " (limit " + std::to_string(e.limit()) + ")";
  return Status(code, "board: " + text);
}

}  // namespace

Result<Answer> decode_response(std::string_view payload) {
  ODT_ASSIGN(const pb::Response m, parse<pb::Response>(payload, "RSP"));
  Answer answer;
  if (m.has_error()) {
    answer.error = board_error(m.error());
    answer.limit = m.error().limit();
  }
  answer.accepted_ms = m.accepted_ms();
  switch (m.result_case()) {
    case pb::Response::kState:
      answer.result = device_state(m.state());
      break;
    case pb::Response::kXferOpened:
      answer.result = xfer_opened(m.xfer_opened());
      break;
    case pb::Response::kStep:
      answer.result = step_record(m.step());
      break;
    case pb::Response::kEval:
      answer.result = eval_report(m.eval());
      break;
    case pb::Response::kInfer:
      answer.result = infer_report(m.infer());
      break;
    case pb::Response::kTelemetry:
      answer.result = TelemetryRange{m.telemetry().first(), m.telemetry().next()};
      break;
    case pb::Response::kWindows:
      answer.result = capture_state(m.windows());
      break;
    case pb::Response::kNvm:
      answer.result = nvm_info(m.nvm());
      break;
    default:  // not set, or what nobody here asks for
      break;
  }
  return answer;
}

Result<EventBody> decode_event(std::string_view payload) {
  ODT_ASSIGN(const pb::Event m, parse<pb::Event>(payload, "EVENT"));
  switch (m.event_case()) {
    case pb::Event::kStep:
      return EventBody(step_record(m.step()));
    case pb::Event::kEpoch:
      return EventBody(epoch_record(m.epoch()));
    case pb::Event::kJob:
      return EventBody(job_changed(m.job()));
    case pb::Event::kEval:
      return EventBody(eval_report(m.eval()));
    case pb::Event::kNvm:
      return EventBody(nvm_committed(m.nvm()));
    default:
      break;
  }
  return EventBody();
}

}  // namespace odt::wire
