#include <absl/strings/str_cat.h>

#include <algorithm>

#include "data/order.h"
#include "training/run_task.h"

// Non-volatile memory of the board: what it committed is noted, and a run goes on from it where the
// store knows the same step and state.
namespace odt::training {
namespace {

constexpr std::size_t kMaxPoints = 4;  // a board has two slots

bool of_link(const Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status);
}

}  // namespace

void RunTask::on_nvm(const model::NvmCommitted& commit) {
  if (commit.run_id != run_.id || model::is_final(run_.state)) return;
  // What is spawned runs later: only a parameter of its own keeps the run alive until then.
  asio::co_spawn(
      env_->io,
      [](std::shared_ptr<RunTask> self, model::NvmCommitted c) -> asio::awaitable<void> {
        co_await self->note_commit(std::move(c));
      }(shared_from_this(), commit),
      fleet::Detached{});
}

asio::awaitable<void> RunTask::note_commit(model::NvmCommitted commit) {
  if (!commit.text.empty()) {
    if (!std::exchange(commit_failed_, true))
      (void)co_await warn("NVM_FAILED", "a commit to the board's memory failed: " + commit.text,
                          "The run goes on; look at 'odtctl board nvm' and the board's log.");
    co_return;
  }
  if (commit.kind != model::NvmKind::kState || commit.hash.is_zero()) co_return;
  env_->say(1, absl::StrCat(shown(), ": step ", commit.step, " is in the board's memory (",
                            commit.bytes, " bytes, ", commit.took_ms, " ms)"));
  const model::NvmPoint point{commit.step, commit.hash};
  Save what;
  what.edit = [point](model::Run& r) {
    auto& points = r.nvm_points;
    points.erase(std::remove(points.begin(), points.end(), point), points.end());
    points.push_back(point);
    if (points.size() > kMaxPoints) points.erase(points.begin());
  };
  auto saved = co_await save(std::move(what));
  if (!saved.ok()) env_->say(4, absl::StrCat(shown(), ": store: ", saved.ToString()));
}

// The store has seen the run in that state at that step.
bool RunTask::knows(std::uint32_t step, const Hash& state) const {
  const model::NvmPoint point{step, state};
  if (std::find(run_.nvm_points.begin(), run_.nvm_points.end(), point) != run_.nvm_points.end())
    return true;
  if (step == run_.checkpoint_step && state == run_.checkpoint_state) return true;
  return ended_with(step, state);
}

bool RunTask::ended_with(std::uint32_t step, const Hash& state) const {
  return std::any_of(known_epochs_.begin(), known_epochs_.end(), [&](const auto& known) {
    return known.second.step == step && known.second.state_hash == state;
  });
}

// Records of all epochs below are here: the board has lost them.
bool RunTask::has_epochs(std::uint32_t end) const {
  for (std::uint32_t e = 0; e < end; ++e) {
    const bool here = std::any_of(known_epochs_.begin(), known_epochs_.end(),
                                  [e](const auto& known) { return known.first.second == e; });
    if (!here) return false;
  }
  return true;
}

// What the board has in its memory, if the run can go on from there.
asio::awaitable<std::optional<RunTask::NvmResume>> RunTask::nvm_offer(Session session,
                                                                      model::DeviceState state) {
  const bool begun = run_.attempt != 0 && run_.effective.k.has_value();
  if (!begun || (session->hello().caps & model::kCapNvm) == 0) co_return std::nullopt;
  NvmResume offer;
  if (state.restored && state.run_id == run_.id && state.model_hash == run_.spec.model_hash) {
    offer = {state.step, state.epoch, state.state_hash, true};
  } else {
    auto nvm = co_await session->nvm_status(false);
    const bool ours = nvm.ok() && nvm->kind == model::NvmKind::kState && nvm->run_id == run_.id;
    if (!ours) co_return std::nullopt;
    const std::uint32_t steps =
        data::steps_per_epoch(run_.train_samples, run_.effective.batch.value_or(1));
    // A commit that a step has begun comes before the end of its epoch.
    const bool ended = nvm->step % steps != 0 || ended_with(nvm->step, nvm->hash);
    offer = {nvm->step, nvm->step / steps - (ended ? 0 : 1), nvm->hash, false};
  }
  const bool good = offer.step != 0 && offer.step >= run_.checkpoint_step &&
                    knows(offer.step, offer.state) && has_epochs(offer.epoch);
  if (!good) {
    env_->say(2, absl::StrCat(shown(), ": step ", offer.step, " in the board's memory is not ",
                              "one that is known here; it is not used"));
    co_return std::nullopt;
  }
  co_return offer;
}

// The image comes from here where it did not fit the board's memory.
asio::awaitable<Status> RunTask::bring_back(Session session, model::DeviceState state) {
  if (!nvm_->restored) {
    auto done = co_await load_image(*env_, session, state, image_hash());
    if (!done.ok()) co_return done;
  }
  if (!run_.effective.streamed.value_or(false)) {
    auto done = co_await push_resident(session);
    if (!done.ok()) co_return done;
  }
  if (nvm_->restored) co_return absl::OkStatus();
  auto restored = co_await session->nvm_status(true);
  if (!restored.ok()) co_return restored.status();
  auto now = co_await session->get_state(true);
  if (!now.ok()) co_return now.status();
  if (!now->restored || now->step != nvm_->step || now->epoch != nvm_->epoch ||
      now->state_hash != nvm_->state)
    co_return absl::FailedPreconditionError("it came back with another state");
  co_return absl::OkStatus();
}

// best_on_host: the best that the state names has to be here.
asio::awaitable<Status> RunTask::find_best_of(Session session) {
  if (!run_.effective.best_on_host.value_or(false)) co_return absl::OkStatus();
  auto content = co_await session->receive(model::Resource::kState);
  if (!content.ok()) co_return content.status();
  const Hash best = best_hash_of_state(content->content);
  if (!best.is_zero()) {
    auto here = co_await env_->read_blob(best);
    if (!here.ok()) co_return absl::FailedPreconditionError("its best weights are not here");
  }
  Save what;
  what.edit = [best](model::Run& r) { r.best_weights = best; };
  auto saved = co_await save(std::move(what));
  co_return saved;
}

// With what a resident run needs here; as below.
asio::awaitable<Result<bool>> RunTask::try_nvm(Session session, model::DeviceState state) {
  auto done = co_await derive_samples();
  if (done.ok()) done = co_await settle_outputs();
  if (done.ok()) done = interrupted(session);
  if (!done.ok()) co_return done;
  auto resumed = co_await resume_from_nvm(session, std::move(state));
  co_return resumed;
}

// False: the board's memory is of no use after all; the checkpoint is sent.
asio::awaitable<Result<bool>> RunTask::resume_from_nvm(Session session, model::DeviceState state) {
  auto done = co_await bring_back(session, state);
  if (done.ok()) done = co_await find_best_of(session);
  if (done.ok()) done = interrupted(session);
  if (done.ok()) done = co_await send_start(session);
  if (done.ok()) {
    env_->say(
        2, absl::StrCat(shown(), ": goes on at step ", nvm_->step, " from the board's own memory"));
    co_return true;
  }
  if (of_link(done)) co_return done;
  env_->say(3, absl::StrCat(shown(), ": the board's memory is not used: ", text_of(done)));
  nvm_.reset();
  co_return false;
}

}  // namespace odt::training
