#include "campaign/checks.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <set>

#include "campaign/plan.h"
#include "model/device.h"
#include "training/reason.h"

namespace odt::campaign {
namespace {

using model::CampaignKind;

const model::Board* find_board(const training::FleetView& view, const BoardUid& uid) {
  for (const auto& b : view.boards)
    if (b.uid == uid) return &b;
  return nullptr;
}

asio::awaitable<Result<model::Run>> dry_run(Env& env, const model::Campaign& c,
                                            const model::CampaignUnit& unit) {
  const auto spec = run_spec(c, unit);
  const auto ctx = context_of(c);
  auto* fleet = &env.fleet;
  std::function<void(Done<model::Run>)> start = [fleet, spec, ctx](Done<model::Run> done) {
    fleet->create_run(ctx, spec, true, std::move(done));
  };
  auto run = co_await ask<model::Run>(env.io, std::move(start));
  co_return run;
}

asio::awaitable<Result<model::RunEstimate>> estimate(Env& env, const model::Campaign& c,
                                                     const model::CampaignUnit& unit) {
  // Of a campaign: settings by scope are not for it.
  auto spec = run_spec(c, unit);
  if (spec.campaign_id.is_zero()) spec.campaign_id = new_uuid();
  auto* fleet = &env.fleet;
  std::function<void(Done<model::RunEstimate>)> start = [fleet,
                                                         spec](Done<model::RunEstimate> done) {
    fleet->estimate_run(CallContext(), spec, std::move(done));
  };
  auto out = co_await ask<model::RunEstimate>(env.io, std::move(start));
  co_return out;
}

// Boards that differ in nothing that a check looks at.
std::string kind_of(const model::Board& b) {
  return absl::StrCat(b.board_type, "/", b.ram_bytes, "/", b.caps, "/", b.max_batch, "/",
                      b.max_layers, "/", b.rules_version);
}

asio::awaitable<Status> check_rollout(Env& env, const model::Campaign& c, const model::Board& board,
                                      BoardCheck& check) {
  if (c.spec.rollout.commit && (board.caps & model::kCapNvm) == 0)
    check.refusal = {"NO_NVM", "board " + board.name + " has no non-volatile memory",
                     "Leave --commit out, or the board."};
  if (board.max_layers != 0 || check.refusal.code.empty()) {
    const Hash hash = c.spec.model_hash;
    const auto read = [hash](store::ControlStore& s) { return s.model(hash); };
    const auto model = co_await env.control.call(read);
    if (!model.ok()) co_return model.status();
    if (check.refusal.code.empty() && board.max_layers != 0 &&
        model->trainable_layers > board.max_layers)
      check.refusal = {
          "OUT_OF_RANGE",
          absl::StrCat("model '", model->name, "' has ", model->trainable_layers,
                       " trainable layers; board ", board.name, " takes ", board.max_layers),
          "Leave the board out."};
  }
  co_return absl::OkStatus();
}

}  // namespace

asio::awaitable<Result<model::CampaignSpec>> read_spec(Env& env, const model::CampaignSpec& asked,
                                                       const std::vector<BoardUid>& boards,
                                                       const CallContext& ctx) {
  model::CampaignSpec spec = asked;
  if (spec.kind == CampaignKind::kRollout) {
    const Hash hash = spec.rollout.snapshot;
    const auto read = [hash](store::ControlStore& s) { return s.snapshot(hash); };
    const auto snapshot = co_await env.control.call(read);
    if (!snapshot.ok())
      co_return with_reason(absl::NotFoundError("snapshot " + hash.hex() + " is not here"),
                            "SNAPSHOT_NOT_FOUND", "List the snapshots: odtctl weights list.",
                            "spec.rollout.snapshot");
    spec.model_hash = snapshot->model_hash;
  }
  const bool choose = spec.kind == CampaignKind::kFederated && !spec.hyper.k &&
                      spec.hyper.layer_k.empty() && spec.start_snapshot.is_zero() &&
                      spec.hyper.apt == model::AptMode::kUnspecified &&
                      spec.hyper.rule_set != model::RuleSet::kDfp16;
  if (!choose) co_return spec;
  // Boards of one federation train on one grid: the finest that each of them has room for.
  for (const std::uint32_t k : {15u, 8u}) {
    spec.hyper.k = k;
    model::Campaign c;
    c.spec = spec;
    c.boards = boards;
    c.meta.created_by = ctx.actor;
    c.owner = ctx.owner;
    bool all = true;
    const auto units = next_round(c, 0, 0, Hash{});
    for (const auto& unit : units) {
      model::CampaignUnit u = unit;
      u.hyper.k = k;
      const auto run = co_await dry_run(env, c, u);
      all = all && run.ok();
      if (!all) break;
    }
    if (all) co_return spec;
  }
  spec.hyper.k.reset();  // the checks say why
  co_return spec;
}

asio::awaitable<Result<std::vector<model::Model>>> related_models(Env& env, Hash hash) {
  const auto read = [hash](store::ControlStore& s) -> Result<std::vector<model::Model>> {
    const auto model = s.model(hash);
    if (!model.ok())
      return with_reason(absl::NotFoundError("model " + hash.hex() + " is not known"),
                         "MODEL_NOT_FOUND", "List the models: odtctl model list.",
                         "spec.model_hash");
    std::vector<model::Model> out{*model};
    store::ListQuery query;
    query.page_size = 1000;
    ODT_ASSIGN(const auto page, s.models(query));
    for (const auto& m : page.items)
      if (m.hash != hash && !model->onnx_hash.is_zero() && m.onnx_hash == model->onnx_hash &&
          m.arithmetic == model->arithmetic)
        out.push_back(m);
    return out;
  };
  auto models = co_await env.control.call(read);
  co_return models;
}

asio::awaitable<Result<std::vector<BoardCheck>>> check_boards(
    Env& env, const model::Campaign& c, const std::vector<model::CampaignUnit>& units) {
  const auto view = env.fleet.view();
  const bool sweep = c.spec.kind == CampaignKind::kSweep;
  const auto share =
      static_cast<std::uint32_t>((units.size() + c.boards.size() - 1) / c.boards.size());
  std::vector<BoardCheck> out;
  std::set<std::string> kinds, seen;
  for (const auto& uid : c.boards) {
    if (!seen.insert(uid.str()).second) continue;  // a twin on one board
    BoardCheck check;
    check.board = uid;
    const model::Board* board = find_board(*view, uid);
    if (board == nullptr) continue;
    check.online =
        board->status == model::BoardStatus::kOnline || board->status == model::BoardStatus::kBusy;
    std::uint32_t timed = 0;  // units that it is known of how long they take
    const bool all_trials = kinds.insert(kind_of(*board)).second;
    for (const auto& unit : units) {
      if (!sweep && unit.board != uid) continue;
      ++check.units;
      if (!check.refusal.code.empty() || (sweep && check.units > 1 && !all_trials)) continue;
      if (c.spec.kind == CampaignKind::kRollout) {
        const auto done = co_await check_rollout(env, c, *board, check);
        if (!done.ok()) co_return done;
        continue;
      }
      model::CampaignUnit u = unit;
      u.board = uid;
      const auto run = co_await dry_run(env, c, u);
      if (!run.ok()) {
        check.refusal = training::reason_from(run.status());
        if (sweep) check.refusal.text = absl::StrCat("trial ", u.trial, ": ", check.refusal.text);
        continue;
      }
      if (run->effective.batch) check.effective = run->effective;
      const auto time = co_await estimate(env, c, u);
      if (!time.ok()) continue;  // it can run; how long is not known
      if (!check.estimate) check.estimate = *time;
      if (time->basis == model::RunEstimate::Basis::kUnspecified) continue;
      check.estimate_us += static_cast<std::uint64_t>(time->total_us);
      ++timed;
    }
    if (check.estimate) check.steps = check.estimate->steps;
    if (sweep) {
      if (timed != 0) check.estimate_us = check.estimate_us / timed * share;
      check.units = share;
    }
    out.push_back(std::move(check));
  }
  co_return out;
}

}  // namespace odt::campaign
