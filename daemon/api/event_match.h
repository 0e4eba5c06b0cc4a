#pragma once

#include <map>
#include <set>
#include <string>

#include "api/api_convert.h"
#include "api/search_words.h"
#include "store/store.h"

namespace odt::api {

struct EventSearch {
  SearchWords words;
  std::set<std::string> kinds;  // fields of Event.what; empty: all
  std::string board_uid;        // empty: all
  bool problems = false;
};

// What a person would call what an event names: boards, runs, models and data sets by their ids.
// Store thread; remembers what it has read.
class EventNames {
 public:
  explicit EventNames(store::ControlStore& store) : store_(store) {}
  // `field`: of a message of the API that holds an id ("board_uid", "run_id", ...); empty: no name.
  const std::string& name(const std::string& field, const std::string& id);
  const std::string& board_of_run(const std::string& id);  // its uid; empty: unknown

 private:
  std::string read(const std::string& field, const std::string& id);
  store::ControlStore& store_;
  std::map<std::pair<std::string, std::string>, std::string> known_;
};

// Field of Event.what that is set: "run_event"; empty: none.
std::string event_kind(const v1::Event& event);
bool is_problem(const v1::Event& event);
bool matches(const v1::Event& event, const EventSearch& search, EventNames& names);

}  // namespace odt::api
