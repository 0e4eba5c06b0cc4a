#include <absl/strings/str_cat.h>

#include "training/keepsake.h"
#include "training/orchestrator_impl.h"

// Non-volatile memory of a board, on request.
namespace odt::training {
namespace {

// Commits what the board holds now: one that restarts between two tries of the request, and comes
// back with something else, does not commit that. A run under way moves on, so nothing is expected.
asio::awaitable<Result<model::NvmInfo>> commit_held(Session session, bool moves_on) {
  Hash held;
  if (!moves_on) {
    auto state = co_await session->get_state(false);
    // A board with an image alone makes weights of it to tell their hash.
    if (state.ok() && state->has_weights) state = co_await session->get_state(true);
    if (!state.ok()) co_return state.status();
    held = state->state_hash.is_zero() ? state->weights_hash : state->state_hash;
  }
  auto info = co_await session->nvm_commit(held);
  const bool other = absl::IsFailedPrecondition(info.status()) && !held.is_zero();
  if (!other && (!info.ok() || held.is_zero() || info->hash == held)) co_return info;
  if (other) {
    auto now = co_await session->get_state(true);
    if (!now.ok() || now->state_hash == held || now->weights_hash == held) co_return info;
  }
  co_return with_reason(absl::AbortedError("the board holds another content than it did"),
                        "CONTENT_CHANGED", "It has restarted, or was changed: look, then repeat.");
}

}  // namespace

// What is committed may be nowhere else: it is in the board's memory, or lost with the erase.
asio::awaitable<Status> Orchestrator::Impl::keep_before_erase(Session session) {
  auto state = co_await session->get_state(true);
  if (!state.ok()) co_return state.status();
  auto kept = co_await keep_unsaved(*env_, session, *state, "an erase");
  if (!kept.ok()) co_return kept.status();
  auto nvm = co_await session->nvm_status(false);
  if (!nvm.ok()) co_return nvm.status();
  const bool trained = nvm->kind == model::NvmKind::kWeights || nvm->kind == model::NvmKind::kState;
  const Hash hash = nvm->hash;
  if (!trained || hash == state->state_hash || hash == state->weights_hash)
    co_return absl::OkStatus();
  const Uuid run_id = nvm->run_id;
  auto known = co_await env_->control.call([hash, run_id](store::ControlStore& s) {
    auto run = s.run(run_id);
    return Result<bool>(s.snapshot(hash).ok() || (run.ok() && model::is_final(run->state)));
  });
  if (known.ok() && *known) co_return absl::OkStatus();
  model::Warning warning;
  warning.reason = {"NVM_CONTENT_LOST",
                    absl::StrCat("what was committed at step ", nvm->step,
                                 " is not in the board's memory and not known here; it is erased"),
                    "Keep such weights before: odtctl board reset, then odtctl weights pull."};
  warning.board_uid = session->hello().uid;
  store::Batch batch;
  batch.changes.push_back(store::AppendWarning{std::move(warning)});
  auto done = co_await env_->control.commit(std::move(batch));
  co_return done.status();
}

asio::awaitable<Result<model::NvmInfo>> Orchestrator::Impl::board_nvm(
    CallContext ctx, BoardUid uid, FleetControl::NvmAction action) {
  const auto self = shared_from_this();
  using Action = FleetControl::NvmAction;
  auto before = co_await seen(ctx);
  if (!before.ok()) co_return before.status();
  auto found = require_session(uid);
  if (!found.ok()) co_return found.status();
  const Session session = *found;
  if ((session->hello().caps & model::kCapNvm) == 0)
    co_return with_reason(
        absl::FailedPreconditionError("board " + uid.hex() + " has no non-volatile memory"),
        "NO_NVM", "Weights stay with odtd: 'odtctl weights pull'.");
  if (action == Action::kStatus || !before->empty()) {
    auto status = co_await session->nvm_status(false);
    co_return status;
  }
  if (action == Action::kErase && !slot(uid).active) {
    auto kept = co_await keep_before_erase(session);
    if (!kept.ok()) co_return kept;
  }
  CommandLog command(*env_, uid, Uuid{});
  const bool commit = action == Action::kCommit;
  auto begun = co_await command.begin(commit ? "nvm_commit" : "nvm_erase", Hash{});
  if (!begun.ok()) co_return begun;
  Result<model::NvmInfo> info = absl::InternalError("not asked");
  if (commit) {
    info = co_await commit_held(session, !slot(uid).queue.empty());
  } else {
    info = co_await session->nvm_erase();
  }
  co_await command.settle(info.status());
  if (!info.ok()) co_return info;
  env_->registry->note_commit(uid, info->sequence, info->step);
  std::vector<BoardUid> boards(1, uid);
  fleet::Registry::Edit nothing = [](const auto&) -> Result<std::vector<store::Change>> {
    return std::vector<store::Change>{};
  };
  auto stored = co_await env_->registry->change(ctx, std::move(boards), std::move(nothing));
  if (!stored.ok()) co_return stored.status();
  co_return info;
}

}  // namespace odt::training
