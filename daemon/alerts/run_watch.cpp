#include "alerts/run_watch.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace odt::alerts {
namespace {

using model::AlertKind;
using model::RunState;

constexpr std::uint32_t kDeadLayer = 1;  // bit of EpochResult::alarms

std::string short_id(const Uuid& id) { return id.hex().substr(0, 12); }

// Parts per million as a percentage with one digit.
std::string percent(std::int64_t ppm) {
  return absl::StrCat(ppm / 10'000, ".", ppm / 1000 % 10, " %");
}

std::int64_t rate_ppm(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<std::int64_t>(part * 1'000'000 / whole);
}

double mean(const model::Loss& loss) {
  return std::ldexp(static_cast<double>(loss.sum), loss.exp2) / loss.count;
}

bool better(const model::Accuracy& a, const model::Accuracy& b) {
  if (a.total == 0 || b.total == 0) return a.total != 0;
  return std::uint64_t{a.correct} * b.total > std::uint64_t{b.correct} * a.total;
}

}  // namespace

RunWatch::RunWatch(Book& book, std::function<std::string(const BoardUid&)> name)
    : book_(book), name_(std::move(name)) {}

Seen RunWatch::seen(AlertKind rule, const Uuid& id, const Watched& run) const {
  Seen out;
  out.rule = rule;
  out.board = run.board;
  out.subject = name_(run.board);
  out.run_id = id;
  return out;
}

void RunWatch::end(const model::Run& run, Watched& watched, Now now) {
  const char* how = run.state == RunState::kSucceeded ? "the run has ended"
                    : run.state == RunState::kFailed  ? "the run has failed"
                                                      : "the run was cancelled";
  book_.resolve(AlertKind::kStuck, watched.board, how, now.us);
  using model::GuardVerdict;
  const bool kept = run.guard_verdict == GuardVerdict::kBest ||
                    run.guard_verdict == GuardVerdict::kStart ||
                    run.guard_verdict == GuardVerdict::kLast;
  if (run.state == RunState::kSucceeded && kept)
    book_.resolve(AlertKind::kAccuracyDrop, watched.board,
                  absl::StrCat("the guard kept the weights of step ", run.best_step), now.us);
}

bool RunWatch::on_run(const model::Run& run, Now now) {
  auto it = runs_.find(run.id);
  if (model::is_final(run.state)) {
    if (it == runs_.end()) return false;
    end(run, it->second, now);
    runs_.erase(it);
    return false;
  }
  const bool running = run.state == RunState::kRunning && run.desired == model::Desired::kRun;
  if (it == runs_.end() && !running) return false;
  const bool begins = it == runs_.end();
  if (begins) it = runs_.try_emplace(run.id).first;
  Watched& w = it->second;
  if (begins) {
    w.board = run.spec.board_uid;
    w.name = run.spec.name.empty() ? short_id(run.id) : run.spec.name;
    // Of other weights than those that were bad.
    if (run.steps_done == 0)
      for (const AlertKind rule :
           {AlertKind::kAccuracyDrop, AlertKind::kDeadLayer, AlertKind::kSaturation})
        book_.resolve(rule, w.board, "a new run began on the board", now.us);
  }
  const bool moved = run.steps_done != w.steps || run.epochs_done != w.epochs ||
                     run.attempt != w.attempt || running != w.running;
  if (moved) w.progress = now.mono_us;
  w.running = running;
  w.steps = run.steps_done;
  w.epochs = run.epochs_done;
  w.attempt = run.attempt;
  w.epoch_us = run.timing.epoch_us;
  for (const auto& known : {run.heldout_start, run.heldout_best})
    if (better(known, w.best)) w.best = known;
  for (const auto& known : {run.heldout_start_loss, run.heldout_best_loss})
    if (known.count != 0 && (w.best_loss.count == 0 || mean(known) < mean(w.best_loss)))
      w.best_loss = known;
  w.best_step = run.best_step;
  if (!running) {
    Seen s = seen(AlertKind::kStuck, run.id, w);
    s.text = run.state == RunState::kWaitingBoard ? "the run waits for its board"
                                                  : "the run does not train now";
    book_.judge(s, now.us, now.mono_us);
  }
  return begins;
}

void RunWatch::on_model(const Uuid& run, std::vector<std::uint32_t> weights, Now now) {
  const auto it = runs_.find(run);
  if (it == runs_.end()) return;
  it->second.weights = std::move(weights);
  if (const auto epoch = std::exchange(it->second.unjudged, std::nullopt))
    judge_saturation(*epoch, it->first, it->second, now);
}

void RunWatch::judge_accuracy(const model::EpochResult& epoch, const Uuid& id, Watched& run,
                              Now now) {
  Seen s = seen(AlertKind::kAccuracyDrop, id, run);
  s.occurrence = true;
  if (epoch.heldout.total != 0 && run.best.total != 0) {
    const auto best = rate_ppm(run.best.correct, run.best.total);
    const auto is = rate_ppm(epoch.heldout.correct, epoch.heldout.total);
    s.value = best - is;
    s.text = absl::StrCat("held-out accuracy of run ", run.name, " fell to ", percent(is),
                          " in epoch ", epoch.epoch, "; its best is ", percent(best));
  } else if (epoch.heldout_loss.count != 0 && run.best_loss.count != 0 && run.best_loss.sum > 0) {
    const double rise = mean(epoch.heldout_loss) / mean(run.best_loss) - 1;
    s.value = static_cast<std::int64_t>(std::clamp(rise, -1.0, 1e6) * 1e6);
    s.text = absl::StrCat("held-out loss of run ", run.name, " is ", percent(s.value),
                          " over its lowest in epoch ", epoch.epoch);
  } else {
    return;
  }
  const auto threshold = book_.rule(AlertKind::kAccuracyDrop).threshold;
  s.verdict = s.value >= threshold       ? Verdict::kBad
              : s.value * 2 >= threshold ? Verdict::kBetween
                                         : Verdict::kGood;
  if (s.verdict == Verdict::kGood) s.text = "the run is near its best again";
  s.remedy =
      "Look at the run's losses; smaller mu_weight or larger batches are steadier. With the guard "
      "the board ends with its best weights.";
  book_.judge(s, now.us, now.mono_us);
  if (better(epoch.heldout, run.best)) run.best = epoch.heldout;
  if (epoch.heldout_loss.count != 0 &&
      (run.best_loss.count == 0 || mean(epoch.heldout_loss) < mean(run.best_loss)))
    run.best_loss = epoch.heldout_loss;
}

void RunWatch::judge_dead(const model::EpochResult& epoch, const Uuid& id, Watched& run, Now now) {
  Seen dead = seen(AlertKind::kDeadLayer, id, run);
  run.dead_in_a_row = (epoch.alarms & kDeadLayer) != 0 ? run.dead_in_a_row + 1 : 0;
  dead.value = run.dead_in_a_row;
  dead.occurrence = true;
  dead.verdict = run.dead_in_a_row == 0 ? Verdict::kGood
                 : run.dead_in_a_row >= book_.rule(AlertKind::kDeadLayer).threshold
                     ? Verdict::kBad
                     : Verdict::kBetween;
  dead.text = dead.verdict == Verdict::kGood
                  ? "all layers learn again"
                  : absl::StrCat("run ", run.name, " has a dead layer in epoch ", epoch.epoch,
                                 ", for ", run.dead_in_a_row, " in a row");
  dead.remedy = "odtctl run show says which; raise mu_weight, or begin from other weights.";
  book_.judge(dead, now.us, now.mono_us);
}

void RunWatch::judge_saturation(const model::EpochResult& epoch, const Uuid& id, Watched& run,
                                Now now) {
  if (run.weights.empty()) {
    run.unjudged = epoch;
    return;
  }
  Seen full = seen(AlertKind::kSaturation, id, run);
  std::size_t worst = 0;
  for (std::size_t i = 0; i < epoch.layers.size() && i < run.weights.size(); ++i) {
    const auto rate = rate_ppm(epoch.layers[i].saturated, run.weights[i]);
    if (rate > full.value) worst = i;
    full.value = std::max(full.value, rate);
  }
  const auto threshold = book_.rule(AlertKind::kSaturation).threshold;
  full.occurrence = true;
  full.verdict = full.value >= threshold           ? Verdict::kBad
                 : full.value * 4 >= threshold * 3 ? Verdict::kBetween
                                                   : Verdict::kGood;
  full.text = full.verdict == Verdict::kGood
                  ? "few weights are at the end of their range"
                  : absl::StrCat(percent(full.value), " of the weights of trainable layer ", worst,
                                 " are at the end of their range after epoch ", epoch.epoch,
                                 " of run ", run.name);
  full.remedy = "Raise the layer's precision (odtctl run set-k), or train with smaller mu_weight.";
  book_.judge(full, now.us, now.mono_us);
}

void RunWatch::on_epoch(const model::EpochResult& epoch, Now now) {
  const auto it = runs_.find(epoch.run_id);
  if (it == runs_.end()) return;
  it->second.progress = now.mono_us;
  judge_accuracy(epoch, it->first, it->second, now);
  judge_dead(epoch, it->first, it->second, now);
  judge_saturation(epoch, it->first, it->second, now);
}

void RunWatch::on_progress(const std::vector<Uuid>& runs, Now now) {
  for (const Uuid& id : runs)
    if (const auto it = runs_.find(id); it != runs_.end()) it->second.progress = now.mono_us;
}

void RunWatch::forget_board(const BoardUid& board) {
  std::erase_if(runs_, [&](const auto& item) { return item.second.board == board; });
}

void RunWatch::restart_board(const BoardUid& board, Now now) {
  for (auto& [id, run] : runs_) {
    if (run.board != board) continue;
    run.progress = now.mono_us;
    run.dead_in_a_row = 0;
  }
}

void RunWatch::tick(Now now) {
  for (auto& [id, run] : runs_) {
    if (!run.running) continue;
    const std::int64_t expected = std::max(book_.rule(AlertKind::kStuck).threshold * kSecondUs,
                                           3 * std::int64_t{run.epoch_us});
    const std::int64_t silent = now.mono_us - run.progress;
    Seen s = seen(AlertKind::kStuck, id, run);
    s.value = silent / kSecondUs;
    s.verdict = silent >= expected       ? Verdict::kBad
                : silent * 2 >= expected ? Verdict::kBetween
                                         : Verdict::kGood;
    s.text =
        s.verdict == Verdict::kGood
            ? "the run makes progress again"
            : absl::StrCat("run ", run.name, " made no progress for ", s.value, " s after step ",
                           run.steps, "; expected within ", expected / kSecondUs, " s");
    s.remedy = "See what the board says (odtctl watch); odtctl board reset: the run resumes.";
    book_.judge(s, now.us, now.mono_us);
  }
}

}  // namespace odt::alerts
