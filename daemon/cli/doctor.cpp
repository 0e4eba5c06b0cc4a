#include "cli/doctor.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "base/device_holders.h"
#include "cli/text.h"

namespace odt::cli {
namespace {

namespace fs = std::filesystem;

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code ec;
  for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec))
    out.push_back(it->path());
  std::sort(out.begin(), out.end());
  return out;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

std::string process_name(const fs::path& process) {
  std::string name = content_of((process / "comm").string());
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

// Gid of a group by /etc/group; -1: there is none.
long group_id(const Places& places, const std::string& name) {
  const std::string content = content_of(places.root + "/etc/group");
  for (absl::string_view line : absl::StrSplit(content, '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, ':');
    if (parts.size() >= 3 && parts[0] == name && is_number(parts[2])) return std::stol(parts[2]);
  }
  return -1;
}

bool in_group(long gid) {
  if (gid < 0) return false;
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<std::size_t>(std::max(0, count)));
  groups.push_back(::getegid());
  return std::find(groups.begin(), groups.end(), static_cast<gid_t>(gid)) != groups.end();
}

}  // namespace

const char* word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "OK";
    case Verdict::kWarn:
      return "WARN";
    default:
      return "FAIL";
  }
}

Finding check_group(const Places& places) {
  Finding out{"group dialout", Verdict::kOk, "", ""};
  if (::geteuid() == 0) {
    out.text = "root may open serial ports";
    return out;
  }
  const long gid = group_id(places, "dialout");
  if (in_group(gid)) {
    out.text = "this user is in it";
    return out;
  }
  out.verdict = Verdict::kWarn;
  out.text = gid < 0 ? "there is no such group" : "this user is not in it";
  out.remedy =
      "only an odtd that this user starts needs it: sudo usermod -aG dialout $USER, then log in "
      "again";
  return out;
}

Finding check_modem_manager(const Places& places) {
  for (const fs::path& process : entries(places.root + "/proc"))
    if (is_number(process.filename().string()) && process_name(process) == "ModemManager")
      return {"ModemManager", Verdict::kWarn,
              "runs (pid " + process.filename().string() + ") and writes to new serial ports",
              "sudo systemctl disable --now ModemManager, or install the udev rules of odt-fleet, "
              "which tell it to leave boards alone"};
  return {"ModemManager", Verdict::kOk, "does not run", ""};
}

Finding check_udev_rules(const Places& places) {
  for (const char* folder : {"/etc/udev/rules.d", "/usr/lib/udev/rules.d", "/lib/udev/rules.d"})
    for (const fs::path& file : entries(places.root + folder))
      if (file.filename().string().find("odt-fleet") != std::string::npos)
        return {"udev rules", Verdict::kOk, file.filename().string(), ""};
  return {"udev rules", Verdict::kWarn, "those of odt-fleet are not installed",
          "sudo apt install ./odt-fleet.deb; needed only for boards on USB"};
}

Finding check_disk(const std::string& folder) {
  std::error_code ec;
  const fs::space_info space = fs::space(folder, ec);
  Finding out{"disk", Verdict::kOk, "", ""};
  if (ec) {
    out.verdict = Verdict::kWarn;
    out.text = clean(folder) + ": " + ec.message();
    out.remedy = "check data_dir in odtd.toml";
    return out;
  }
  out.text = absl::StrCat(size_text(space.available), " free at ", clean(folder));
  constexpr std::uintmax_t kFail = std::uintmax_t{256} << 20, kWarn = std::uintmax_t{2} << 30;
  if (space.available < kWarn) {
    out.verdict = space.available < kFail ? Verdict::kFail : Verdict::kWarn;
    out.remedy = "free space, or move data_dir to a larger disk";
  }
  return out;
}

std::vector<Finding> check_ports(const Places& places) {
  std::vector<Finding> out;
  const std::map<std::string, std::string> held = device_holders(places.root + "/proc");
  for (const fs::path& entry : entries(places.root + "/dev")) {
    const std::string name = entry.filename().string();
    if (!name.starts_with("ttyACM") && !name.starts_with("ttyUSB")) continue;
    Finding f{"port /dev/" + clean(name), Verdict::kOk, "free", ""};
    const auto holder = held.find("/dev/" + name);
    if (holder != held.end()) {
      const bool ours = holder->second.starts_with("odtd ");
      f.text = "held by " + clean(holder->second);
      f.verdict = ours ? Verdict::kOk : Verdict::kWarn;
      if (!ours) f.remedy = "end that program, or leave the port to it";
    } else if (::access(entry.c_str(), R_OK | W_OK) != 0) {
      f.verdict = Verdict::kWarn;
      f.text = "this user may not open it";
      f.remedy = "see group dialout";
    }
    out.push_back(std::move(f));
  }
  if (out.empty()) out.push_back({"serial ports", Verdict::kOk, "no USB serial port", ""});
  return out;
}

}  // namespace odt::cli
