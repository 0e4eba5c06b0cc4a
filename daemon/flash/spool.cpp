#include "flash/spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "flash/image.h"

namespace odt::flash {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMaxText = 16 << 10;

bool plain_id(const std::string& id) {
  return !id.empty() && id.size() <= 100 && std::all_of(id.begin(), id.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-';
  });
}

Status no_write(const std::string& path) {
  return with_reason(
      absl::FailedPreconditionError(path + " cannot be written: " + std::strerror(errno)), "SPOOL",
      "Look at the folder's owner and mode (systemd-tmpfiles --create), and at the disk.");
}

// New under a name that nobody can have laid there before, then in place.
Status write_whole(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  ::unlink(part.c_str());
  const int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
  if (file < 0) return no_write(part);
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(file, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  const bool whole = done == text.size() && ::fsync(file) == 0;
  const bool closed = ::close(file) == 0;
  if (whole && closed && ::rename(part.c_str(), path.c_str()) == 0) return absl::OkStatus();
  const Status status = no_write(path);
  ::unlink(part.c_str());
  return status;
}

std::optional<json> read_json(const std::string& path) {
  const auto text = read_regular(path, kMaxText, false);
  if (!text.ok()) return std::nullopt;
  json value = json::parse(*text, nullptr, false);
  if (!value.is_object()) return std::nullopt;
  return value;
}

std::string word(const json& from, const char* key) {
  const auto found = from.find(key);
  return found != from.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

Status Spool::prepare() {
  for (const char* part : {"requests", "firmware", "results"}) {
    std::error_code error;
    fs::create_directories(folder_ + "/" + part, error);
    if (error)
      return with_reason(absl::FailedPreconditionError("spool folder " + folder_ + "/" + part +
                                                       ": " + error.message()),
                         "SPOOL", "Make it, or give another with --spool.");
  }
  return absl::OkStatus();
}

Status Spool::put_request(const Request& request) {
  if (!plain_id(request.id)) return absl::InvalidArgumentError("id of a request: " + request.id);
  json out{{"profile", request.profile}, {"image", request.image}, {"format", request.format}};
  for (const auto& [name, value] : request.values) out["values"][name] = value;
  return write_whole(folder_ + "/requests/" + request.id + ".json", out.dump());
}

bool Spool::withdraw(const std::string& id) {
  return ::unlink((folder_ + "/requests/" + id + ".json").c_str()) == 0;
}

std::vector<Request> Spool::requests() {
  std::vector<Request> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_ + "/requests", error)) {
    if (entry.path().extension() != ".json") continue;
    Request request;
    request.id = entry.path().stem().string();
    const auto value = read_json(entry.path().string());
    if (!value || !plain_id(request.id)) {
      ::unlink(entry.path().c_str());
      continue;
    }
    request.profile = word(*value, "profile");
    request.image = word(*value, "image");
    request.format = word(*value, "format");
    const auto values = value->find("values");
    if (values != value->end() && values->is_object())
      for (const auto& [name, item] : values->items())
        if (item.is_string()) request.values[name] = item.get<std::string>();
    out.push_back(std::move(request));
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return out;
}

Status Spool::put_progress(const std::string& id, const Progress& progress) {
  static constexpr const char* kNames[] = {"writing", "done", "failed"};
  json out{{"state", kNames[static_cast<int>(progress.state)]},
           {"permille", progress.permille},
           {"line", progress.line},
           {"begun", progress.begun}};
  if (!progress.code.empty())
    out["error"] = {{"code", progress.code}, {"text", progress.text}, {"remedy", progress.remedy}};
  return write_whole(folder_ + "/results/" + id + ".json",
                     out.dump(-1, ' ', false, json::error_handler_t::replace));
}

std::optional<Progress> Spool::progress(const std::string& id) const {
  const auto value = read_json(folder_ + "/results/" + id + ".json");
  if (!value) return std::nullopt;
  Progress out;
  const std::string state = word(*value, "state");
  out.state = state == "done"     ? Progress::State::kDone
              : state == "failed" ? Progress::State::kFailed
                                  : Progress::State::kWriting;
  out.permille = std::min<std::uint32_t>(1000, value->value("permille", 0u));
  out.line = word(*value, "line");
  out.begun = value->value("begun", false);
  if (const auto error = value->find("error"); error != value->end() && error->is_object()) {
    out.code = word(*error, "code");
    out.text = word(*error, "text");
    out.remedy = word(*error, "remedy");
  }
  return out;
}

void Spool::forget(const std::string& id) {
  ::unlink((folder_ + "/results/" + id + ".json").c_str());
  ::unlink(log_path(id).c_str());
}

Status Spool::keep_image(const std::string& path, const std::string& hash) {
  if (::access(image_path(hash).c_str(), R_OK) == 0) return absl::OkStatus();
  ODT_ASSIGN(const std::string bytes, read_regular(path, kMaxImageBytes, true));
  if (sha256(bytes).hex() != hash)
    return absl::DataLossError("firmware image " + path + " has changed while it was read");
  return write_whole(image_path(hash), bytes);
}

std::vector<std::string> Spool::log_lines(const std::string& id, std::size_t most,
                                          std::uint64_t& first) const {
  std::vector<std::string> lines;
  std::ifstream file(log_path(id));
  std::string line;
  first = 0;
  while (std::getline(file, line)) {
    lines.push_back(line.substr(0, 1000));
    if (lines.size() <= most) continue;
    lines.erase(lines.begin());
    ++first;
  }
  return lines;
}

}  // namespace odt::flash
