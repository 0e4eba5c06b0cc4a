#include <absl/strings/str_cat.h>

#include <algorithm>

#include "training/keepsake.h"
#include "training/orchestrator_impl.h"

// Weights of boards: read, put back, on one board or on many.
namespace odt::training {
namespace {

constexpr auto kPruneEvery = std::chrono::hours(1);
constexpr std::size_t kAtOnce = 16;  // boards that a cohort's restore works on

}  // namespace

asio::awaitable<Result<model::Snapshot>> Orchestrator::Impl::pull_weights(CallContext ctx,
                                                                          BoardUid uid,
                                                                          std::string alias) {
  const auto self = shared_from_this();
  auto before = co_await seen(ctx);
  if (!before.ok()) co_return before.status();
  if (!before->empty()) {
    auto key = Hash::from_bytes(*before);
    if (!key.ok()) co_return key.status();
    const Hash hash = *key;
    auto known =
        co_await env_->control.call([hash](store::ControlStore& s) { return s.snapshot(hash); });
    co_return known;
  }
  if (alias.size() > 64) co_return absl::InvalidArgumentError("alias: at most 64 characters");
  auto session = require_session(uid);
  if (!session.ok()) co_return session.status();
  auto pulled = co_await pull_current_weights(*session);
  if (!pulled.ok()) co_return pulled.status();
  auto header = read_weights_header(*pulled->content);
  if (!header.ok()) co_return header.status();
  auto written = co_await env_->write_blob(pulled->content);
  if (!written.ok()) co_return written.status();
  const Hash hash = pulled->hash;
  auto known =
      co_await env_->control.call([hash](store::ControlStore& s) { return s.snapshot(hash); });
  if (!known.ok() && !absl::IsNotFound(known.status())) co_return known.status();
  model::Snapshot snapshot;
  if (known.ok()) {
    snapshot = *known;
    snapshot.meta.etag = 0;
  } else {
    snapshot.hash = hash;
    snapshot.model_hash = header->model_hash;
    snapshot.board_uid = uid;
    snapshot.run_id = pulled->run_id;
    snapshot.attempt = pulled->attempt;
    snapshot.step = pulled->step;
    snapshot.bytes = pulled->content->size();
    snapshot.origin = "pull";
    snapshot.meta = env_->new_meta(ctx.actor);
    const Uuid run_id = pulled->run_id;
    auto run =
        co_await env_->control.call([run_id](store::ControlStore& s) { return s.run(run_id); });
    if (run.ok()) snapshot.parent = run->spec.start_snapshot;
  }
  if (!alias.empty() &&
      std::find(snapshot.aliases.begin(), snapshot.aliases.end(), alias) == snapshot.aliases.end())
    snapshot.aliases.push_back(alias);
  store::Batch batch;
  batch.actor = ctx.actor;
  batch.command_id = ctx.command_id;
  batch.request_id = ctx.request_id;
  batch.response = hash.str();
  batch.changes.push_back(store::PutSnapshot{snapshot});
  auto events = co_await env_->control.commit(std::move(batch));
  if (!events.ok()) co_return events.status();
  for (const auto& event : *events)
    if (const auto* body = std::get_if<model::Snapshot>(&event.body); body && body->hash == hash)
      snapshot = *body;
  co_return snapshot;
}

asio::awaitable<Status> Orchestrator::Impl::put_weights(Session session, Hash snapshot,
                                                        Hash model_hash) {
  auto state = co_await session->get_state(true);
  if (!state.ok()) co_return state.status();
  if (state->weights_hash == snapshot && state->model_hash == model_hash)
    co_return absl::OkStatus();  // it is there already
  auto done = co_await put_image_and_weights(session, model_hash, snapshot);
  if (!absl::IsResourceExhausted(done) || (session->hello().caps & kCapFrozen) == 0) co_return done;
  auto model = co_await env_->control.call(
      [model_hash](store::ControlStore& s) { return s.model(model_hash); });
  if (!model.ok() || model->tail.image.is_zero()) co_return done;
  env_->say(3, text_of(done) + "; next, the trainable part of the model alone");
  done = co_await put_image_and_weights(session, model->tail.image, snapshot);
  co_return done;
}

asio::awaitable<Status> Orchestrator::Impl::put_image_and_weights(Session session, Hash image,
                                                                  Hash snapshot) {
  auto content = co_await env_->read_blob(snapshot);
  if (!content.ok()) co_return content.status();
  auto state = co_await session->get_state(false);
  if (!state.ok()) co_return state.status();
  auto done = co_await load_image(*env_, session, *state, image);
  if (!done.ok()) co_return done;
  CommandLog command(*env_, session->hello().uid, Uuid{});
  done = co_await command.begin("restore", snapshot);
  if (!done.ok()) co_return done;
  done = co_await session->send(model::Resource::kWeights, 0, *content);
  co_await command.settle(done);
  if (!done.ok()) co_return done;
  state = co_await session->get_state(true);
  if (!state.ok()) co_return state.status();
  env_->registry->note_state(session->hello().uid, *state);
  if (!state->weights_hash.is_zero() && state->weights_hash != snapshot)
    co_return absl::DataLossError("the board holds weights " + state->weights_hash.hex() +
                                  " after restoring " + snapshot.hex());
  co_return absl::OkStatus();
}

asio::awaitable<FleetControl::Restored> Orchestrator::Impl::restore_one(CallContext ctx,
                                                                        BoardUid uid,
                                                                        RestorePlan plan) {
  FleetControl::Restored out;
  out.uid = uid;
  auto session = require_session(uid);
  out.status = session.status();
  if (out.status.ok()) out.status = free_for(ctx, uid);
  if (out.status.ok()) out.status = require_free(uid);
  if (out.status.ok() && plan.commit && ((*session)->hello().caps & model::kCapNvm) == 0)
    out.status = with_reason(
        absl::FailedPreconditionError("board " + uid.hex() + " has no non-volatile memory"),
        "NO_NVM", "Restore without commit: the weights last until it loses power.");
  if (!out.status.ok()) co_return out;
  auto guard = co_await slot(uid).exclusive.lock(Uuid{}, "restore", ctx.actor);
  auto state = co_await (*session)->get_state(true);
  out.status = state.status();
  if (!state.ok()) co_return out;
  out.held = state->weights_hash == plan.snapshot && state->model_hash == plan.model_hash;
  if (plan.dry_run) co_return out;
  if (!out.held) {
    auto saved = co_await keep_unsaved(*env_, *session, *state, "a restore");
    out.status = saved.status();
    if (!saved.ok()) co_return out;
    out.saved = *saved;
    out.begun = true;
    out.status = co_await put_weights(*session, plan.snapshot, plan.model_hash);
    if (!out.status.ok()) co_return out;
  }
  if (!plan.commit) co_return out;
  out.begun = true;
  CommandLog command(*env_, uid, Uuid{});
  out.status = co_await command.begin("nvm_commit", Hash{});
  if (!out.status.ok()) co_return out;
  auto nvm = co_await (*session)->nvm_commit(out.held ? Hash{} : plan.snapshot);
  co_await command.settle(nvm.status());
  out.status = nvm.status();
  if (!nvm.ok()) co_return out;
  env_->registry->note_commit(uid, nvm->sequence, nvm->step);
  out.nvm = *nvm;
  co_return out;
}

asio::awaitable<Result<model::Board>> Orchestrator::Impl::restore_weights(CallContext ctx,
                                                                          BoardUid uid,
                                                                          Hash snapshot) {
  const auto self = shared_from_this();
  auto before = co_await seen(ctx);
  if (!before.ok()) co_return before.status();
  auto session = require_session(uid);
  if (!session.ok()) co_return session.status();
  if (before->empty()) {
    auto row = co_await env_->control.call(
        [snapshot](store::ControlStore& s) { return s.snapshot(snapshot); });
    if (!row.ok()) co_return row.status();
    RestorePlan plan;
    plan.snapshot = snapshot;
    plan.model_hash = row->model_hash;
    auto done = co_await restore_one(ctx, uid, plan);
    if (!done.status.ok()) co_return done.status;
    std::vector<BoardUid> boards(1, uid);
    auto noted = co_await note_restored(ctx, std::move(boards), snapshot);
    if (!noted.ok()) co_return noted;
  }
  for (auto& board : env_->registry->boards())
    if (board.uid == uid) co_return board;
  co_return absl::NotFoundError("board " + uid.hex() + " was deleted meanwhile");
}

// Also what the boards are meant to hold from now on.
asio::awaitable<Status> Orchestrator::Impl::note_restored(CallContext ctx,
                                                          std::vector<BoardUid> boards,
                                                          Hash snapshot) {
  std::erase_if(boards, [this](const auto& uid) { return env_->registry->find(uid) == nullptr; });
  if (boards.empty()) co_return absl::OkStatus();
  fleet::Registry::Edit edit =
      [snapshot](const std::vector<model::Board*>& all) -> Result<std::vector<store::Change>> {
    for (auto* board : all) board->target_snapshot = snapshot;
    return std::vector<store::Change>{};
  };
  auto done = co_await env_->registry->change(ctx, std::move(boards), std::move(edit));
  co_return done.status();
}

asio::awaitable<void> Orchestrator::Impl::prune_loop(RetentionRules rules) {
  const auto self = shared_from_this();
  while (!env_->stopping) {
    co_await lease_watch_.wait_for(kPruneEvery);
    if (env_->stopping) co_return;
    CallContext ctx;
    ctx.actor = "odtd";
    ctx.command_id = new_uuid();
    const std::int64_t now = env_->clock.now_us();
    const auto prune = [rules, ctx, now](store::ControlStore& s) {
      return prune_snapshots(s, rules, ctx, now, false);
    };
    auto done = co_await env_->control.call(prune);
    if (!done.ok()) env_->say(4, "retention: " + done.status().ToString());
    if (done.ok() && !done->snapshots.empty())
      env_->say(2, absl::StrCat("retention: ", done->snapshots.size(),
                                " snapshots are in the trash, ", done->bytes, " bytes"));
  }
}

asio::awaitable<Result<std::vector<FleetControl::Restored>>> Orchestrator::Impl::restore_boards(
    CallContext ctx, FleetControl::RestoreAsk ask) {
  const auto self = shared_from_this();
  const Hash snapshot = ask.snapshot;
  auto row = co_await env_->control.call(
      [snapshot](store::ControlStore& s) { return s.snapshot(snapshot); });
  if (!row.ok()) co_return row.status();
  RestorePlan plan;
  plan.snapshot = snapshot;
  plan.model_hash = row->model_hash;
  plan.commit = ask.commit;
  plan.dry_run = ask.dry_run;
  struct Work {
    explicit Work(asio::io_context& io) : ended(io) {}
    fleet::Signal ended;
    std::size_t next = 0, open = 0;
    std::vector<FleetControl::Restored> out;
  };
  const auto work = std::make_shared<Work>(env_->io);
  work->out.resize(ask.boards.size());
  const auto boards = std::make_shared<const std::vector<BoardUid>>(std::move(ask.boards));
  const auto worker = [](std::shared_ptr<Impl> impl, std::shared_ptr<Work> shared,
                         std::shared_ptr<const std::vector<BoardUid>> uids, CallContext call,
                         RestorePlan what) -> asio::awaitable<void> {
    while (shared->next < uids->size()) {
      const std::size_t mine = shared->next++;
      auto one = co_await impl->restore_one(call, (*uids)[mine], what);
      shared->out[mine] = std::move(one);
    }
    --shared->open;
    shared->ended.notify();
  };
  work->open = std::min(kAtOnce, boards->size());
  for (std::size_t i = 0, n = work->open; i < n; ++i)
    asio::co_spawn(env_->io, worker(self, work, boards, ctx, plan), fleet::Detached{});
  while (work->open != 0) co_await work->ended.wait();
  std::vector<BoardUid> changed;
  for (const auto& one : work->out)
    if (one.status.ok() && !plan.dry_run) changed.push_back(one.uid);
  ctx.request_id.clear();  // remembered with the whole answer, by the API
  auto noted = co_await note_restored(ctx, std::move(changed), snapshot);
  if (!noted.ok()) co_return noted;
  co_return std::move(work->out);
}

}  // namespace odt::training
