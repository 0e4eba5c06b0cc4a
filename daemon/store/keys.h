#pragma once

#include <string>

#include "model/event.h"
#include "store/rows.h"

// Row keys, list order and names of kinds. Inside of the room.
namespace odt::store {

inline std::string big_endian(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
  return out;
}

inline std::string run_event_key(const Uuid& run, std::uint32_t seq) {
  return run.str() + big_endian(seq, 4);
}
inline std::string epoch_key(const model::EpochResult& e) {
  return e.run_id.str() + big_endian(e.attempt, 4) + big_endian(e.epoch, 4);
}
inline std::string derived_key(const Hash& content, const Hash& model) {
  return content.str() + model.str();
}

// Order of lists: boards by name, ports by path (key), all others by time of creation.
inline std::string sort_of(const model::Board& v) { return v.name; }
inline std::string sort_of(const model::Port&) { return {}; }
template <typename T>
std::string sort_of(const T& v) {
  return big_endian(static_cast<std::uint64_t>(v.meta.create_time_us), 8);
}

inline bool active_of(const model::Run& v) { return !model::is_final(v.state); }
template <typename T>
bool active_of(const T&) {
  return false;
}

struct KindName {
  Kind kind;
  const char* name;
};
// Kinds that can be deleted, with their names in store::Delete and model::Deleted.
inline constexpr KindName kKindNames[] = {
    {Kind::kBoard, "board"},     {Kind::kPort, "port"},         {Kind::kModel, "model"},
    {Kind::kDataset, "dataset"}, {Kind::kSnapshot, "snapshot"}, {Kind::kUpload, "upload"},
};

// For messages: text keys as they are, raw ones as hex.
inline std::string show_key(Kind kind, const std::string& key) {
  if (kind == Kind::kPort || kind == Kind::kSetting || kind == Kind::kAlias) return key;
  return to_hex(reinterpret_cast<const std::uint8_t*>(key.data()), key.size());
}

}  // namespace odt::store
