#include <absl/strings/str_cat.h>

#include <algorithm>

#include "data/order.h"
#include "training/run_task.h"

// Steering of rule 1.12: a layer's precision from a step on. It is written down before the board
// hears of it, so that every later attempt and a replay do the same.
namespace odt::training {
namespace {

constexpr std::size_t kMaxWaiting = 8;  // a board keeps so many
constexpr std::uint32_t kMaxLayers = 16;

Status out_of_range(const char* field, std::uint64_t got, std::uint64_t low, std::uint64_t high) {
  return with_reason(absl::InvalidArgumentError(
                         absl::StrCat(field, " is ", got, "; ", low, " to ", high, " are allowed")),
                     "OUT_OF_RANGE",
                     absl::StrCat("Choose ", field, " between ", low, " and ", high, "."));
}

bool refused(const Status& status) {
  return !status.ok() && !absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status) &&
         !absl::IsCancelled(status);
}

}  // namespace

// What a board that starts from the checkpoint, or from its own memory, has yet to do.
std::vector<model::Steer> RunTask::steering_left() const {
  std::vector<model::Steer> out;
  const std::uint32_t from = nvm_ ? nvm_->step : run_.checkpoint_step;
  for (const auto& steer : run_.steering)
    if (steer.step >= from) out.push_back(steer);
  return out;
}

Status RunTask::check_steer(const model::Steer& steer) const {
  const std::uint32_t k_max = run_.effective.apt_k_max.value_or(0);
  if (!run_.effective.k.has_value() || model::is_final(run_.state))
    return with_reason(absl::FailedPreconditionError(shown() + " does not run"), "NOT_RUNNING",
                       "Steer a run that has begun and is not over.");
  if (k_max == 0)
    return with_reason(absl::FailedPreconditionError(shown() + " has a fixed precision"),
                       "FIXED_PRECISION", "Create the run with apt or apt_k_max.");
  if (steer.k < 2 || steer.k > k_max) return out_of_range("k", steer.k, 2, k_max);
  const std::uint32_t known = model_ ? model_->trainable_layers : 0;
  const std::uint32_t layers = known != 0 ? known : kMaxLayers;
  if (steer.layer >= layers) return out_of_range("layer", steer.layer, 0, layers - 1);
  if (steer.step >= run_.steps_total)
    return out_of_range("step", steer.step, 0, run_.steps_total - 1);
  for (const auto& told : run_.steering)
    if (told.step == steer.step && told.layer == steer.layer && told.k != steer.k)
      return with_reason(
          absl::FailedPreconditionError(absl::StrCat("layer ", steer.layer, " has k ", told.k,
                                                     " from step ", steer.step, " on already")),
          "STEERED", "Choose a later step.");
  const std::vector<model::Steer> left = steering_left();
  if (std::find(left.begin(), left.end(), steer) == left.end() && left.size() >= kMaxWaiting)
    return with_reason(
        absl::ResourceExhaustedError(
            absl::StrCat(left.size(), " changes since the last checkpoint; at most ", kMaxWaiting)),
        "TOO_MANY", "Wait for the next checkpoint.");
  return absl::OkStatus();
}

asio::awaitable<Status> RunTask::forget_steer(model::Steer steer) {
  Save what;
  what.edit = [steer](model::Run& r) { std::erase(r.steering, steer); };
  auto saved = co_await save(std::move(what));
  co_return saved;
}

asio::awaitable<Result<model::Run>> RunTask::set_precision(CallContext ctx, model::Steer steer) {
  const auto self = shared_from_this();
  const Session session = slot_.live_session();
  if (!session)
    co_return with_reason(absl::UnavailableError("the board is away"), "BOARD_OFFLINE",
                          "Steer the run when its board is back.");
  if (steer.step == 0) {  // the next epoch
    auto ok = check_steer(steer);
    if (!ok.ok()) co_return ok;
    auto state = co_await session->get_state(false);
    if (!state.ok()) co_return state.status();
    const std::uint32_t each = data::steps_per_epoch(run_.train_samples, *run_.effective.batch);
    steer.step = (state->step / each + 1) * each;
  }
  auto ok = check_steer(steer);
  if (!ok.ok()) co_return ok;
  if (std::find(run_.steering.begin(), run_.steering.end(), steer) != run_.steering.end())
    co_return run_;
  Save what;
  what.actor = ctx.actor;
  what.command_id = ctx.command_id;
  what.request_id = ctx.request_id;
  what.edit = [steer](model::Run& r) { r.steering.push_back(steer); };
  auto saved = co_await save(std::move(what));
  if (!saved.ok()) co_return saved;
  const Status told = co_await session->set_precision(run_.id, run_.attempt, steer);
  if (refused(told)) {
    auto forgotten = co_await forget_steer(steer);
    if (!forgotten.ok()) co_return forgotten;
    co_return told;
  }
  // Not refused and not answered: follow() asks again.
  if (told.ok()) confirmed_.push_back(steer);
  co_return run_;
}

// What the board was told and did not answer before its link or odtd broke.
asio::awaitable<Status> RunTask::settle_steering(Session session) {
  for (const auto& steer : steering_left()) {
    if (std::find(confirmed_.begin(), confirmed_.end(), steer) != confirmed_.end()) continue;
    const Status told = co_await session->set_precision(run_.id, run_.attempt, steer);
    if (told.ok()) {
      confirmed_.push_back(steer);
    } else if (refused(told)) {
      auto forgotten = co_await forget_steer(steer);  // it never heard of it
      if (!forgotten.ok()) co_return forgotten;
    } else {
      co_return told;
    }
  }
  co_return absl::OkStatus();
}

}  // namespace odt::training
