#pragma once

#include <string>
#include <string_view>

#include "model/device.h"

namespace odt::device::v1 {}

// Shared by the sources of device_codec; not for other rooms.
namespace odt::wire {

namespace pb = ::odt::device::v1;

template <typename Message>
Result<Message> parse(std::string_view payload, const char* what) {
  Message m;
  if (!m.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
    return absl::DataLossError(std::string(what) + " of " + std::to_string(payload.size()) +
                               " bytes cannot be decoded");
  }
  return m;
}

// An absent id, or one of a wrong size, is none.
template <typename Id>
Id id_or_zero(const std::string& raw) {
  const Result<Id> id = Id::from_bytes(raw);
  return id.ok() ? *id : Id{};
}

// A prefix of a hash is kept only whole; anything else is as good as none.
inline Bytes prefix16(const std::string& raw) {
  if (raw.size() != 16) return {};
  return Bytes(raw.begin(), raw.end());
}

// A state that this daemon does not know is as none: it is shown, never acted on.
inline model::JobState job_state(int value) {
  if (value < 0 || value > static_cast<int>(model::JobState::kFailed)) {
    return model::JobState::kNone;
  }
  return static_cast<model::JobState>(value);
}

inline absl::StatusCode status_code(int value) {
  if (value < 0 || value > 16) return absl::StatusCode::kUnknown;
  return static_cast<absl::StatusCode>(value);
}

}  // namespace odt::wire
