#include "fake_board.h"

#include <cstring>

#include "data/order.h"
#include "fake_board_values.h"

namespace odt::test {
namespace {

using model::JobState;

}  // namespace

FakeBoard::FakeBoard(asio::io_context& io, std::uint8_t number) : io_(io), wake_(io) {
  uid.bytes = {0, 0, 0, 0, 0, 0, 0xAB, number};
}

void FakeBoard::drop(const char* why) {
  if (!session) return;
  auto old = std::move(session);
  session = nullptr;
  if (!old->alive_) return;
  old->alive_ = false;
  wake_.notify();
  if (old->sink_ != nullptr) old->sink_->on_closed(absl::UnavailableError(why));
}

void FakeBoard::power_cycle() {
  ++generation_;
  ++boot_id;
  image.clear();
  samples.clear();
  slots.clear();
  records.clear();
  value = best_value = 0;
  has_best = has_state = false;
  best_step = best_correct = 0;
  start_correct = 0xFFFFFFFF;
  run_id = {};
  attempt = step = epoch = acked = 0;
  job = JobState::kNone;
  evaluation = {};
  drop("power cycle");
}

std::string FakeBoard::weights_blob(std::uint64_t v) const {
  std::string out(80, '\0');
  std::memcpy(out.data(), "ODTW", 4);
  out[4] = 1;
  out[6] = 1;
  out[8] = 1;
  out[9] = 1;
  const Hash model = sha256(image);
  std::memcpy(out.data() + 12, model.bytes.data(), 32);
  // A linear layer of 16 bytes of weights, the first of them v.
  const bool wide = weights_k > 8;
  out[44] = 3;
  out[45] = wide ? 3 : 1;
  out[46] = static_cast<char>(weights_k);
  out[47] = 1;
  out[48] = out[56] = wide ? 8 : 16;
  put64(out, 64, v);
  return out;
}

std::string FakeBoard::state_blob() const {
  std::string out(208, '\0');
  std::memcpy(out.data(), "ODTT", 4);
  const Hash model = sha256(image);
  std::memcpy(out.data() + 8, model.bytes.data(), 32);
  std::memcpy(out.data() + 104, &step, 4);
  std::memcpy(out.data() + 108, &epoch, 2);
  std::memcpy(out.data() + 116, &start_correct, 4);
  std::memcpy(out.data() + 120, &best_step, 4);
  std::memcpy(out.data() + 124, &best_correct, 4);
  if (has_best) {
    const Hash best = sha256(weights_blob(best_value));
    std::memcpy(out.data() + 128, best.bytes.data(), 32);
  }
  put64(out, 176, value);
  out[184] = static_cast<char>(weights_k);
  return out;
}

Status FakeBoard::load_state(const std::string& blob) {
  if (blob.size() != 208 || blob.compare(0, 4, "ODTT") != 0)
    return absl::InvalidArgumentError("not a training state");
  std::memcpy(&step, blob.data() + 104, 4);
  std::uint16_t e;
  std::memcpy(&e, blob.data() + 108, 2);
  epoch = acked = e;
  std::memcpy(&start_correct, blob.data() + 116, 4);
  std::memcpy(&best_step, blob.data() + 120, 4);
  std::memcpy(&best_correct, blob.data() + 124, 4);
  value = get64(blob, 176);
  weights_k = static_cast<std::uint8_t>(blob[184]);
  has_state = true;
  return absl::OkStatus();
}

model::DeviceState FakeBoard::device_state(bool with_hash) const {
  model::DeviceState s;
  if (!image.empty()) s.model_hash = sha256(image);
  s.run_id = run_id;
  s.attempt = attempt;
  s.job = job;
  s.step = step;
  s.epoch = epoch;
  s.has_weights = !image.empty();
  s.oldest_unacked_epoch = acked;
  if (with_hash && !image.empty()) {
    if (has_state) s.state_hash = state_hash();
    s.weights_hash = sha256(weights_blob(value));
  }
  return s;
}

std::uint32_t FakeBoard::score(std::uint64_t v, std::uint32_t total) const {
  const std::uint32_t most = losses ? 100'000 : total;
  return total == 0 ? 0 : static_cast<std::uint32_t>(mix(v + 7) % (most + 1));
}

std::uint32_t FakeBoard::per_epoch() const {
  return data::steps_per_epoch(spec.train_samples, *spec.hyper.batch);
}

void FakeBoard::run_step(std::uint32_t batch_sum) {
  value = mix(value ^ batch_sum ^ (std::uint64_t{step} << 32));
  ++step;
}

model::TelemetryFrame FakeBoard::frame_of(std::uint32_t at) const {
  model::TelemetryFrame frame;
  frame.step = at;
  frame.boot_id = boot_id;
  frame.loss.sum = static_cast<std::int64_t>(value & 0xFFFFF);
  frame.correct = static_cast<std::uint32_t>(value % 9);
  frame.layers.push_back({5, 2, static_cast<std::uint8_t>(*spec.hyper.k)});
  return frame;
}

void FakeBoard::end_epoch_now(std::uint32_t heldout_correct) {
  const bool guard = *spec.hyper.guard;
  const bool better = losses ? heldout_correct < best_correct : heldout_correct > best_correct;
  if (guard && (!has_best || better)) {
    best_value = value;
    best_correct = heldout_correct;
    best_step = step;
    has_best = true;
  }
  ++epoch;
  if (epoch == *spec.hyper.epochs && guard) value = best_value;
  model::EpochResult r;
  r.epoch = epoch - 1;
  r.step = step;
  r.loss.sum = static_cast<std::int64_t>(value & 0xFFFF);
  r.train = {static_cast<std::uint32_t>(value % (spec.train_samples + 1)), spec.train_samples};
  r.heldout = {heldout_correct, spec.heldout_samples};
  r.best_step = best_step;
  r.state_hash = state_hash();
  if (losses) r.train.correct = 0;
  if (corrupt_epochs) r.train.correct ^= 1;
  records[r.epoch] = r;
}

void FakeBoard::send_epoch(std::uint32_t which) {
  if (session && session->alive_ && session->sink_ != nullptr)
    session->sink_->on_epoch(records[which]);
}

void FakeBoard::send_spoilt_epoch(std::uint32_t which,
                                  const std::function<void(model::EpochResult&)>& how) {
  if (!session || !session->alive_ || session->sink_ == nullptr) return;
  model::EpochResult record = records[which];
  record.epoch = which;
  how(record);
  session->sink_->on_epoch(record);
}

void FakeBoard::job_event(const char* text) {
  if (!session || !session->alive_ || session->sink_ == nullptr) return;
  model::JobChanged change;
  change.run_id = run_id;
  change.attempt = attempt;
  change.job = job;
  change.step = step;
  change.text = text;
  session->sink_->on_job(change);
}

void FakeBoard::start_training() { asio::co_spawn(io_, train(generation_), fleet::Detached{}); }

asio::awaitable<void> FakeBoard::train(std::uint64_t generation) {
  const auto self = shared_from_this();
  const auto train_set = data::SampleSet::parse(samples[1]);
  const Uuid mine = run_id;
  const std::uint32_t my_attempt = attempt;
  const auto current = [&] {
    return generation == generation_ && run_id == mine && attempt == my_attempt;
  };
  if (start_correct == 0xFFFFFFFF && spec.heldout_samples != 0) {
    start_correct = best_correct = score(value, spec.heldout_samples);
    if (*spec.hyper.guard) {
      best_value = value;
      has_best = true;
    }
  }
  while (current() && job == JobState::kRunning && epoch < *spec.hyper.epochs) {
    asio::steady_timer timer(io_, step_time);
    boost::system::error_code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    if (!current() || job != JobState::kRunning) co_return;
    const std::uint32_t at = step;
    const auto order = data::epoch_order(*spec.hyper.order_seed, epoch, spec.train_samples);
    const std::uint32_t first = at % per_epoch() * *spec.hyper.batch;
    const std::uint32_t n = std::min(*spec.hyper.batch, spec.train_samples - first);
    run_step(sum_of(train_set->batch(order.data() + first, n)));
    if (session && session->alive_ && session->sink_ != nullptr) {
      auto frame = frame_of(at);
      frame.event_id = event_id++;
      session->sink_->on_step(frame);
    }
    if (step < (epoch + 1) * per_epoch()) continue;
    end_epoch_now(score(value, spec.heldout_samples));
    job = JobState::kEpochHold;
    if (!std::exchange(lose_epoch_event, false)) {
      send_epoch(epoch - 1);
      if (duplicate_epochs) send_epoch(epoch - 1);
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (current() && job == JobState::kEpochHold && acked < epoch && session &&
           session->alive_ && std::chrono::steady_clock::now() < until)
      co_await wake_.wait_until(until);
    if (!current()) co_return;
    if (job == JobState::kEpochHold) job = JobState::kRunning;
  }
  if (!current() || job != JobState::kRunning) co_return;
  job = JobState::kDone;
  job_event("done");
}

}  // namespace odt::test
