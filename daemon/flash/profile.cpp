#include "flash/profile.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include "base/ids.h"

namespace odt::flash {
namespace {

namespace fs = std::filesystem;

Status refuse(const std::string& text) { return absl::InvalidArgumentError(text); }

// Reads one table; whatever is not asked for in the end is an unknown key.
class Keys {
 public:
  Keys(const toml::table& table, std::string name) : table_(table), name_(std::move(name)) {}

  Status text(const char* key, std::string& to, bool required = false) {
    const toml::node* node = at(key);
    if (node == nullptr) return required ? refuse("without " + full(key)) : absl::OkStatus();
    if (!node->is_string()) return refuse(full(key) + " is not a string");
    to = **node->as_string();
    return absl::OkStatus();
  }
  template <typename T>
  Status number(const char* key, T& to, std::int64_t low, std::int64_t high,
                bool required = false) {
    const toml::node* node = at(key);
    if (node == nullptr) return required ? refuse("without " + full(key)) : absl::OkStatus();
    if (!node->is_integer()) return refuse(full(key) + " is not a whole number");
    const std::int64_t value = **node->as_integer();
    if (value < low || value > high)
      return refuse(full(key) + " is " + std::to_string(value) + "; allowed " +
                    std::to_string(low) + " to " + std::to_string(high));
    to = static_cast<T>(value);
    return absl::OkStatus();
  }
  Status texts(const char* key, std::vector<std::string>& to, bool required = false) {
    const toml::node* node = at(key);
    if (node == nullptr) return required ? refuse("without " + full(key)) : absl::OkStatus();
    if (!node->is_array()) return refuse(full(key) + " is not an array of strings");
    for (const auto& item : *node->as_array()) {
      if (!item.is_string()) return refuse(full(key) + " is not an array of strings");
      to.push_back(**item.as_string());
    }
    return to.empty() && required ? refuse(full(key) + " is empty") : absl::OkStatus();
  }
  Result<Keys> table(const char* key) {
    const toml::node* node = at(key);
    static const toml::table kNone;
    if (node == nullptr) return Keys(kNone, full(key));
    if (!node->is_table()) return refuse(full(key) + " is not a table");
    return Keys(*node->as_table(), full(key));
  }
  Status nothing_else() const {
    for (const auto& [key, node] : table_)
      if (!seen_.contains(std::string(key.str())))
        return refuse("line " + std::to_string(key.source().begin.line) + ": unknown key '" +
                      full(std::string(key.str())) + "'");
    return absl::OkStatus();
  }

 private:
  std::string full(const std::string& key) const { return name_.empty() ? key : name_ + "." + key; }
  const toml::node* at(const char* key) {
    seen_.insert(key);
    return table_.get(key);
  }
  const toml::table& table_;
  std::string name_;
  std::set<std::string> seen_;
};

Status check_words(const std::vector<std::string>& argv) {
  if (argv.front().empty() || argv.front()[0] != '/')
    return refuse("flash.argv begins with '" + argv.front() + "', not with an absolute path");
  for (const std::string& word : argv)
    for (std::size_t at = word.find('{'); at != std::string::npos; at = word.find('{', at + 1)) {
      const std::size_t end = word.find('}', at);
      const std::string name =
          end == std::string::npos ? std::string() : word.substr(at + 1, end - at - 1);
      if (std::none_of(std::begin(kPlaceholders), std::end(kPlaceholders),
                       [&](const char* known) { return name == known; }))
        return refuse("flash.argv has '" + word +
                      "': placeholders are {image}, {uid}, {serial}, {port}, {address}");
    }
  return absl::OkStatus();
}

Status read(const toml::table& table, Profile& p) {
  constexpr std::int64_t kTop = 0xFFFFFFFF;
  Keys root(table, "");
  ODT_TRY(root.texts("board_types", p.board_types, true));
  ODT_TRY(root.text("core", p.core, true));
  ODT_ASSIGN(Keys memory, root.table("memory"));
  ODT_TRY(memory.number("flash_address", p.flash_address, 0, kTop, true));
  ODT_TRY(memory.number("flash_bytes", p.flash_bytes, 1, kTop, true));
  ODT_TRY(memory.number("ram_address", p.ram_address, 0, kTop));
  ODT_TRY(memory.number("ram_bytes", p.ram_bytes, 1, kTop));
  ODT_TRY(memory.nothing_else());
  ODT_ASSIGN(Keys uart, root.table("uart"));
  ODT_TRY(uart.text("name", p.uart));
  ODT_TRY(uart.number("baud", p.baud, 1, 12'000'000));
  ODT_TRY(uart.nothing_else());
  ODT_ASSIGN(Keys power, root.table("power"));
  ODT_TRY(power.text("how", p.power));
  ODT_TRY(power.nothing_else());
  ODT_ASSIGN(Keys flash, root.table("flash"));
  ODT_TRY(flash.text("method", p.method, true));
  ODT_TRY(flash.texts("formats", p.formats, true));
  ODT_TRY(flash.texts("argv", p.argv, true));
  ODT_TRY(flash.number("timeout_s", p.timeout_s, 1, 3600));
  ODT_TRY(flash.nothing_else());
  ODT_TRY(root.nothing_else());
  for (const auto& format : p.formats)
    if (format != "elf" && format != "hex" && format != "uf2" && format != "bin")
      return refuse("flash.formats has '" + format + "'; known: elf, hex, uf2, bin");
  return check_words(p.argv);
}

// Whoever may write a profile may run programs as the user of odt-flash.
Status check_owner(const std::string& file, bool own) {
  for (const std::string& path : {file, fs::path(file).parent_path().string()}) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return refuse(path + " cannot be looked at");
    const bool trusted = info.st_uid == 0 || (own && info.st_uid == ::geteuid());
    if (!trusted || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
      return refuse(path + " can be written by others than root: chown root, chmod go-w");
  }
  return absl::OkStatus();
}

Profile load(const std::string& file, bool own) {
  Profile profile;
  profile.name = fs::path(file).stem().string();
  profile.file = file;
  Status status = check_owner(file, own);
  try {
    if (status.ok()) status = read(toml::parse_file(file), profile);
  } catch (const toml::parse_error& bad) {
    status = refuse("line " + std::to_string(bad.source().begin.line) + ": " +
                    std::string(bad.description()));
  }
  if (!status.ok()) profile.error = file + ": " + std::string(status.message());
  return profile;
}

bool plain(const std::string& value) {
  return !value.empty() && value[0] != '-' && std::all_of(value.begin(), value.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("._:/+@-").find(c) != std::string_view::npos;
  });
}

// A device and not any path; the uid as boards have it.
bool fits(const std::string& name, const std::string& value) {
  if (name == "port") return value.starts_with("/dev/") && value.find("..") == std::string::npos;
  if (name == "uid") return from_hex(value).ok();
  return true;
}

}  // namespace

std::vector<Profile> load_profiles(const std::vector<std::string>& folders, bool own) {
  std::map<std::string, Profile> found;
  for (const auto& folder : folders) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (entry.path().extension() == ".toml") {
        Profile profile = load(entry.path().string(), own);
        found[profile.name] = std::move(profile);
      }
  }
  std::vector<Profile> out;
  for (auto& [name, profile] : found) out.push_back(std::move(profile));
  return out;
}

Result<Profile> find_profile(const std::vector<Profile>& profiles, const std::string& name,
                             const std::string& board_type) {
  std::string names;
  for (const Profile& profile : profiles) {
    names += (names.empty() ? "" : ", ") + profile.name;
    const bool fits = std::find(profile.board_types.begin(), profile.board_types.end(),
                                board_type) != profile.board_types.end();
    if (name.empty() ? !fits && profile.name != board_type : profile.name != name) continue;
    if (profile.error.empty()) return profile;
    return with_reason(absl::FailedPreconditionError(profile.error), "PROFILE_INVALID",
                       "Correct the file; README.md in /usr/share/odt-fleet/boards says how.");
  }
  return with_reason(
      absl::NotFoundError((name.empty() ? "no board profile for boards of type " + board_type
                                        : "no board profile " + name) +
                          "; there are: " + (names.empty() ? "none" : names)),
      "PROFILE_UNKNOWN",
      "Write one: /etc/odt-fleet/boards/NAME.toml, as those in /usr/share/odt-fleet/boards.");
}

Result<std::vector<std::string>> filled_argv(const Profile& profile, const Values& values) {
  std::vector<std::string> out;
  for (const std::string& word : profile.argv) {
    std::string filled;
    std::size_t at = 0;
    for (std::size_t open = word.find('{'); open != std::string::npos; open = word.find('{', at)) {
      const std::size_t close = word.find('}', open);
      const std::string name = word.substr(open + 1, close - open - 1);
      const auto value = values.find(name);
      if (value == values.end() || !plain(value->second) || !fits(name, value->second))
        return with_reason(
            refuse("profile " + profile.name + " wants {" + name + "}, which is " +
                   (value == values.end() || value->second.empty() ? "not known for this board"
                                                                   : "'" + value->second + "'")),
            "PLACEHOLDER", "Take a profile without it, or one with the value written out.");
      filled += word.substr(at, open - at) + value->second;
      at = close + 1;
    }
    out.push_back(filled + word.substr(at));
  }
  return out;
}

}  // namespace odt::flash
