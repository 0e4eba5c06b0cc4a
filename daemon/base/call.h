#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/ids.h"

namespace odt {

// Answer of an operation that another thread carries out. Called exactly once.
template <typename T>
using Done = std::function<void(Result<T>)>;

// Who asks, from the API's registration template or from the daemon itself.
struct CallContext {
  std::string actor = "odtd";
  std::string owner;  // whom it is for; empty: the actor
  bool admin = true;  // may act over others' reservations where it says so
  std::string peer;
  std::string request_id;  // not empty: repeated calls have one effect (store::Batch::request_id)
  Uuid command_id;         // new_uuid() per mutation
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  const std::string& whose() const { return owner.empty() ? actor : owner; }
};

}  // namespace odt
