#include "training/keepsake.h"

#include <absl/strings/str_cat.h>

#include "training/board_ops.h"

namespace odt::training {
namespace {

std::string initial_key(const Hash& weights) { return "weights.initial." + weights.hex(); }

// A snapshot, also one in the trash, or a model's own weights.
bool is_kept(store::ControlStore& store, const Hash& weights) {
  return store.snapshot(weights).ok() || store.setting(initial_key(weights)).ok() ||
         store.trash_item("snapshot", weights.str()).ok();
}

}  // namespace

asio::awaitable<Result<Hash>> keep_unsaved(Env& env, Session session, model::DeviceState state,
                                           std::string why) {
  const Hash held = state.weights_hash;
  if (!state.has_weights || held.is_zero()) co_return Hash{};
  auto kept = co_await env.control.call(
      [held](store::ControlStore& s) { return Result<bool>(is_kept(s, held)); });
  if (!kept.ok()) co_return kept.status();
  if (*kept) co_return Hash{};
  auto pulled = co_await pull_current_weights(session);
  if (!pulled.ok()) co_return pulled.status();
  auto header = read_weights_header(*pulled->content);
  if (!header.ok()) co_return header.status();
  auto written = co_await env.write_blob(pulled->content);
  if (!written.ok()) co_return written.status();
  model::Snapshot snapshot;
  snapshot.hash = pulled->hash;
  snapshot.model_hash = header->model_hash;
  snapshot.board_uid = session->hello().uid;
  snapshot.run_id = state.run_id;
  snapshot.attempt = state.attempt;
  snapshot.step = pulled->step;
  snapshot.bytes = pulled->content->size();
  snapshot.origin = "automatic: before " + why;
  snapshot.meta = env.new_meta("odtd");
  const Uuid run_id = state.run_id;
  if (!run_id.is_zero()) {
    auto run =
        co_await env.control.call([run_id](store::ControlStore& s) { return s.run(run_id); });
    if (run.ok()) snapshot.parent = run->spec.start_snapshot;
  }
  const Hash hash = snapshot.hash;
  store::Batch batch;
  batch.changes.push_back(store::PutSnapshot{std::move(snapshot)});
  auto done = co_await env.control.commit(std::move(batch));
  if (!done.ok()) co_return done.status();
  env.say(2, absl::StrCat("board ", session->hello().uid.hex(), ": weights ",
                          hash.hex().substr(0, 12), " were nowhere else; kept before ", why));
  co_return hash;
}

asio::awaitable<void> note_initial_weights(Env& env, Session session, Hash model) {
  if (!env.initial_noted.insert(model).second) co_return;
  auto state = co_await session->get_state(true);
  if (!state.ok() || state->weights_hash.is_zero()) {
    env.initial_noted.erase(model);
    co_return;
  }
  store::Batch batch;
  batch.changes.push_back(store::PutSetting{initial_key(state->weights_hash), "1"});
  auto done = co_await env.control.commit(std::move(batch));
  if (!done.ok()) env.initial_noted.erase(model);
}

}  // namespace odt::training
