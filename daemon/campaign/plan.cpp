#include "campaign/plan.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <set>

#include "base/label_query.h"
#include "model/setting_rules.h"

namespace odt::campaign {
namespace {

using model::Campaign;
using model::CampaignKind;
using model::CampaignSpec;
using model::CampaignUnit;

constexpr std::size_t kMaxBoards = 1024;
constexpr std::uint32_t kDefaultEpochs = 10;

Status field_error(const char* field, const std::string& text, const char* remedy = "") {
  return with_reason(absl::InvalidArgumentError(std::string(field) + ": " + text), "BAD_FIELD",
                     remedy, field);
}

Uuid dataset_of(const CampaignSpec& spec, const BoardUid& board) {
  for (const auto& d : spec.datasets)
    if (d.board == board) return d.dataset;
  return spec.dataset_id;
}

CampaignUnit unit_of(const Campaign& c, std::uint32_t index, const BoardUid& board) {
  CampaignUnit u;
  u.campaign_id = c.id;
  u.index = index;
  u.trial = index;
  u.board = board;
  u.model_hash = c.spec.model_hash;
  u.dataset_id = board.empty() ? c.spec.dataset_id : dataset_of(c.spec, board);
  u.hyper = c.spec.hyper;
  u.start_snapshot = c.spec.start_snapshot;
  return u;
}

Status complete_federated(CampaignSpec& spec) {
  auto& f = spec.federated;
  if (f.rounds == 0) return field_error("spec.federated.rounds", "0; at least one round");
  if (f.outlier_q8 == 0) f.outlier_q8 = 768;
  if (!spec.hyper.order_seed) spec.hyper.order_seed = 1;
  if (spec.resume_deadline_s == 0) spec.resume_deadline_s = 60;
  if (spec.hyper.blocked.value_or(false))
    return field_error("spec.hyper.blocked",
                       "weights with an exponent for each output cannot be averaged");
  return absl::OkStatus();
}

Status complete_rollout(CampaignSpec& spec) {
  auto& r = spec.rollout;
  if (r.snapshot.is_zero()) return field_error("spec.rollout.snapshot", "absent");
  if (r.canary_ppm == 0) r.canary_ppm = 100'000;
  if (r.phases_ppm.empty()) r.phases_ppm = {1'000'000};
  if (!r.max_drop_ppm) r.max_drop_ppm = 20'000;
  if (r.split.empty()) r.split = "heldout";
  if (spec.resume_deadline_s == 0) spec.resume_deadline_s = 60;
  return absl::OkStatus();
}

Status complete_twin(CampaignSpec& spec) {
  if (!spec.query.empty() || spec.boards.empty() || spec.boards.size() > 2)
    return field_error("spec.boards", "a twin is of one or two boards by name, without a query");
  if (spec.boards.size() == 1) spec.boards.push_back(spec.boards.front());
  // Same order of samples, each step recorded.
  for (auto* h : {&spec.hyper, spec.hyper_b ? &*spec.hyper_b : nullptr}) {
    if (h == nullptr) continue;
    if (!h->order_seed) h->order_seed = spec.hyper.order_seed.value_or(1);
    if (!h->sr_seed) h->sr_seed = spec.hyper.sr_seed.value_or(1);
    if (!h->telemetry_every) h->telemetry_every = 1;
  }
  return absl::OkStatus();
}

// Sets what a trial's model is where it says how many layers are trained.
Status choose_model(const Trial& trial, const std::vector<model::Model>& models,
                    CampaignUnit& unit) {
  if (!trial.trainable_layers) return absl::OkStatus();
  for (const auto& m : models)
    if (m.trainable_layers == *trial.trainable_layers) {
      unit.model_hash = m.hash;
      return absl::OkStatus();
    }
  return with_reason(
      absl::FailedPreconditionError(absl::StrCat("sweep: no model from the same ONNX file has ",
                                                 *trial.trainable_layers, " trainable layers")),
      "NO_MODEL",
      absl::StrCat("Add it first: odtctl model add FILE.onnx --trainable ", *trial.trainable_layers,
                   "."));
}

Result<std::vector<CampaignUnit>> sweep_units(const Campaign& c,
                                              const std::vector<model::Model>& models) {
  ODT_ASSIGN(const auto trials, trials_of(c.spec.sweep, c.spec.hyper));
  std::vector<CampaignUnit> out;
  for (const Trial& trial : trials) {
    CampaignUnit u = unit_of(c, static_cast<std::uint32_t>(out.size()), {});
    u.hyper = trial.hyper;
    ODT_TRY(choose_model(trial, models, u));
    if (c.spec.sweep.strategy == model::SweepStrategy::kHalving)
      u.hyper.epochs = rung_epochs(c.spec.sweep, u.hyper.epochs.value_or(kDefaultEpochs)).front();
    out.push_back(std::move(u));
  }
  return out;
}

}  // namespace

Result<CampaignSpec> complete(CampaignSpec spec) {
  if (spec.model_hash.is_zero() && spec.kind != CampaignKind::kRollout)
    return field_error("spec.model_hash", "absent");
  if (spec.dataset_id.is_zero() && spec.datasets.empty())
    return field_error("spec.dataset_id", "absent, and no board has one of its own");
  if (spec.kind != CampaignKind::kTwin && spec.hyper_b)
    return field_error("spec.hyper_b", "only a twin has settings of B");
  switch (spec.kind) {
    case CampaignKind::kSweep:
      if (!spec.datasets.empty())
        return field_error("spec.datasets", "trials of a sweep run on any board: one dataset");
      if (spec.sweep.strategy == model::SweepStrategy::kHalving)
        for (const auto& axis : spec.sweep.axes)
          if (axis.name == "epochs")
            return field_error("spec.sweep.axes", "halving sets the epochs itself: no axis epochs");
      if (spec.resume_deadline_s == 0) spec.resume_deadline_s = 300;
      break;
    case CampaignKind::kTwin:
      ODT_TRY(complete_twin(spec));
      break;
    case CampaignKind::kRollout:
      ODT_TRY(complete_rollout(spec));
      break;
    case CampaignKind::kFederated:
      ODT_TRY(complete_federated(spec));
      break;
    default:
      break;
  }
  return spec;
}

Result<std::vector<BoardUid>> resolve_cohort(const CampaignSpec& spec,
                                             std::vector<model::Board> boards) {
  ODT_ASSIGN(const LabelQuery query, LabelQuery::parse(spec.query));
  std::sort(boards.begin(), boards.end(), [](const auto& a, const auto& b) {
    return std::tie(a.name, a.uid) < std::tie(b.name, b.uid);
  });
  for (const auto& uid : spec.boards)
    if (std::none_of(boards.begin(), boards.end(), [&](const auto& b) { return b.uid == uid; }))
      return with_reason(absl::NotFoundError("board " + uid.hex() + " is not known"),
                         "BOARD_NOT_FOUND", "List the boards: odtctl board list.");
  if (spec.kind == CampaignKind::kTwin) return spec.boards;
  std::vector<BoardUid> out;
  for (const auto& b : boards) {
    const bool named =
        std::find(spec.boards.begin(), spec.boards.end(), b.uid) != spec.boards.end();
    if (named || (!query.empty() && query.matches(b.labels, model::query_fields(b))))
      out.push_back(b.uid);
  }
  if (out.empty())
    return with_reason(
        absl::FailedPreconditionError(spec.query.empty() ? "no board is named"
                                                         : "no board matches '" + spec.query + "'"),
        "NO_BOARDS", "Look at the labels: odtctl board list.", "spec.query");
  if (out.size() > kMaxBoards)
    return with_reason(absl::FailedPreconditionError(absl::StrCat(
                           out.size(), " boards match; a campaign takes at most ", kMaxBoards)),
                       "TOO_MANY_BOARDS", "Narrow the query.", "spec.query");
  return out;
}

std::uint32_t rounds_of(const CampaignSpec& spec, std::size_t boards) {
  switch (spec.kind) {
    case CampaignKind::kSweep:
      return static_cast<std::uint32_t>(
          rung_epochs(spec.sweep, spec.hyper.epochs.value_or(kDefaultEpochs)).size());
    case CampaignKind::kRollout:
      return static_cast<std::uint32_t>(phase_sizes(spec.rollout, boards).size());
    case CampaignKind::kFederated:
      return spec.federated.rounds + (spec.federated.personalise_epochs != 0 ? 1 : 0);
    default:
      return 1;
  }
}

Result<std::vector<CampaignUnit>> first_units(const Campaign& c,
                                              const std::vector<model::Model>& models) {
  std::vector<CampaignUnit> out;
  for (const auto& board : c.boards) {
    if (c.spec.kind == CampaignKind::kSweep) break;
    CampaignUnit u = unit_of(c, static_cast<std::uint32_t>(out.size()), board);
    if (u.dataset_id.is_zero())
      return with_reason(absl::FailedPreconditionError("board " + board.hex() + " has no dataset"),
                         "NO_DATASET", "Name one for each board, or one for all.", "spec.datasets");
    if (c.spec.kind == CampaignKind::kTwin && out.size() == 1 && c.spec.hyper_b)
      u.hyper = *c.spec.hyper_b;
    if (c.spec.kind == CampaignKind::kRollout) {
      const auto sizes = phase_sizes(c.spec.rollout, c.boards.size());
      while (u.round + 1 < sizes.size() && u.index >= sizes[u.round]) ++u.round;
      u.start_snapshot = c.spec.rollout.snapshot;
    }
    out.push_back(std::move(u));
  }
  if (c.spec.kind == CampaignKind::kSweep) return sweep_units(c, models);
  return out;
}

std::vector<CampaignUnit> next_rung(const Campaign& c, const std::vector<CampaignUnit>& units) {
  std::vector<CampaignUnit> out;
  const auto epochs = rung_epochs(c.spec.sweep, c.spec.hyper.epochs.value_or(kDefaultEpochs));
  const auto stay = survivors(units, c.round, eta_of(c.spec.sweep));
  // One trial that is left needs no rungs in between.
  const std::uint32_t rung =
      stay.size() == 1 ? static_cast<std::uint32_t>(epochs.size()) - 1 : c.round + 1;
  if (stay.empty() || rung >= epochs.size() || rung <= c.round) return out;
  for (const std::size_t i : stay) {
    CampaignUnit u = unit_of(c, static_cast<std::uint32_t>(units.size() + out.size()), {});
    u.round = rung;
    u.trial = units[i].trial;
    u.model_hash = units[i].model_hash;
    u.hyper = units[i].hyper;
    u.hyper.epochs = epochs[rung];
    out.push_back(std::move(u));
  }
  return out;
}

std::vector<CampaignUnit> next_round(const Campaign& c, std::uint32_t round,
                                     std::uint32_t first_index, const Hash& start) {
  std::vector<CampaignUnit> out;
  for (const auto& board : c.boards) {
    CampaignUnit u = unit_of(c, first_index + static_cast<std::uint32_t>(out.size()), board);
    u.round = round;
    u.trial = static_cast<std::uint32_t>(out.size());
    u.start_snapshot = start;
    u.hyper.k.reset();  // those of the snapshot
    u.hyper.layer_k.clear();
    // Another order in each round.
    u.hyper.order_seed = c.spec.hyper.order_seed.value_or(1) + round;
    u.personal = round >= c.spec.federated.rounds;
    if (u.personal) u.hyper.epochs = c.spec.federated.personalise_epochs;
    out.push_back(std::move(u));
  }
  return out;
}

std::vector<std::uint32_t> phase_sizes(const model::RolloutSpec& r, std::size_t boards) {
  const auto share = [boards](std::uint32_t ppm) {
    return static_cast<std::uint32_t>((std::uint64_t{boards} * ppm + 999'999) / 1'000'000);
  };
  std::vector<std::uint32_t> out{std::max(1u, share(r.canary_ppm))};
  for (const auto ppm : r.phases_ppm)
    if (share(ppm) > out.back()) out.push_back(share(ppm));
  return out;
}

bool dropped_too_far(const model::RolloutSpec& r, const model::Accuracy& before,
                     const model::Accuracy& after) {
  if (before.total == 0 || after.total == 0) return false;
  // before - after > max_drop, in whole numbers.
  const auto b = std::int64_t{before.correct} * after.total,
             a = std::int64_t{after.correct} * before.total;
  const auto all = static_cast<__int128>(before.total) * after.total;
  return static_cast<__int128>(b - a) * 1'000'000 > all * r.max_drop_ppm.value_or(20'000);
}

std::uint32_t least_boards(const Campaign& c) {
  const auto n = static_cast<std::uint32_t>(c.boards.size());
  const std::uint32_t wanted =
      c.spec.federated.min_boards != 0 ? c.spec.federated.min_boards : std::max(2u, (n + 1) / 2);
  return std::min(wanted, n);
}

void count_units(const std::vector<CampaignUnit>& units, Campaign& c) {
  c.units_total = static_cast<std::uint32_t>(units.size());
  c.units_running = c.units_done = c.units_failed = 0;
  c.board_us = 0;
  for (const auto& u : units) {
    c.units_running += u.state == model::UnitState::kRunning ? 1 : 0;
    c.units_done += model::is_final(u.state) ? 1 : 0;
    c.units_failed +=
        u.state == model::UnitState::kFailed || u.state == model::UnitState::kLate ? 1 : 0;
    if (u.end_time_us > u.start_time_us && u.start_time_us != 0)
      c.board_us += static_cast<std::uint64_t>(u.end_time_us - u.start_time_us);
  }
}

}  // namespace odt::campaign
