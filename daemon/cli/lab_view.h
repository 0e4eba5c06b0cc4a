#pragma once

#include <string>
#include <vector>

namespace odt::api::v1 {
class Board;
class LabEvent;
}  // namespace odt::api::v1

// Lab life of boards for people.
namespace odt::cli {

class Names;

std::string use_text(const api::v1::Board& board);  // "maintenance", "alice until 15:30", "-"
std::vector<std::vector<std::string>> lab_rows(const api::v1::Board& board);  // of `board show`
// "reserved by alice until ...: note".
std::string event_text(const api::v1::LabEvent& event, const Names& names);

}  // namespace odt::cli
