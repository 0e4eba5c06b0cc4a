#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "api/errors.h"
#include "app/config.h"
#include "app/exposure.h"

// odtd check-config: every fault at once, before the daemon is started again with the file.
namespace odt::app {
namespace {

constexpr char kInstalled[] = "/etc/odt-fleet/odtd.toml";

void tell(const Status& fault) {
  const std::string remedy = remedy_of(fault);
  std::fprintf(stderr, "%s\n", api::message_of(fault).c_str());
  if (!remedy.empty()) std::fprintf(stderr, "  what to do: %s\n", api::clean_text(remedy).c_str());
}

Status lacks(const std::string& file, const std::string& key, const std::string& path,
             const std::string& what, const std::string& remedy) {
  return with_reason(absl::InvalidArgumentError(file + ": " + key + " = \"" + path + "\": " + what),
                     "CONFIG", remedy);
}

// What the file names must be there for whoever runs odtd.
std::vector<Status> missing_files(const std::string& file, const Config& config) {
  std::vector<Status> out;
  const auto wanted = [&](const std::string& key, const std::string& path, int mode) {
    if (path.empty() || ::access(path.c_str(), mode) == 0) return;
    const bool there = ::access(path.c_str(), F_OK) == 0;
    const bool program = mode == X_OK;
    out.push_back(lacks(
        file, key, path, there ? (program ? "is no program" : "cannot be read") : "is not there",
        there ? "give the user of odtd the right to it" : "correct the path, or remove the line"));
  };
  wanted("worker", config.worker, X_OK);
  wanted("web_dir", config.web_dir, R_OK);
  wanted("boards.tls_cert", config.tls.cert, R_OK);
  wanted("boards.tls_key", config.tls.key, R_OK);
  wanted("boards.tls_client_ca", config.tls.peer_ca, R_OK);
  wanted("boards.tls_psk_file", config.tls.psk, R_OK);
  if (!config.server_tls.empty())
    if (const auto tls = auth::read_server_tls(config.server_tls); !tls.ok())
      out.push_back(tls.status());
  wanted("alerts.webhook_token_file", config.webhook.token_file, R_OK);
  const std::string folder = std::filesystem::path(config.log_file).parent_path().string();
  if (!folder.empty() && ::access(folder.c_str(), F_OK) != 0)
    out.push_back(lacks(file, "log.file", config.log_file, "its folder is not there",
                        "make the folder, or remove the line: the journal has every line"));
  return out;
}

}  // namespace

int check_config(int argc, const char* const* argv) {
  const std::string first = argc > 2 ? argv[2] : kInstalled;
  if (argc > 3 || first.starts_with("-")) {
    const bool help = first == "--help" || first == "-h";
    std::fprintf(help ? stdout : stderr,
                 "usage: odtd check-config [FILE]\n"
                 "Says every fault of a configuration file (default: %s) and what to do about it.\n"
                 "Exit code: 0 valid, 1 no such file, 2 faults.\n",
                 kInstalled);
    return help ? 0 : 2;
  }
  std::vector<Status> faults;
  Result<Config> config = read_config(first, faults);
  if (config.ok()) {
    if (Status exposed = check_exposure(*config); faults.empty() && !exposed.ok())
      faults.push_back(std::move(exposed));
    for (Status& fault : missing_files(first, *config)) faults.push_back(std::move(fault));
  } else {
    faults.push_back(config.status());
  }
  for (const Status& fault : faults) tell(fault);
  if (absl::IsNotFound(config.status())) return 1;
  if (!faults.empty()) {
    std::fprintf(stderr, "%s: %zu fault%s\n", first.c_str(), faults.size(),
                 faults.size() == 1 ? "" : "s");
    return 2;
  }
  std::printf("%s: valid\n", first.c_str());
  return 0;
}

}  // namespace odt::app
