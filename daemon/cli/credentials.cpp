#include "cli/credentials.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/text.h"

namespace odt::cli {
namespace {

constexpr std::size_t kMostBytes = 1u << 20;

std::string env_text(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool is_there(const std::string& path) {
  return !path.empty() && ::access(path.c_str(), F_OK) == 0;
}

// secret: nobody else may read it.
Result<std::string> read_small(const std::string& path, bool secret) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return absl::NotFoundError(clean(path) + ": " + std::strerror(errno));
  if (secret && S_ISREG(info.st_mode) && (info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return with_reason(absl::PermissionDeniedError(clean(path) + " holds a secret that others may "
                                                                 "read"),
                       "SECRET_FILE_OPEN", "chmod 600 " + clean(path));
  std::ifstream in(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (!in || text.size() > kMostBytes)
    return absl::PermissionDeniedError(clean(path) + " cannot be read");
  return text;
}

Result<std::string> token_of(std::string text, const std::string& from) {
  text = text.substr(0, text.find_first_of("\r\n"));
  const bool good =
      !text.empty() && text.size() <= 256 &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > 0x20 && c < 0x7F; });
  if (good) return text;
  return absl::InvalidArgumentError(clean(from) + " holds no token; its first line is odt_...");
}

bool stays_here(const std::string& address) {
  if (address.starts_with("unix:")) return true;
  const std::string host = address.substr(0, address.rfind(':'));
  return host == "localhost" || host.starts_with("127.") || host == "[::1]";
}

}  // namespace

std::string login_folder(const std::string& address) {
  std::string base = env_text("XDG_CONFIG_HOME");
  if (base.empty() && !env_text("HOME").empty()) base = env_text("HOME") + "/.config";
  if (base.empty() || address.starts_with("unix:")) return {};
  std::string name = address;
  for (char& c : name)
    if (!(std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-')) c = '_';
  return base + "/odt/" + name;
}

Result<Credentials> choose_credentials(const std::string& address, const CredentialFiles& files) {
  Credentials out;
  const std::string folder = login_folder(address);
  std::string token_file = files.token, ca = files.ca.empty() ? env_text("ODT_CA") : files.ca;
  if (token_file.empty() && !env_text("ODT_TOKEN").empty()) {
    ODT_ASSIGN(out.token, token_of(env_text("ODT_TOKEN"), "$ODT_TOKEN"));
  } else if (token_file.empty() && !folder.empty() && is_there(folder + "/token")) {
    token_file = folder + "/token";
  }
  if (!token_file.empty()) {
    ODT_ASSIGN(const std::string text, read_small(token_file, true));
    ODT_ASSIGN(out.token, token_of(text, token_file));
  }
  if (ca.empty() && !folder.empty() && is_there(folder + "/ca.pem")) ca = folder + "/ca.pem";
  if (!ca.empty()) {
    ODT_ASSIGN(out.ca_pem, read_small(ca, false));
  }
  if (files.cert.empty() != files.key.empty())
    return absl::InvalidArgumentError("--cert and --key go together");
  if (!files.cert.empty()) {
    ODT_ASSIGN(out.cert_pem, read_small(files.cert, false));
    ODT_ASSIGN(out.key_pem, read_small(files.key, true));
  }
  if (!out.token.empty() && out.ca_pem.empty() && !stays_here(address))
    return with_reason(
        absl::FailedPreconditionError("the token would go to " + clean(address) + " in clear text"),
        "NOT_PROTECTED",
        "odtctl login " + clean(address) + " keeps odtd's certificate; or name it with --ca FILE");
  return out;
}

Status write_secret_file(const std::string& path, const std::string& content) {
  const auto fault = [&](const std::string& what) {
    return absl::FailedPreconditionError(clean(what) + ": " + std::strerror(errno));
  };
  const mode_t old = ::umask(077);
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  ::umask(old);
  const std::string fresh = path + ".new";
  ::unlink(fresh.c_str());
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return fault(fresh);
  std::size_t done = 0;
  while (done < content.size()) {
    const auto n = ::write(fd, content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    done += static_cast<std::size_t>(n);
  }
  const bool whole = done == content.size() && ::fsync(fd) == 0;
  if (::close(fd) != 0 || !whole || ::rename(fresh.c_str(), path.c_str()) != 0) {
    const Status status = fault(path);
    ::unlink(fresh.c_str());
    return status;
  }
  return {};
}

}  // namespace odt::cli
