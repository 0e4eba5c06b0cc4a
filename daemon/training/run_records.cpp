#include <algorithm>
#include <utility>

#include "training/run_task.h"

// Step records of a run: what comes, and what is missing between.
namespace odt::training {

void RunTask::on_step(model::TelemetryFrame frame) {
  // Streamed steps come with their answers.
  if (run_.effective.streamed.value_or(false)) return;
  // A gap counts events, of whatever kind: the next record tells which steps are missing.
  if (frame.gap != 0 || frame.step >= run_.steps_total) return;
  last_record_ = std::chrono::steady_clock::now();
  note_step_time(frame.step);
  if (!records_known_) early_record_ = std::min(early_record_, frame.step);
  tell_gap(frame.step);
  next_record_ = std::max(next_record_, frame.step + 1);
  add_telemetry(std::move(frame));
}

// What is missing between the records so far and `step` becomes a gap record; where it comes after
// all it takes the gap's place.
void RunTask::tell_gap(std::uint32_t step) {
  const std::uint32_t every = run_.effective.telemetry_every.value_or(1);
  if (every == 0 || !records_known_) return;
  if (record_attempt_ != run_.attempt) {
    record_attempt_ = run_.attempt;
    next_record_ = run_.attempt_step;
  }
  const std::uint32_t first = (next_record_ + every - 1) / every * every;
  if (first >= step) return;
  model::TelemetryFrame gap;
  gap.step = first;
  gap.gap = (step - first + every - 1) / every;
  next_record_ = step;
  add_telemetry(std::move(gap));
}

// After a restart of odtd: the first step that its store has neither a record nor a gap of.
asio::awaitable<void> RunTask::load_records() {
  store::TelemetryStore::Range range;
  range.run = run_.id;
  range.attempt = record_attempt_ = run_.attempt;
  next_record_ = 0;
  const auto frames =
      co_await env_->telemetry.call([range](store::TelemetryStore& s) { return s.read(range); });
  records_known_ = true;
  // Meanwhile records came: they are after those of the store, not among them.
  const std::uint32_t seen = std::exchange(next_record_, run_.attempt_step);
  if (run_.attempt == 0 || !frames.ok()) {
    next_record_ = std::max(next_record_, seen);
    co_return;
  }
  const std::uint32_t every = std::max(1u, run_.effective.telemetry_every.value_or(1));
  const bool all = frames->total == frames->frames.size();
  for (const auto& frame : frames->frames) {
    if (all && frame.step > next_record_ + every - 1) break;
    next_record_ = std::max(next_record_, frame.step + std::max(1u, frame.gap * every));
  }
  if (early_record_ != UINT32_MAX) tell_gap(early_record_);
  next_record_ = std::max(next_record_, seen);
}

}  // namespace odt::training
