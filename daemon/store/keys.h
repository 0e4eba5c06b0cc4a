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
// Its events, units and rounds.
inline std::string campaign_part_key(const Uuid& campaign, std::uint32_t number) {
  return campaign.str() + big_endian(number, 4);
}
inline std::string epoch_key(const model::EpochResult& e) {
  return e.run_id.str() + big_endian(e.attempt, 4) + big_endian(e.epoch, 4);
}
// By scope, target, name: also their order in lists.
inline std::string setting_key(const model::Setting& v) {
  const bool board = v.scope == model::SettingScope::kBoard;
  return static_cast<char>(v.scope) + (board ? v.board.str() : v.target) + '\0' + v.key;
}
// Uids differ in length: none of them is the beginning of another's.
inline std::string lab_event_prefix(const BoardUid& board) {
  return static_cast<char>(board.str().size()) + board.str();
}
inline constexpr char kAlertSettingsKey[] = "alerts";
inline std::string derived_key(const Hash& content, const Hash& model) {
  return content.str() + model.str();
}

// Order of lists: boards by name, ports by path (key), all others by time of creation.
inline std::string sort_of(const model::Board& v) { return v.name; }
inline std::string sort_of(const model::Port&) { return {}; }
inline std::string sort_of(const model::Setting&) { return {}; }
template <typename T>
std::string sort_of(const T& v) {
  return big_endian(static_cast<std::uint64_t>(v.meta.create_time_us), 8);
}

inline bool active_of(const model::Run& v) { return !model::is_final(v.state); }
inline bool active_of(const model::Alert& v) { return v.state == model::AlertState::kFiring; }
inline bool active_of(const model::Campaign& v) { return !model::is_final(v.state); }
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
    {Kind::kBoard, "board"},       {Kind::kPort, "port"},
    {Kind::kModel, "model"},       {Kind::kDataset, "dataset"},
    {Kind::kSnapshot, "snapshot"}, {Kind::kUpload, "upload"},
    {Kind::kCampaign, "campaign"}, {Kind::kScopedSetting, "setting"},
};

inline Result<Hash> hash_from_hex(std::string_view hex) {
  ODT_ASSIGN(const Bytes raw, from_hex(hex));
  return Hash::from_bytes({reinterpret_cast<const char*>(raw.data()), raw.size()});
}

struct TrashKind {
  Kind kind;
  const char* name;
};
// Kinds that have a trash, with their names in store::Trash and model::Deleted.
inline constexpr TrashKind kTrashed[] = {
    {Kind::kBoard, "board"},       {Kind::kModel, "model"}, {Kind::kDataset, "dataset"},
    {Kind::kSnapshot, "snapshot"}, {Kind::kRun, "run"},
};

inline std::string trash_key(Kind kind, const std::string& key) {
  return static_cast<char>(kind) + key;
}

// What a kTrash row holds: the row that it was, and who threw it away.
struct TrashRecord {
  std::uint32_t kind = 0;  // number of Kind
  std::string name, actor;
  std::int64_t time_us = 0;
  std::string body;
};

// For messages: text keys as they are, raw ones as hex.
inline std::string show_key(Kind kind, const std::string& key) {
  if (kind == Kind::kPort || kind == Kind::kSetting || kind == Kind::kAlias ||
      kind == Kind::kAlertSettings)
    return key;
  return to_hex(reinterpret_cast<const std::uint8_t*>(key.data()), key.size());
}

}  // namespace odt::store
