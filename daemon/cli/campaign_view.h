#pragma once

#include <string>

#include "base/result.h"

namespace odt::api::v1 {
class Campaign;
class CreateCampaignResponse;
}  // namespace odt::api::v1

namespace odt::cli {

class Context;

// A campaign with its units and rounds, for people or as JSON {campaign, units, rounds, events}.
Status show_campaign(Context& context, const api::v1::Campaign& campaign);
// What the checks of a dry run say. Error (exit code 5) where a board cannot take part.
Status show_checks(Context& context, const api::v1::CreateCampaignResponse& response);
// Until it is over: a line a change. Errors: exit code 6 where it FAILED or was CANCELLED, 130
// after Ctrl-C (the campaign goes on), 3 where odtd stays away for 60 s.
Status follow_campaign(Context& context, const std::string& id);

Status list_campaigns(Context& context, const std::string& filter);
// Energy and memory of a run.
Status show_accounting(Context& context, const std::string& run);

}  // namespace odt::cli
