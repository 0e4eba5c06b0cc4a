// The write side of ControlEngine for campaigns.
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "store/control_engine_put.h"

namespace odt::store {
namespace {

const char* state_name(model::CampaignState state) {
  static constexpr const char* kNames[] = {"UNSPECIFIED",  "QUEUED",    "RUNNING", "PAUSED",
                                           "ROLLING_BACK", "SUCCEEDED", "FAILED",  "CANCELLED"};
  const auto index = static_cast<std::size_t>(state);
  return index < std::size(kNames) ? kNames[index] : "?";
}

// Whether the campaign needs the thing of that kind and key.
bool uses(const model::Campaign& c, Kind kind, const std::string& key) {
  const model::CampaignSpec& s = c.spec;
  switch (kind) {
    case Kind::kBoard:
      return std::any_of(c.boards.begin(), c.boards.end(),
                         [&](const BoardUid& uid) { return uid.str() == key; });
    case Kind::kModel:
      return s.model_hash.str() == key;
    case Kind::kDataset:
      return s.dataset_id.str() == key ||
             std::any_of(s.datasets.begin(), s.datasets.end(),
                         [&](const model::BoardDataset& d) { return d.dataset.str() == key; });
    case Kind::kSnapshot:
      return s.start_snapshot.str() == key || s.rollout.snapshot.str() == key ||
             c.result.str() == key;
    default:
      return false;
  }
}

}  // namespace

Status ControlEngine::apply(Transaction& tx, const CreateCampaign& c) {
  if (c.value.id.is_zero()) return absl::InvalidArgumentError("campaign has no key");
  if (c.value.state != model::CampaignState::kQueued)
    return absl::InvalidArgumentError(
        absl::StrCat("a campaign begins QUEUED, not ", state_name(c.value.state)));
  const std::string key = c.value.id.str();
  ODT_ASSIGN(const std::optional<Row> row, rows_->get(Kind::kCampaign, key));
  if (row) return absl::AlreadyExistsError("campaign " + c.value.id.hex() + " exists");
  model::Campaign campaign = c.value;
  if (campaign.meta.created_by.empty()) campaign.meta.created_by = c.actor;
  campaign.meta.etag = 0;
  ODT_TRY(put(tx, Kind::kCampaign, key, std::move(campaign)));
  for (const model::CampaignUnit& unit : c.units) ODT_TRY(apply(tx, PutCampaignUnit{unit}));
  model::CampaignEvent event;
  event.campaign_id = c.value.id;
  event.to = model::CampaignState::kQueued;
  event.cause = "created";
  event.actor = c.actor;
  return append_change(tx, Kind::kCampaignEvent, c.value.id, std::move(event));
}

Status ControlEngine::apply(Transaction& tx, const TransitionCampaign& c) {
  ODT_ASSIGN(const model::Campaign stored, campaign(c.value.id));
  const std::string name = "campaign " + c.value.id.hex();
  if (c.event.to != c.value.state || c.event.campaign_id != c.value.id)
    return absl::InvalidArgumentError("transition of " + name +
                                      " does not describe the campaign's new state");
  if (stored.state != c.event.from)
    return absl::FailedPreconditionError(
        absl::StrCat(name, " is ", state_name(stored.state), ", not ", state_name(c.event.from)));
  if (!model::is_legal_transition(c.event.from, c.event.to))
    return absl::FailedPreconditionError(absl::StrCat(
        name, " cannot go from ", state_name(c.event.from), " to ", state_name(c.event.to)));
  ODT_TRY(put(tx, Kind::kCampaign, c.value.id.str(), c.value));
  return append_change(tx, Kind::kCampaignEvent, c.value.id, c.event);
}

Status ControlEngine::apply(Transaction& tx, const UpdateCampaign& c) {
  ODT_ASSIGN(const model::Campaign stored, campaign(c.value.id));
  if (stored.state != c.value.state)
    return absl::FailedPreconditionError(
        absl::StrCat("campaign ", c.value.id.hex(), " is ", state_name(stored.state), ", not ",
                     state_name(c.value.state), "; a new state needs a transition"));
  return put(tx, Kind::kCampaign, c.value.id.str(), c.value);
}

Status ControlEngine::apply(Transaction&, const PutCampaignUnit& c) {
  ODT_TRY(campaign(c.value.campaign_id).status());
  return put_record(Kind::kCampaignUnit, campaign_part_key(c.value.campaign_id, c.value.index),
                    c.value);
}

Status ControlEngine::apply(Transaction&, const PutCampaignRound& c) {
  ODT_TRY(campaign(c.value.campaign_id).status());
  return put_record(Kind::kCampaignRound, campaign_part_key(c.value.campaign_id, c.value.round),
                    c.value);
}

Status ControlEngine::refuse_if_in_campaign(Kind kind, const std::string& key) {
  if (kind == Kind::kCampaign) {
    ODT_ASSIGN(const Uuid id, Uuid::from_bytes(key));
    ODT_ASSIGN(const model::Campaign c, campaign(id));
    if (model::is_final(c.state)) return {};
    return with_reason(absl::FailedPreconditionError(
                           absl::StrCat("campaign ", id.hex(), " is ", state_name(c.state))),
                       "CAMPAIGN_ACTIVE", "Cancel it first.");
  }
  ODT_ASSIGN(const std::vector<model::Campaign> active, active_campaigns());
  for (const model::Campaign& c : active)
    if (uses(c, kind, key))
      return absl::FailedPreconditionError(
          absl::StrCat(show_key(kind, key), " is in use by campaign ", c.id.hex(), " (",
                       state_name(c.state), "); cancel it or wait for its end"));
  return {};
}

// Its events stay: they are history.
Status ControlEngine::delete_campaign_parts(const std::string& campaign) {
  ODT_TRY(erase_all(Kind::kCampaignUnit, campaign));
  return erase_all(Kind::kCampaignRound, campaign);
}

}  // namespace odt::store
