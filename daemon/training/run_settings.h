#pragma once

#include "training/env.h"

// Settings by scope in a new run.
namespace odt::training {

// Fills what the spec does not say from the settings that hold for its board; what it took. Runs of
// campaigns take nothing; one that is done again (retry_of) is as it was.
asio::awaitable<Result<std::vector<model::RunSetting>>> take_settings(
    Env& env, std::shared_ptr<model::RunSpec> spec, Uuid retry_of);

// An error of the run with what it took: a value at fault may be one that nobody gave with it.
Status name_settings(const Status& status, const std::vector<model::RunSetting>& taken);

}  // namespace odt::training
