#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <sstream>

#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include "app/config.h"
#include "fleet/port_rules.h"

// The TOML file: every key is known, of its type and in its range, or the file is refused.
namespace odt::app {
namespace {

class File {
 public:
  explicit File(std::string path) : path_(std::move(path)) {}

  Status fault(const toml::source_region& where, const std::string& text,
               const std::string& remedy = kOther) const {
    const std::string line = std::to_string(where.begin.line);
    Status status =
        with_reason(absl::InvalidArgumentError(path_ + ":" + line + ": " + text), "CONFIG", remedy);
    status.SetPayload(
        kLine, absl::Cord(std::string(10 - std::min<std::size_t>(10, line.size()), '0') + line));
    return status;
  }
  static bool before(const Status& a, const Status& b) {
    return a.GetPayload(kLine).value_or(absl::Cord()) < b.GetPayload(kLine).value_or(absl::Cord());
  }

  static constexpr char kLine[] = "odt/line";
  static constexpr char kOther[] = "correct the value, or remove the line: then the default holds";

 private:
  std::string path_;
};

std::size_t edits_between(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = corner + (a[i - 1] == b[j - 1] ? 0 : 1);
      corner = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

using Read = std::function<Status(const toml::node&, const std::string& key)>;
using Keys = std::map<std::string, Read>;

class Reader {
 public:
  explicit Reader(std::string path) : file_(std::move(path)) {}

  // Of all keys, by line.
  std::vector<Status> faults() const {
    std::stable_sort(faults_.begin(), faults_.end(), File::before);
    return faults_;
  }

  // Goes through the whole table whatever it meets: see faults().
  Status table(const toml::table& table, const std::string& name, const Keys& keys) const {
    for (const auto& [raw, node] : table) {
      const std::string key(raw.str());
      const std::string full = name.empty() ? key : name + "." + key;
      const auto known = keys.find(key);
      Status read =
          known == keys.end() ? unknown(raw.source(), full, keys) : known->second(node, full);
      if (!read.ok()) faults_.push_back(std::move(read));
    }
    return absl::OkStatus();
  }

  Read section(Keys keys) const {
    return [this, keys = std::move(keys)](const toml::node& node, const std::string& key) {
      if (!node.is_table()) return wrong(node, key, "a table");
      return table(*node.as_table(), key, keys);
    };
  }

  // [[key]]: `each` makes the keys of a new entry; `lacks` says what a whole one lacks, or nothing.
  Read tables(std::function<Keys()> each, std::function<std::string()> lacks) const {
    return [this, each = std::move(each), lacks = std::move(lacks)](
               const toml::node& node, const std::string& key) -> Status {
      if (!node.is_array_of_tables())
        return wrong(node, key, "an array of tables ([[" + key + "]])");
      for (const auto& entry : *node.as_array()) {
        const std::size_t before = faults_.size();
        ODT_TRY(table(*entry.as_table(), key, each()));
        const std::string what = faults_.size() == before ? lacks() : std::string();
        if (!what.empty())
          faults_.push_back(file_.fault(entry.source(), "a [[" + key + "]] without " + what,
                                        "add it, or remove the entry"));
      }
      return absl::OkStatus();
    };
  }

  Read text(std::string& to) const {
    return [this, &to](const toml::node& node, const std::string& key) -> Status {
      if (!node.is_string()) return wrong(node, key, "a string");
      to = **node.as_string();
      return absl::OkStatus();
    };
  }
  Read flag(bool& to) const {
    return [this, &to](const toml::node& node, const std::string& key) -> Status {
      if (!node.is_boolean()) return wrong(node, key, "true or false");
      to = **node.as_boolean();
      return absl::OkStatus();
    };
  }
  Read choice(std::optional<bool>& to) const {
    return [this, &to](const toml::node& node, const std::string& key) {
      return flag(to.emplace())(node, key);
    };
  }
  // A speed or several; 0 and none: the default list.
  Read bauds(std::vector<std::uint32_t>& to) const {
    return [this, &to](const toml::node& node, const std::string& key) -> Status {
      const auto one = [this, &to, &key](const toml::node& item) -> Status {
        std::uint32_t baud = 0;
        ODT_TRY(number(baud, 0, 12'000'000)(item, key));
        if (baud != 0) to.push_back(baud);
        return absl::OkStatus();
      };
      const auto* several = node.as_array();
      if (several == nullptr) return one(node);
      if (several->size() > 8)
        return file_.fault(node.source(), key + " has " + std::to_string(several->size()) +
                                              " speeds; at most 8 are tried");
      for (const auto& item : *several) ODT_TRY(one(item));
      return absl::OkStatus();
    };
  }
  // Of a value scaled by `unit`.
  template <typename T>
  Read number(T& to, std::int64_t low, std::int64_t high, std::uint64_t unit = 1) const {
    return [this, &to, low, high, unit](const toml::node& node, const std::string& key) -> Status {
      if (!node.is_integer()) return wrong(node, key, "a whole number");
      const std::int64_t value = **node.as_integer();
      if (value < low || value > high)
        return file_.fault(node.source(), key + " is " + std::to_string(value) + "; allowed " +
                                              std::to_string(low) + " to " + std::to_string(high));
      to = static_cast<T>(static_cast<std::uint64_t>(value) * unit);
      return absl::OkStatus();
    };
  }
  using Check = std::function<Status(const std::string&)>;
  Read texts(std::vector<std::string>& to, Check check = {}) const {
    return [this, &to, check = std::move(check)](const toml::node& node,
                                                 const std::string& key) -> Status {
      const auto* array = node.as_array();
      if (array == nullptr) return wrong(node, key, "an array of strings");
      for (const auto& item : *array) {
        if (!item.is_string()) return wrong(item, key, "an array of strings");
        to.push_back(**item.as_string());
        const Status fits = check ? check(to.back()) : absl::OkStatus();
        if (!fits.ok()) return file_.fault(item.source(), key + ": " + std::string(fits.message()));
      }
      return absl::OkStatus();
    };
  }
  // A string that `parse` takes.
  Read parsed(std::function<Status(const std::string&)> parse) const {
    return
        [this, parse = std::move(parse)](const toml::node& node, const std::string& key) -> Status {
          if (!node.is_string()) return wrong(node, key, "a string");
          const Status status = parse(**node.as_string());
          if (status.ok()) return status;
          return file_.fault(node.source(), key + ": " + std::string(status.message()));
        };
  }
  Read endpoint(Endpoint& to) const {
    return parsed([&to](const std::string& value) -> Status {
      ODT_ASSIGN(to, parse_endpoint(value));
      return absl::OkStatus();
    });
  }
  Read uid(BoardUid& to) const {
    return parsed([&to](const std::string& value) -> Status {
      ODT_ASSIGN(const Bytes raw, from_hex(value));
      ODT_ASSIGN(to, BoardUid::from_bytes({reinterpret_cast<const char*>(raw.data()), raw.size()}));
      return absl::OkStatus();
    });
  }

 private:
  Status unknown(const toml::source_region& where, const std::string& key, const Keys& keys) const {
    std::string names;
    for (const auto& [name, read] : keys) names += (names.empty() ? "" : ", ") + name;
    const std::string own = key.substr(key.rfind('.') + 1);
    std::string nearest;
    for (const auto& [name, read] : keys)
      if (edits_between(own, name) <= std::max<std::size_t>(1, name.size() / 3) &&
          (nearest.empty() || edits_between(own, name) < edits_between(own, nearest)))
        nearest = name;
    return file_.fault(where, "unknown key '" + key + "'; known here: " + names,
                       nearest.empty() ? "remove it" : "did you mean " + nearest + "?");
  }
  Status wrong(const toml::node& node, const std::string& key, const std::string& wanted) const {
    std::ostringstream got;
    if (node.is_value()) got << " (" << toml::node_view<const toml::node>{node} << ")";
    const bool quotes = wanted == "a string", bare = wanted == "a whole number";
    return file_.fault(
        node.source(),
        key + " is not " + wanted + ", but a" +
            (node.is_integer() || node.is_array() ? "n " : " ") + type_name(node) + got.str(),
        quotes ? "put it in quotes" : (bare ? "write digits alone, without quotes" : File::kOther));
  }
  static std::string type_name(const toml::node& node) {
    std::ostringstream name;
    name << node.type();
    return name.str();
  }

  File file_;
  mutable std::vector<Status> faults_;
};

Status check_level(const std::string& value) {
  for (const char* level : {"trace", "debug", "info", "warn", "error"})
    if (value == level) return absl::OkStatus();
  return absl::InvalidArgumentError("'" + value +
                                    "' is not one of trace, debug, info, warn, error");
}

Status check_host_port(const std::string& value) {
  const auto colon = value.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == value.size())
    return absl::InvalidArgumentError("'" + value + "' is not HOST:PORT");
  return absl::OkStatus();
}

Keys dial_keys(const Reader& r, Config& config) {
  auto& target = config.dial.emplace_back();
  return {{"address", r.parsed([&target](const std::string& value) {
             target.address = value;
             return check_host_port(value);
           })},
          {"expect_uid", r.uid(target.expect_uid)},
          {"tls", r.flag(target.tls)},
          {"tls_name", r.text(target.tls_name)},
          {"serial_line", r.flag(target.serial_line)}};
}

Keys serial_keys(const Reader& r, Config& config) {
  auto& rule = config.serial_allow.emplace_back();
  return {{"vid_pid", r.text(rule.vid_pid)},
          {"serial", r.text(rule.serial)},
          {"by_path", r.text(rule.by_path)},
          {"baud", r.bauds(rule.bauds)},
          {"expect_uid", r.uid(rule.expect_uid)},
          {"profile", r.parsed([&rule](const std::string& value) {
             rule.profile = value;
             return fleet::profile_lines(value).status();
           })},
          {"dtr", r.choice(rule.dtr)},
          {"rts", r.choice(rule.rts)},
          {"rts_cts", r.flag(rule.rts_cts)}};
}

Keys power_keys(const Reader& r, Config& config) {
  auto& profile = config.power.emplace_back();
  return {{"name", r.text(profile.name)},
          {"boards", r.texts(profile.boards)},
          {"command", r.texts(profile.argv)},
          {"uhubctl", r.parsed([&profile](const std::string& value) -> Status {
             ODT_ASSIGN(profile.argv, lab::uhubctl_command(value));
             return absl::OkStatus();
           })},
          {"timeout_s", r.number(profile.timeout_s, 1, 300)},
          {"automatic", r.flag(profile.automatic)},
          {"away_s", r.number(profile.away_s, 5, 86'400)}};
}

std::string power_lacks(const lab::PowerProfile& profile) {
  if (profile.name.empty()) return "name";
  return profile.argv.empty() ? "command or uhubctl" : "";
}

std::string allows_nothing(const fleet::SerialRule& rule) {
  const bool nothing = rule.vid_pid.empty() && rule.serial.empty() && rule.by_path.empty();
  return nothing ? "vid_pid, serial or by_path allows nothing" : "";
}

Keys alert_keys(const Reader& r, Config& c) {
  Keys keys{{"webhook_url", r.parsed([&c](const std::string& value) {
               c.webhook.url = value;
               return value.empty() ? absl::OkStatus() : alerts::check_webhook_url(value);
             })},
            {"webhook_token_file", r.text(c.webhook.token_file)},
            {"webhook_timeout_s", r.number(c.webhook.timeout_s, 1, 60)}};
  for (auto& rule : c.alert_rules) {
    const auto& info = *model::alert_rule_info(rule.rule);
    Keys own{{"enabled", r.flag(rule.enabled)}};
    if (*info.unit != '\0') own["threshold"] = r.number(rule.threshold, info.min, info.max);
    keys[info.name] = r.section(std::move(own));
  }
  return keys;
}

Keys client_keys(const Reader& r, Config& config) {
  auto& rule = config.auth_clients.emplace_back();
  return {{"cn", r.text(rule.cn)},
          {"actor", r.text(rule.actor)},
          {"role", r.parsed([&rule](const std::string& value) -> Status {
             ODT_ASSIGN(rule.role, api::parse_role(value));
             return absl::OkStatus();
           })}};
}

// What was once there: anybody in the network could have that role.
Status check_remote_role(const std::string& value) {
  ODT_ASSIGN(const api::Role role, api::parse_role(value));
  if (role == api::Role::kNone) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "callers from other machines need a token now (odtctl token add --role " + value +
      "); remove the line");
}

Keys root_keys(const Reader& r, Config& c) {
  constexpr std::int64_t kMega = 1 << 20;
  return {
      {"data_dir", r.text(c.data_dir)},
      {"web_dir", r.text(c.web_dir)},
      {"worker", r.text(c.worker)},
      {"log", r.section({{"level", r.parsed([&c](const std::string& value) {
                            c.log_level = value;
                            return check_level(value);
                          })},
                         {"file", r.text(c.log_file)}})},
      {"http", r.section({{"listen", r.endpoint(c.http)},
                          {"allowed_hosts", r.texts(c.allowed_hosts)},
                          {"allowed_origins", r.texts(c.allowed_origins)},
                          {"max_connections", r.number(c.max_connections, 8, 100'000)}})},
      {"grpc", r.section({{"listen", r.endpoint(c.grpc)},
                          {"socket", r.parsed([&c](const std::string& value) {
                             c.no_socket = value == "none";
                             c.socket = c.no_socket ? "" : value;
                             return absl::OkStatus();
                           })}})},
      {"access", r.section({{"remote_role", r.parsed(check_remote_role)}})},
      {"auth", r.section({{"required", r.choice(c.auth_required)},
                          {"client", r.tables([&r, &c] { return client_keys(r, c); },
                                              [&c] {
                                                return c.auth_clients.back().cn.empty() ? "cn" : "";
                                              })}})},
      {"audit", r.section({{"keep_days", r.number(c.audit.days, 1, 36'500)},
                           {"keep_entries", r.number(c.audit.most, 1000, 10'000'000)}})},
      {"tls", r.section({{"cert", r.text(c.server_tls.cert)},
                         {"key", r.text(c.server_tls.key)},
                         {"client_ca", r.text(c.server_tls.client_ca)}})},
      {"boards", r.section({{"listen", r.texts(c.listen,
                                               [](const std::string& value) {
                                                 return parse_listen(value).status();
                                               })},
                            {"insecure_tcp", r.flag(c.insecure_tcp)},
                            {"tls_cert", r.text(c.tls.cert)},
                            {"tls_key", r.text(c.tls.key)},
                            {"tls_client_ca", r.text(c.tls.peer_ca)},
                            {"tls_psk_file", r.text(c.tls.psk)}})},
      {"tcp", r.section({{"dial", r.tables([&r, &c] { return dial_keys(r, c); },
                                           [&c] {
                                             return c.dial.back().address.empty() ? "address" : "";
                                           })}})},
      {"serial",
       r.section({{"bauds", r.bauds(c.bauds)},
                  {"allow", r.tables([&r, &c] { return serial_keys(r, c); },
                                     [&c] { return allows_nothing(c.serial_allow.back()); })}})},
      {"power", r.tables([&r, &c] { return power_keys(r, c); },
                         [&c] { return power_lacks(c.power.back()); })},
      {"runs", r.section({{"resume_deadline_s", r.number(c.resume_deadline_s, 1, 31 * 86'400)}})},
      {"retention", r.section({{"snapshots_keep", r.number(c.snapshots_keep, 1, 1'000'000)},
                               {"snapshots_days", r.number(c.snapshots_days, 0, 36'500)}})},
      {"telemetry",
       r.section({{"quota_mb", r.number(c.telemetry_quota_bytes, 0, 1 << 24, kMega)}})},
      {"alerts", r.section(alert_keys(r, c))},
      {"uploads", r.section({{"max_mb", r.number(c.max_upload_bytes, 1, 1 << 20, kMega)}})},
      {"jobs", r.section({{"parallel", r.number(c.jobs_parallel, 1, 64)},
                          {"deadline_s", r.number(c.job_deadline_s, 1, 86'400)},
                          {"memory_mb", r.number(c.job_memory_bytes, 0, 1 << 20, kMega)}})},
  };
}

// Into what others have said before; adds the faults of keys and values.
Status read_into(const std::string& path, Config& config, std::vector<Status>& faults) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return with_reason(absl::NotFoundError("config file " + path + " is not there"), "CONFIG",
                       "name another, or copy the one of the package");
  try {
    const toml::table table = toml::parse_file(path);
    const Reader reader(path);
    ODT_TRY(reader.table(table, "", root_keys(reader, config)));
    const std::vector<Status> found = reader.faults();
    faults.insert(faults.end(), found.begin(), found.end());
    if (const Status power = lab::check_profiles(config.power); faults.empty() && !power.ok())
      faults.push_back(absl::InvalidArgumentError(path + ": " + std::string(power.message())));
    for (auto& rule : config.alert_rules) {
      rule.default_enabled = rule.enabled;
      rule.default_threshold = rule.threshold;
    }
    return absl::OkStatus();
  } catch (const toml::parse_error& bad) {
    return with_reason(
        absl::InvalidArgumentError(path + ":" + std::to_string(bad.source().begin.line) + ": " +
                                   std::string(bad.description())),
        "CONFIG", "correct the line; texts stand in quotes");
  }
}

}  // namespace

Result<Config> read_config(const std::string& path, std::vector<Status>& faults) {
  Config config;
  ODT_TRY(read_into(path, config, faults));
  std::vector<std::string> parts;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(path + ".d", error))
    if (entry.path().extension() == ".toml") parts.push_back(entry.path().string());
  if (error && error != std::errc::no_such_file_or_directory)
    return absl::PermissionDeniedError("config folder " + path + ".d: " + error.message());
  std::sort(parts.begin(), parts.end());
  for (const auto& part : parts) ODT_TRY(read_into(part, config, faults));
  return config;
}

Result<Config> load_config(const std::string& path) {
  std::vector<Status> faults;
  ODT_ASSIGN(Config config, read_config(path, faults));
  if (faults.empty()) return config;
  const std::size_t more = faults.size() - 1;
  if (more == 0) return faults.front();
  return with_reason(absl::InvalidArgumentError(std::string(faults.front().message()) + " (and " +
                                                std::to_string(more) + " more)"),
                     "CONFIG",
                     remedy_of(faults.front()) + "; all of them: odtd check-config " + path);
}

}  // namespace odt::app
