#include <absl/strings/str_cat.h>

#include <algorithm>

#include "data/order.h"
#include "training/run_task.h"

// A run that the board holds: epochs, checkpoints, pause.
namespace odt::training {
namespace {

constexpr std::uint32_t kAlarmStuck = 4;  // over 95 % of the weights' deltas are 0 (rule 1.10)

using model::JobState;
using model::RunState;
using Action = session::BoardSession::Action;
using std::chrono::steady_clock;

constexpr auto kQuiet = std::chrono::seconds(2);  // without news: ask the board
constexpr auto kLook = std::chrono::seconds(10);  // with step records and nothing else, too
constexpr std::size_t kMaxInbox = 256;            // what is dropped is fetched in its turn

bool same_result(const model::EpochResult& a, const model::EpochResult& b) {
  return a.step == b.step && a.loss == b.loss && a.train == b.train && a.heldout == b.heldout &&
         a.heldout_loss == b.heldout_loss && a.best_step == b.best_step &&
         a.state_hash == b.state_hash;
}

Status diverged(const std::string& text) {
  return with_reason(absl::DataLossError(text), "DIVERGED",
                     "Both records are kept. Replay the run, and check the board's memory.");
}

Status board_fault(const std::string& text) {
  return with_reason(absl::DataLossError(text), "BOARD_FAULT",
                     "Reset the board; if it happens again, flash its firmware anew.");
}

}  // namespace

asio::awaitable<Status> RunTask::load_epochs() {
  if (epochs_loaded_) co_return absl::OkStatus();
  const Uuid id = run_.id;
  auto epochs = co_await env_->control.call([id](store::ControlStore& s) { return s.epochs(id); });
  if (!epochs.ok()) co_return epochs.status();
  for (auto& epoch : *epochs) known_epochs_[{epoch.attempt, epoch.epoch}] = epoch;
  co_await load_records();
  epochs_loaded_ = true;
  co_return absl::OkStatus();
}

bool RunTask::consistent(const model::DeviceState& state) const {
  if (state.step < run_.checkpoint_step) return false;
  if (!run_.effective.k.has_value()) return false;  // started, but never recorded here
  for (const auto& [key, epoch] : known_epochs_) {
    const bool comparable = key.first == state.attempt && epoch.step == state.step &&
                            epoch.epoch + 1 == state.epoch && !state.state_hash.is_zero();
    if (comparable && epoch.state_hash != state.state_hash) return false;
  }
  return state.epoch >= run_.epochs_done;
}

asio::awaitable<Status> RunTask::follow(Session session, model::DeviceState state) {
  slot_.job_run = run_.id;
  slot_.job_attempt = run_.attempt;
  auto done = co_await derive_samples();  // after a restart of odtd
  if (!done.ok()) co_return done;
  done = co_await settle_steering(session);
  if (!done.ok()) co_return done;
  const bool streamed = *run_.effective.streamed;
  if (run_.desired == model::Desired::kPause) {
    if (!streamed && state.job == JobState::kRunning) {
      done = co_await pause_board(session);
      if (!done.ok()) co_return done;
    }
    done = co_await hold_paused(session, "paused on request");
    co_return done;
  }
  done = co_await go(RunState::kRunning, reloaded_ ? "the board holds the run" : "training");
  if (!done.ok()) co_return done;
  reloaded_ = false;
  if (state.best_wait == model::BestWait::kWanted) {
    done = co_await settle_best(session);
    if (!done.ok()) co_return done;
    auto now = co_await session->get_state(false);
    if (!now.ok()) co_return now.status();
    state = std::move(*now);
  }
  if (streamed)
    done = co_await follow_streamed(session, state);
  else
    done = co_await follow_resident(session, state);
  co_return done;
}

asio::awaitable<Status> RunTask::control(Session session, Action action) {
  CommandLog command(*env_, slot_.uid, run_.id);
  auto done = co_await command.begin("job_control", Hash{});
  if (!done.ok()) co_return done;
  done = co_await session->job_control(run_.id, action);
  co_await command.settle(done);
  co_return done;
}

asio::awaitable<Status> RunTask::pause_board(Session session) {
  auto done = co_await control(session, Action::kPause);
  // Over already: there is nothing left to pause.
  if (absl::IsFailedPrecondition(done)) co_return absl::OkStatus();
  if (!done.ok()) co_return done;
  const auto deadline = steady_clock::now() + std::chrono::seconds(10);
  while (steady_clock::now() < deadline) {
    auto stop = interrupted(session);
    if (!stop.ok()) co_return stop;
    auto state = co_await session->get_state(false);
    if (!state.ok()) co_return state.status();
    env_->registry->note_state(slot_.uid, *state);
    if (state->job != JobState::kRunning) co_return absl::OkStatus();
    co_await slot_.signal.wait_for(std::chrono::milliseconds(100));
  }
  co_return absl::DeadlineExceededError("the board did not pause within 10 s");
}

void RunTask::on_epoch(model::EpochResult epoch) {
  // A record that came twice says nothing new; one with other content is looked at.
  const bool here = std::any_of(inbox_.begin(), inbox_.end(), [&epoch](const auto& e) {
    return e.epoch == epoch.epoch && same_result(e, epoch);
  });
  if (!here && inbox_.size() < kMaxInbox) inbox_.push_back(std::move(epoch));
  slot_.signal.notify();
}

// What a board may say of an epoch of this run; the rest is no result at all.
Status RunTask::check_epoch(const model::EpochResult& epoch) const {
  const std::uint32_t epochs = *run_.effective.epochs;
  if (epoch.epoch >= epochs)
    return board_fault(absl::StrCat("the board sent a record of epoch ", epoch.epoch,
                                    "; the run has ", epochs, " (from 0)"));
  const std::uint64_t step = std::uint64_t{epoch.epoch + 1} *
                             data::steps_per_epoch(run_.train_samples, *run_.effective.batch);
  if (epoch.step != step)
    return board_fault(absl::StrCat("the board says that epoch ", epoch.epoch, " ended at step ",
                                    epoch.step, "; it ends at ", step));
  if (!has_classes()) {
    // heldout.correct is the held-out loss here.
    if (epoch.train.correct != 0)
      return board_fault(absl::StrCat("the board counts right answers in epoch ", epoch.epoch,
                                      " of a model without classes"));
    if (epoch.heldout.correct > kMaxGuardLoss)
      return board_fault(absl::StrCat("the board says that the held-out loss of epoch ",
                                      epoch.epoch, " is ", epoch.heldout.correct));
    return absl::OkStatus();
  }
  if (epoch.train.correct > epoch.train.total || epoch.heldout.correct > epoch.heldout.total)
    return board_fault(
        absl::StrCat("the board counts more right answers than samples in epoch ", epoch.epoch));
  return absl::OkStatus();
}

void RunTask::losses_apart(model::EpochResult& epoch) const {
  if (epoch.heldout.total != 0)
    epoch.heldout_loss = {epoch.heldout.correct, 0, epoch.heldout.total, model::LossKind::kMse};
  epoch.train = epoch.heldout = {};
}

asio::awaitable<Status> RunTask::fetch_epochs(Session session, std::uint32_t end) {
  if (end > *run_.effective.epochs)
    co_return board_fault(absl::StrCat("the board says that ", end,
                                       " epochs are done; the run has ", *run_.effective.epochs));
  for (std::uint32_t epoch = run_.epochs_done; epoch < end; ++epoch) {
    auto stop = interrupted(session);
    if (!stop.ok()) co_return stop;
    const bool here = std::any_of(inbox_.begin(), inbox_.end(),
                                  [epoch](const auto& e) { return e.epoch == epoch; });
    if (here) continue;
    auto done = co_await session->get_epoch(epoch);
    if (absl::IsNotFound(done) || absl::IsOutOfRange(done))
      co_return absl::AbortedError(
          absl::StrCat("the board has no record of epoch ", epoch, " any more"));
    if (!done.ok()) co_return done;
  }
  std::sort(inbox_.begin(), inbox_.end(),
            [](const auto& a, const auto& b) { return a.epoch < b.epoch; });
  co_return absl::OkStatus();
}

asio::awaitable<Status> RunTask::follow_resident(Session session, model::DeviceState state) {
  auto done = co_await fetch_epochs(session, state.epoch);
  if (!done.ok()) co_return done;
  if (state.job == JobState::kPaused || state.job == JobState::kReady) {
    done = co_await control(session, Action::kResume);
    if (!done.ok()) co_return done;
  }
  done = co_await settle_best(session);
  if (!done.ok()) co_return done;
  auto heard = steady_clock::now();
  while (true) {
    if (!inbox_.empty()) heard = steady_clock::now();
    done = co_await drain_epochs(session);
    if (!done.ok()) co_return done;
    if (run_.epochs_done >= *run_.effective.epochs) break;
    done = interrupted(session);
    if (!done.ok()) co_return done;
    if (run_.desired == model::Desired::kPause) {
      done = co_await pause_board(session);
      if (!done.ok()) co_return done;
      done = co_await hold_paused(session, "paused on request");
      co_return done;
    }
    if (job_news_ && job_news_->job == JobState::kFailed)
      co_return with_reason(
          absl::InternalError(absl::StrCat("the board's training failed: ", job_news_->text)),
          "BOARD_FAILED", "Look at the board's log lines.");
    if (job_news_ && job_news_->job == JobState::kEpochHold) {
      job_news_.reset();
      done = co_await settle_best(session);
      if (!done.ok()) co_return done;
      continue;
    }
    const auto ask_at = std::min(std::max(heard, last_record_) + kQuiet, heard + kLook);
    if (steady_clock::now() >= ask_at) {
      heard = steady_clock::now();
      auto now = co_await session->get_state(false);
      if (!now.ok()) co_return now.status();
      env_->registry->note_state(slot_.uid, *now);
      if (now->run_id != run_.id || now->attempt != run_.attempt ||
          now->job == JobState::kStopped || now->job == JobState::kNone)
        co_return absl::AbortedError("the board does not hold the run any more");
      if (now->job == JobState::kFailed)
        co_return with_reason(absl::InternalError("the board's training failed"), "BOARD_FAILED",
                              "Look at the board's log lines.");
      if (now->job == JobState::kPaused || now->job == JobState::kReady) {
        done = co_await control(session, Action::kResume);
        if (!done.ok()) co_return done;
      }
      done = co_await fetch_epochs(session, now->epoch);
      if (!done.ok()) co_return done;
      if (now->best_wait != model::BestWait::kNone) {
        done = co_await settle_best(session);
        if (!done.ok()) co_return done;
      }
      continue;
    }
    if (inbox_.empty()) co_await slot_.signal.wait_until(ask_at);
  }
  tell_gap(run_.steps_total);
  done = co_await finish(session);
  co_return done;
}

asio::awaitable<Status> RunTask::drain_epochs(Session session) {
  while (!inbox_.empty()) {
    auto stop = interrupted(session);
    if (!stop.ok()) co_return stop;
    model::EpochResult epoch = std::move(inbox_.front());
    inbox_.pop_front();
    auto sound = check_epoch(epoch);
    if (!sound.ok()) co_return sound;
    if (epoch.epoch > run_.epochs_done) {
      const std::uint32_t end = epoch.epoch;
      inbox_.push_front(std::move(epoch));
      auto fetched = co_await fetch_epochs(session, end);
      if (!fetched.ok()) co_return fetched;
      if (inbox_.front().epoch > run_.epochs_done)
        co_return absl::AbortedError(
            absl::StrCat("the board did not send the record of epoch ", run_.epochs_done));
      continue;
    }
    auto taken = co_await take_epoch(session, std::move(epoch));
    if (!taken.ok()) co_return taken;
  }
  co_return absl::OkStatus();
}

Status RunTask::compare_epoch(const model::EpochResult& epoch, bool* known) const {
  *known = false;
  for (const auto& [key, record] : known_epochs_) {
    if (key.second != epoch.epoch) continue;
    if (!same_result(record, epoch))
      return diverged(absl::StrCat("epoch ", epoch.epoch, " of attempt ", epoch.attempt,
                                   " has state ", epoch.state_hash.hex().substr(0, 16),
                                   "; attempt ", key.first, " recorded ",
                                   record.state_hash.hex().substr(0, 16)));
    if (key.first == epoch.attempt) *known = true;
  }
  return absl::OkStatus();
}

// What the board cannot tell: its sums against the image's exponents.
asio::awaitable<void> RunTask::add_gavg(model::EpochResult& epoch) {
  if (run_.effective.rule_set == model::RuleSet::kDfp16) co_return;
  if (!exponents_) {
    const auto image = co_await env_->read_blob(run_.spec.model_hash);
    auto read = image.ok() ? read_exponents(**image) : Result<Exponents>(image.status());
    exponents_ = read.ok() ? *read : Exponents{};
  }
  for (std::size_t i = 0; i < epoch.layers.size() && i < exponents_->layers.size(); ++i)
    epoch.layers[i].gavg_q8 = gavg_q8(epoch.layers[i], exponents_->layers[i], exponents_->logits,
                                      run_.effective.loss, run_.effective.batch.value_or(0));
}

asio::awaitable<Status> RunTask::take_epoch(Session session, model::EpochResult epoch) {
  epoch.run_id = run_.id;
  epoch.attempt = run_.attempt;
  epoch.board_uid = slot_.uid;
  if (epoch.time_us == 0) epoch.time_us = env_->clock.now_us();
  if (epoch.loss.kind == model::LossKind::kUnspecified) epoch.loss.kind = run_.effective.loss;
  if (epoch.loss.count == 0) epoch.loss.count = epoch.train.total;
  // Where every sample is learnt already there is nothing to change: not stuck.
  if (epoch.train.total != 0 && epoch.train.correct == epoch.train.total)
    epoch.alarms &= ~kAlarmStuck;
  if (!has_classes()) losses_apart(epoch);
  co_await add_gavg(epoch);
  bool known = false;
  Status same = compare_epoch(epoch, &known);
  Save what;
  const bool next = epoch.epoch + 1 > run_.epochs_done;
  if (!known) what.extra.push_back(store::AppendEpoch{epoch});
  what.edit = [this, epoch](model::Run& r) {
    if (epoch.epoch + 1 > r.epochs_done) end_epoch_clock(r, epoch.step_us);
    r.epochs_done = std::max(r.epochs_done, epoch.epoch + 1);
    r.steps_done = std::max(r.steps_done, epoch.step);
    r.best_step = epoch.best_step;
    if (r.effective.guard.value_or(false) && epoch.heldout.total != 0 &&
        epoch.heldout.correct > r.heldout_best.correct)
      r.heldout_best = epoch.heldout;
    if (r.effective.guard.value_or(false) && epoch.heldout_loss.count != 0 &&
        epoch.heldout_loss.sum < r.heldout_best_loss.sum)
      r.heldout_best_loss = epoch.heldout_loss;
  };
  if (!known || next) {
    // Durable before anything else: what is acknowledged is gone from the board.
    auto saved = co_await save(std::move(what));
    if (!saved.ok()) {
      if (absl::IsDataLoss(saved)) co_return diverged(text_of(saved));
      co_return saved;
    }
    known_epochs_[{epoch.attempt, epoch.epoch}] = epoch;
    fruitless_ = 0;
  }
  if (!same.ok()) co_return same;
  const bool last = epoch.epoch + 1 >= *run_.effective.epochs;
  if (!last && epoch.best_step == epoch.step) {
    auto settled = co_await settle_best(session);
    if (!settled.ok()) co_return settled;
  }
  const std::uint32_t every = *run_.effective.checkpoint_epochs;
  if (!last && every != 0 && (epoch.epoch + 1) % every == 0) {
    auto kept = co_await checkpoint(session, epoch);
    if (!kept.ok()) co_return kept;
  }
  auto acked = co_await session->ack_epoch(run_.id, run_.attempt, epoch.epoch);
  co_return acked;
}

asio::awaitable<Status> RunTask::settle_best(Session session) {
  if (!run_.effective.best_on_host.value_or(false)) co_return absl::OkStatus();
  auto state = co_await session->get_state(false);
  if (!state.ok()) co_return state.status();
  if (state->run_id != run_.id || state->attempt != run_.attempt)
    co_return absl::AbortedError("the board does not hold the run any more");
  if (state->best_wait == model::BestWait::kWanted) {
    auto best = co_await env_->read_blob(run_.best_weights);
    if (!best.ok())
      co_return with_reason(absl::DataLossError("the guard's best weights are not here: " +
                                                std::string(best.status().message())),
                            "BEST_LOST", "Start the run again.");
    auto sent = co_await session->send(model::Resource::kBestWeights, 0, *best);
    co_return sent;
  }
  if (state->best_wait != model::BestWait::kUnread) co_return absl::OkStatus();
  auto best = co_await session->receive(model::Resource::kBestWeights);
  if (!best.ok()) co_return best.status();
  auto weights = std::make_shared<const std::string>(std::move(best->content));
  auto written = co_await env_->write_blob(weights);
  if (!written.ok()) co_return written.status();
  const Hash hash = *written;
  Save what;
  what.edit = [hash](model::Run& r) { r.best_weights = hash; };
  // Durable before the board hears of it: it may change the weights then.
  auto saved = co_await save(std::move(what));
  if (!saved.ok()) co_return saved;
  auto kept = co_await session->best_kept(run_.id, run_.attempt, hash);
  co_return kept;
}

asio::awaitable<Status> RunTask::checkpoint(Session session, model::EpochResult epoch) {
  // The board holds for some seconds only: when it has gone on, the next epoch will do.
  auto state = co_await session->receive(model::Resource::kState);
  if (absl::IsAborted(state.status()) || absl::IsFailedPrecondition(state.status()))
    co_return absl::OkStatus();
  if (!state.ok()) co_return state.status();
  auto content = std::make_shared<const std::string>(std::move(state->content));
  if (sha256(*content) != epoch.state_hash) {
    if (state->version != epoch.step) co_return absl::OkStatus();
    co_return diverged(absl::StrCat("the state of step ", epoch.step,
                                    " as read has another hash than the board reported"));
  }
  const Hash best_hash = best_hash_of_state(*content);
  const bool host = run_.effective.best_on_host.value_or(false);
  if (host && best_hash != run_.best_weights) co_return absl::OkStatus();
  const bool need_best = !host && !best_hash.is_zero() && best_hash != run_.checkpoint_best;
  if (need_best) {
    auto best = co_await session->receive(model::Resource::kBestWeights);
    if (absl::IsAborted(best.status()) || absl::IsFailedPrecondition(best.status()))
      co_return absl::OkStatus();
    if (!best.ok()) co_return best.status();
    auto weights = std::make_shared<const std::string>(std::move(best->content));
    if (sha256(*weights) != best_hash) co_return absl::OkStatus();
    auto written = co_await env_->write_blob(weights);
    if (!written.ok()) co_return written.status();
  }
  auto written = co_await env_->write_blob(content);
  if (!written.ok()) co_return written.status();
  Save what;
  const Hash hash = epoch.state_hash;
  const std::uint32_t step = epoch.step;
  what.edit = [hash, best_hash, step](model::Run& r) {
    r.checkpoint_state = hash;
    r.checkpoint_best = best_hash;
    r.checkpoint_step = step;
  };
  auto saved = co_await save(std::move(what));
  co_return saved;
}

void RunTask::add_telemetry(model::TelemetryFrame frame) {
  frame.run_id = run_.id;
  frame.attempt = run_.attempt;
  frame.board_uid = slot_.uid;
  if (frame.time_us == 0) frame.time_us = env_->clock.now_us();
  if (frame.loss.kind == model::LossKind::kUnspecified) frame.loss.kind = run_.effective.loss;
  // The wire leaves out what run and step tell.
  const std::uint32_t batch = run_.effective.batch.value_or(0);
  if (frame.gap == 0 && frame.loss.count == 0 && batch != 0 && run_.train_samples != 0)
    frame.loss.count = data::samples_of_step(frame.step, run_.train_samples, batch);
  if (!on_lost_) {
    std::weak_ptr<RunTask> weak = weak_from_this();
    asio::io_context& io = env_->io;
    on_lost_ = std::make_shared<const std::function<void(Status)>>([weak, &io](Status why) {
      asio::post(io, [weak, why] {
        const auto task = weak.lock();
        if (!task) return;
        if (absl::IsDataLoss(why))
          task->on_diverged(diverged(text_of(why)));
        else
          task->on_telemetry_lost(why);
      });
    });
  }
  env_->telemetry.append_shared(std::move(frame), on_lost_);
}

void RunTask::on_telemetry_lost(const Status& why) {
  // Once a run: the store is full or too slow, and every frame would say so.
  if (std::exchange(telemetry_lost_, true)) return;
  asio::co_spawn(
      env_->io,
      [](std::shared_ptr<RunTask> self, std::string text) -> asio::awaitable<void> {
        (void)co_await self->warn("TELEMETRY_LOST", "step records are not stored: " + text,
                                  "Free disk space or raise the quota; epoch results are kept.");
      }(shared_from_this(), text_of(why)),
      fleet::Detached{});
}

}  // namespace odt::training
