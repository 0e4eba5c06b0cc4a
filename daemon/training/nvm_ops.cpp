#include <absl/strings/str_cat.h>

#include "training/orchestrator_impl.h"

// Non-volatile memory of a board, on request.
namespace odt::training {

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
  CommandLog command(*env_, uid, Uuid{});
  const bool commit = action == Action::kCommit;
  auto begun = co_await command.begin(commit ? "nvm_commit" : "nvm_erase", Hash{});
  if (!begun.ok()) co_return begun;
  Result<model::NvmInfo> info = absl::InternalError("not asked");
  if (commit) {
    info = co_await session->nvm_commit(Hash{});
  } else {
    info = co_await session->nvm_erase();
  }
  co_await command.settle(info.status());
  if (!info.ok()) co_return info;
  env_->registry->note_commit(uid, info->sequence, info->step);
  store::Batch batch;
  batch.actor = ctx.actor;
  batch.command_id = ctx.command_id;
  batch.request_id = ctx.request_id;
  batch.response = uid.str();
  model::Board value = *env_->registry->find(uid);
  value.meta.etag = 0;
  batch.changes.push_back(store::PutBoard{std::move(value)});
  auto events = co_await env_->control.commit(std::move(batch));
  if (!events.ok()) co_return events.status();
  co_return info;
}

}  // namespace odt::training
