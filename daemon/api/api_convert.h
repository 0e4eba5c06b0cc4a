#pragma once

#include "jobs/job_control.h"
#include "model/device.h"
#include "model/event.h"
#include "odt/api/v1/alerts.pb.h"
#include "odt/api/v1/campaigns.pb.h"
#include "odt/api/v1/services.pb.h"
#include "odt/api/v1/storage.pb.h"
#include "odt/api/v1/types.pb.h"

// The only place where domain types become messages of the API, and back. Texts are made clean
// (errors.h); zero ids and hashes become absent fields.
namespace odt::api {

v1::Lease to_proto(const model::Lease& lease);
v1::Reason to_proto(const model::Reason& reason);
v1::Board to_proto(const model::Board& board);
v1::BoardNvm to_proto(const model::NvmInfo& nvm);
v1::Port to_proto(const model::Port& port);
v1::Model to_proto(const model::Model& model);
v1::Dataset to_proto(const model::Dataset& dataset);
v1::Snapshot to_proto(const model::Snapshot& snapshot);
v1::Evaluation to_proto(const model::Evaluation& evaluation);
v1::InferResponse to_proto(const model::Inference& inference);
v1::Job to_proto(const model::Job& job);
v1::Upload to_proto(const model::Upload& upload);
v1::Run to_proto(const model::Run& run);
v1::RunEstimate to_proto(const model::RunEstimate& estimate);
v1::RunSpec to_proto(const model::RunSpec& spec);
v1::HyperParams to_proto(const model::HyperParams& hyper);
v1::RunEvent to_proto(const model::RunEvent& event);
v1::EpochResult to_proto(const model::EpochResult& epoch);
v1::TelemetryFrame to_proto(const model::TelemetryFrame& frame);
// The same into a message that keeps its memory from frame to frame.
void fill(v1::TelemetryFrame& out, const model::TelemetryFrame& frame);
v1::Campaign to_proto(const model::Campaign& campaign);
v1::CampaignSpec to_proto(const model::CampaignSpec& spec);
v1::CampaignEvent to_proto(const model::CampaignEvent& event);
v1::CampaignUnit to_proto(const model::CampaignUnit& unit);
v1::CampaignRound to_proto(const model::CampaignRound& round);
v1::Alert to_proto(const model::Alert& alert);
v1::AlertRule to_proto(const model::AlertRule& rule);
v1::AlertSilence to_proto(const model::AlertSilence& silence);
v1::AlertSettings to_proto(const model::AlertSettings& settings);
v1::Setting to_proto(const model::Setting& setting);
v1::RunSetting to_proto(const model::RunSetting& setting);
v1::LabEvent to_proto(const model::LabEvent& event);
v1::PowerResult to_proto(const model::PowerResult& result);
v1::Event to_proto(const model::Event& event);

// Errors: INVALID_ARGUMENT naming the field (its path in the request begins with `field`).
Result<BoardUid> uid_field(const std::string& raw, std::string_view field);
Result<Hash> hash_field(const std::string& raw, std::string_view field);
Result<Hash> optional_hash_field(const std::string& raw, std::string_view field);  // absent: zero
Result<Uuid> uuid_field(const std::string& raw, std::string_view field);
// 1..max clean characters, without leading or trailing blanks; empty where `required` is false.
Result<std::string> text_field(const std::string& raw, std::string_view field, std::size_t max,
                               bool required);
Result<model::HyperParams> from_proto(const v1::HyperParams& hyper, const std::string& field);
Result<model::RunSpec> from_proto(const v1::RunSpec& spec);
Result<model::CampaignSpec> from_proto(const v1::CampaignSpec& spec);
Result<model::Setting> from_proto(const v1::Setting& setting);
Result<jobs::ImportOptions> from_proto(const v1::ImportOptions& options);

}  // namespace odt::api
