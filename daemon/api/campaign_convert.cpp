#include "api/convert_parts.h"
#include "api/parse_parts.h"

// Campaigns as messages, and their specs back.
namespace odt::api {
namespace {

constexpr int kMaxAxes = 8, kMaxValues = 64, kMaxBoards = 1024;

void set_sweep(const model::SweepSpec& in, v1::SweepSpec* out) {
  out->set_strategy(static_cast<v1::SweepStrategy>(in.strategy));
  for (const auto& axis : in.axes) {
    auto* item = out->add_axes();
    item->set_name(clean_text(axis.name));
    for (const auto& value : axis.values) item->add_values(clean_text(value));
  }
  out->set_trials(in.trials);
  out->set_seed(in.seed);
  out->set_eta(in.eta);
  out->set_min_epochs(in.min_epochs);
  out->set_budget_board_s(in.budget_board_s);
}

void set_rollout(const model::RolloutSpec& in, v1::RolloutSpec* out) {
  out->set_snapshot(id_bytes(in.snapshot));
  out->set_canary_ppm(in.canary_ppm);
  copy_all(in.phases_ppm, out->mutable_phases_ppm());
  if (in.max_drop_ppm) out->set_max_drop_ppm(*in.max_drop_ppm);
  out->set_split(in.split);
  out->set_commit(in.commit);
}

void set_federated(const model::FederatedSpec& in, v1::FederatedSpec* out) {
  out->set_rounds(in.rounds);
  out->set_min_boards(in.min_boards);
  out->set_deadline_s(in.deadline_s);
  out->set_outlier_q8(in.outlier_q8);
  out->set_personalise_epochs(in.personalise_epochs);
}

void set_twin(const model::TwinResult& in, v1::TwinResult* out) {
  out->set_what(static_cast<v1::TwinResult::What>(in.what));
  out->set_step(in.step);
  out->set_layer(in.layer);
  out->set_a(in.a);
  out->set_b(in.b);
  out->set_first_state_epoch(in.first_state_epoch);
  out->set_steps_compared(in.steps_compared);
  for (const auto& name : in.settings) out->add_settings(name);
}

Result<model::SweepSpec> read_sweep(const v1::SweepSpec& in) {
  model::SweepSpec out;
  ODT_ASSIGN(out.strategy,
             enum_field<model::SweepStrategy>(
                 in.strategy(), v1::SweepStrategy_IsValid(in.strategy()), "spec.sweep.strategy"));
  if (in.axes_size() > kMaxAxes)
    return bad_field("spec.sweep.axes", std::to_string(in.axes_size()) + " axes; limit 8");
  for (const auto& axis : in.axes()) {
    model::SweepAxis item;
    ODT_ASSIGN(item.name, text_field(axis.name(), "spec.sweep.axes.name", 32, true));
    if (axis.values_size() == 0 || axis.values_size() > kMaxValues)
      return bad_field("spec.sweep.axes.values", "axis " + item.name + " has " +
                                                     std::to_string(axis.values_size()) +
                                                     " values; allowed 1 to 64");
    for (const auto& value : axis.values()) {
      ODT_ASSIGN(item.values.emplace_back(), text_field(value, "spec.sweep.axes.values", 64, true));
    }
    out.axes.push_back(std::move(item));
  }
  ODT_TRY(in_range(in.trials(), 0u, 1024u, "spec.sweep.trials"));
  if (in.eta() != 0) ODT_TRY(in_range(in.eta(), 2u, 8u, "spec.sweep.eta"));
  ODT_TRY(in_range(in.min_epochs(), 0u, 65535u, "spec.sweep.min_epochs"));
  out.trials = in.trials();
  out.seed = in.seed();
  out.eta = in.eta();
  out.min_epochs = in.min_epochs();
  out.budget_board_s = in.budget_board_s();
  return out;
}

Result<model::RolloutSpec> read_rollout(const v1::RolloutSpec& in) {
  model::RolloutSpec out;
  ODT_ASSIGN(out.snapshot, optional_hash_field(in.snapshot(), "spec.rollout.snapshot"));
  ODT_TRY(in_range(in.canary_ppm(), 0u, 1'000'000u, "spec.rollout.canary_ppm"));
  out.canary_ppm = in.canary_ppm();
  std::uint32_t last = in.canary_ppm();
  if (in.phases_ppm_size() > 32)
    return bad_field("spec.rollout.phases_ppm",
                     std::to_string(in.phases_ppm_size()) + " phases; limit 32");
  for (const auto phase : in.phases_ppm()) {
    ODT_TRY(in_range(phase, last, 1'000'000u, "spec.rollout.phases_ppm"));
    out.phases_ppm.push_back(last = phase);
  }
  if (!out.phases_ppm.empty() && last != 1'000'000)
    return bad_field("spec.rollout.phases_ppm",
                     "the last is " + std::to_string(last) + "; it must be 1,000,000");
  if (in.max_drop_ppm() != 0) {
    ODT_TRY(in_range(in.max_drop_ppm(), 0u, 1'000'000u, "spec.rollout.max_drop_ppm"));
    out.max_drop_ppm = in.max_drop_ppm();
  }
  if (!in.split().empty() && in.split() != "heldout" && in.split() != "test")
    return bad_field("spec.rollout.split", "'" + clean_text(in.split()) + "'",
                     "splits: heldout, test");
  out.split = in.split();
  out.commit = in.commit();
  return out;
}

Result<model::FederatedSpec> read_federated(const v1::FederatedSpec& in) {
  ODT_TRY(in_range(in.rounds(), 0u, 1000u, "spec.federated.rounds"));
  ODT_TRY(in_range(in.min_boards(), 0u, 1024u, "spec.federated.min_boards"));
  ODT_TRY(in_range(in.deadline_s(), 0u, 31u * 86400u, "spec.federated.deadline_s"));
  if (in.outlier_q8() != 0)
    ODT_TRY(in_range(in.outlier_q8(), 256u, 0xFFFFFFFFu, "spec.federated.outlier_q8"));
  ODT_TRY(in_range(in.personalise_epochs(), 0u, 65535u, "spec.federated.personalise_epochs"));
  return model::FederatedSpec{in.rounds(), in.min_boards(), in.deadline_s(), in.outlier_q8(),
                              in.personalise_epochs()};
}

Status read_cohort(const v1::CampaignSpec& in, model::CampaignSpec& out) {
  ODT_ASSIGN(out.query, text_field(in.query(), "spec.query", 1024, false));
  if (in.boards_size() > kMaxBoards)
    return bad_field("spec.boards", std::to_string(in.boards_size()) + " boards; limit 1024");
  for (const auto& board : in.boards()) {
    ODT_ASSIGN(out.boards.emplace_back(), uid_field(board, "spec.boards"));
  }
  if (in.datasets_size() > kMaxBoards)
    return bad_field("spec.datasets", std::to_string(in.datasets_size()) + " entries; limit 1024");
  for (const auto& item : in.datasets()) {
    model::BoardDataset& to = out.datasets.emplace_back();
    ODT_ASSIGN(to.board, uid_field(item.board_uid(), "spec.datasets.board_uid"));
    ODT_ASSIGN(to.dataset, uuid_field(item.dataset_id(), "spec.datasets.dataset_id"));
  }
  return absl::OkStatus();
}

}  // namespace

v1::CampaignSpec to_proto(const model::CampaignSpec& spec) {
  v1::CampaignSpec out;
  out.set_name(clean_text(spec.name));
  out.set_kind(static_cast<v1::CampaignKind>(spec.kind));
  out.set_query(clean_text(spec.query));
  for (const auto& board : spec.boards) out.add_boards(board.str());
  out.set_model_hash(id_bytes(spec.model_hash));
  out.set_dataset_id(id_bytes(spec.dataset_id));
  for (const auto& item : spec.datasets) {
    auto* to = out.add_datasets();
    to->set_board_uid(item.board.str());
    to->set_dataset_id(id_bytes(item.dataset));
  }
  *out.mutable_hyper() = to_proto(spec.hyper);
  out.set_start_snapshot(id_bytes(spec.start_snapshot));
  out.set_evaluate(spec.evaluate);
  out.set_resume_deadline_s(spec.resume_deadline_s);
  if (spec.kind == model::CampaignKind::kSweep) set_sweep(spec.sweep, out.mutable_sweep());
  if (spec.hyper_b) *out.mutable_hyper_b() = to_proto(*spec.hyper_b);
  if (spec.kind == model::CampaignKind::kRollout) set_rollout(spec.rollout, out.mutable_rollout());
  if (spec.kind == model::CampaignKind::kFederated)
    set_federated(spec.federated, out.mutable_federated());
  out.set_max_parallel(spec.max_parallel);
  return out;
}

v1::Campaign to_proto(const model::Campaign& campaign) {
  v1::Campaign out;
  out.set_id(id_bytes(campaign.id));
  *out.mutable_spec() = to_proto(campaign.spec);
  out.set_state(static_cast<v1::CampaignState>(campaign.state));
  out.set_desired(static_cast<v1::DesiredState>(campaign.desired));
  set_reason(campaign.reason, out.mutable_reason());
  for (const auto& board : campaign.boards) out.add_boards(board.str());
  out.set_round(campaign.round);
  out.set_rounds_total(campaign.rounds_total);
  out.set_units_total(campaign.units_total);
  out.set_units_running(campaign.units_running);
  out.set_units_done(campaign.units_done);
  out.set_units_failed(campaign.units_failed);
  if (campaign.best_unit) out.set_best_unit(*campaign.best_unit);
  out.set_result(id_bytes(campaign.result));
  if (campaign.spec.kind == model::CampaignKind::kTwin) set_twin(campaign.twin, out.mutable_twin());
  out.set_board_us(campaign.board_us);
  out.set_start_time_us(campaign.start_time_us);
  out.set_end_time_us(campaign.end_time_us);
  out.set_owner(clean_text(campaign.owner));
  set_meta(campaign.meta, out.mutable_meta());
  return out;
}

v1::CampaignEvent to_proto(const model::CampaignEvent& event) {
  v1::CampaignEvent out;
  out.set_campaign_id(id_bytes(event.campaign_id));
  out.set_seq(event.seq);
  out.set_time_us(event.time_us);
  out.set_from(static_cast<v1::CampaignState>(event.from));
  out.set_to(static_cast<v1::CampaignState>(event.to));
  out.set_cause(clean_text(event.cause));
  out.set_actor(clean_text(event.actor));
  out.set_command_id(id_bytes(event.command_id));
  return out;
}

v1::CampaignUnit to_proto(const model::CampaignUnit& unit) {
  v1::CampaignUnit out;
  out.set_campaign_id(id_bytes(unit.campaign_id));
  out.set_index(unit.index);
  out.set_round(unit.round);
  out.set_trial(unit.trial);
  out.set_board_uid(unit.board.str());
  out.set_model_hash(id_bytes(unit.model_hash));
  out.set_dataset_id(id_bytes(unit.dataset_id));
  *out.mutable_hyper() = to_proto(unit.hyper);
  out.set_start_snapshot(id_bytes(unit.start_snapshot));
  out.set_state(static_cast<v1::CampaignUnitState>(unit.state));
  set_reason(unit.reason, out.mutable_reason());
  out.set_run_id(id_bytes(unit.run_id));
  out.set_tries(unit.tries);
  set_accuracy(unit.before, out.mutable_before());
  set_accuracy(unit.after, out.mutable_after());
  set_accuracy(unit.heldout_start, out.mutable_heldout_start());
  set_accuracy(unit.heldout_best, out.mutable_heldout_best());
  set_known_loss(unit.heldout_best_loss, [&out] { return out.mutable_heldout_best_loss(); });
  out.set_train_samples(unit.train_samples);
  out.set_weights(id_bytes(unit.weights));
  out.set_previous(id_bytes(unit.previous));
  out.set_drift_l1(unit.drift_l1);
  out.set_changed_ppm(unit.changed_ppm);
  out.set_weight(unit.weight);
  out.set_start_time_us(unit.start_time_us);
  out.set_end_time_us(unit.end_time_us);
  out.set_steps_done(unit.steps_done);
  out.set_personal(unit.personal);
  return out;
}

v1::CampaignRound to_proto(const model::CampaignRound& round) {
  v1::CampaignRound out;
  out.set_campaign_id(id_bytes(round.campaign_id));
  out.set_round(round.round);
  out.set_start(id_bytes(round.start));
  out.set_average(id_bytes(round.average));
  out.set_boards(round.boards);
  out.set_averaged(round.averaged);
  out.set_samples(round.samples);
  out.set_median_l1(round.median_l1);
  out.set_start_time_us(round.start_time_us);
  out.set_end_time_us(round.end_time_us);
  return out;
}

Result<model::CampaignSpec> from_proto(const v1::CampaignSpec& in) {
  model::CampaignSpec out;
  ODT_ASSIGN(out.name, text_field(in.name(), "spec.name", 48, false));
  ODT_ASSIGN(out.kind, enum_field<model::CampaignKind>(
                           in.kind(), v1::CampaignKind_IsValid(in.kind()), "spec.kind"));
  if (out.kind == model::CampaignKind::kUnspecified) return bad_field("spec.kind", "absent");
  ODT_TRY(read_cohort(in, out));
  ODT_ASSIGN(out.model_hash, optional_hash_field(in.model_hash(), "spec.model_hash"));
  if (!in.dataset_id().empty()) {
    ODT_ASSIGN(out.dataset_id, uuid_field(in.dataset_id(), "spec.dataset_id"));
  }
  ODT_ASSIGN(out.hyper, from_proto(in.hyper(), "spec.hyper"));
  ODT_ASSIGN(out.start_snapshot, optional_hash_field(in.start_snapshot(), "spec.start_snapshot"));
  out.evaluate = in.evaluate();
  ODT_TRY(in_range(in.resume_deadline_s(), 0u, 31u * 86400u, "spec.resume_deadline_s"));
  out.resume_deadline_s = in.resume_deadline_s();
  ODT_ASSIGN(out.sweep, read_sweep(in.sweep()));
  if (in.has_hyper_b()) {
    ODT_ASSIGN(out.hyper_b, from_proto(in.hyper_b(), "spec.hyper_b"));
  }
  ODT_ASSIGN(out.rollout, read_rollout(in.rollout()));
  ODT_ASSIGN(out.federated, read_federated(in.federated()));
  ODT_TRY(in_range(in.max_parallel(), 0u, 1024u, "spec.max_parallel"));
  out.max_parallel = in.max_parallel();
  return out;
}

}  // namespace odt::api
