#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/board.h"
#include "model/run.h"

// What settings by scope mean: which hold for a board, and what a new run takes from them.
namespace odt::model {

// LabelQuery's fields of a board: name, place, type, core, status.
std::map<std::string, std::string> query_fields(const Board& board);

// Of RunSpec itself; all others are keys of HyperParams (hyper_values.h).
inline constexpr char kResumeDeadlineKey[] = "resume_deadline_s";

// Key and value belong together (ranges are not checked), a cohort's query can be read. Errors:
// INVALID_ARGUMENT.
Status check_setting(const Setting& setting);
bool applies(const Setting& setting, const Board& board);

// What holds for a board: the most specific of each key first, then those it overrides.
std::map<std::string, std::vector<Setting>> settings_of(const std::vector<Setting>& all,
                                                        const Board& board);
// Fills what `spec` does not say. What it took, by key; a value that cannot be read is passed over
// (an older odtd wrote it).
std::vector<RunSetting> fill_from_settings(const std::vector<Setting>& all, const Board& board,
                                           RunSpec& spec);
// As set_hyper; ranges are not checked.
Status set_spec(const std::string& key, const std::string& value, RunSpec& spec);
// As a setting would say it; empty: not set.
std::string spec_text(const std::string& key, const RunSpec& spec);

}  // namespace odt::model
