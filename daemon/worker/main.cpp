#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/std_output.h"
#include "data/dataset.h"
#include "odt/odt.h"
#include "worker/import_command.h"
#include "worker/job.h"
#include "worker/train_command.h"

namespace {

using nlohmann::json;

constexpr char kUsage[] =
    "usage: odt-worker JOB.json | import FILE... -o X.odtd [--help] | train X.odtd [--help] | "
    "--version\n";
constexpr std::uint64_t kMaxJobBytes = std::uint64_t{64} << 20;

std::string text_of(const json& j) {
  return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

void report(std::uint32_t permille, const std::string& message) {
  std::cout << text_of({{"progress", permille}, {"message", message}}) << std::endl;
}

std::string code_name(const odt::Status& status) { return absl::StatusCodeToString(status.code()); }

json outcome(const odt::Result<json>& result) {
  if (result.ok()) {
    json j = *result;
    j["ok"] = true;
    return j;
  }
  return {{"ok", false},
          {"error",
           {{"code", code_name(result.status())},
            {"message", std::string(result.status().message())}}}};
}

int run(const std::string& path) {
  auto bytes = odt::data::read_file(path, kMaxJobBytes);
  if (!bytes.ok()) {
    std::cerr << "odt-worker: " << bytes.status().message() << "\n";
    return 2;
  }
  const json job = json::parse(*bytes, nullptr, false);
  if (!job.is_object()) {
    std::cerr << "odt-worker: " << path << ": not a JSON object\n";
    return 2;
  }
  const auto slash = path.rfind('/');
  const std::string base = slash == std::string::npos ? "." : path.substr(0, slash);
  const auto result = odt::worker::run_job(job, base, report);
  const json out = outcome(result);
  std::string result_path;
  if (job.contains("result") && job["result"].is_string())
    result_path = job["result"].get<std::string>();
  result_path = odt::worker::job_path(result_path, base);
  if (!result_path.empty()) {
    if (auto st = odt::data::write_file(result_path, text_of(out) + "\n"); !st.ok()) {
      std::cerr << "odt-worker: " << st.message() << "\n";
      return 1;
    }
  } else {
    std::cout << text_of(out) << std::endl;
  }
  if (!result.ok()) std::cerr << "odt-worker: " << result.status().message() << "\n";
  return result.ok() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "train")
    return odt::worker::train_command({argv + 2, argv + argc}, std::cout, std::cerr,
                                      ::isatty(STDERR_FILENO) == 1);
  if (argc > 1 && std::string(argv[1]) == "import")
    return odt::worker::import_command({argv + 2, argv + argc}, std::cout, std::cerr,
                                       ::isatty(STDERR_FILENO) == 1);
  const std::string arg = argc == 2 ? argv[1] : "";
  if (arg == "--version") {
    std::cout << "odt-worker " ODT_VERSION " (rules_version " << ODT_RULES_VERSION << ")\n";
    return odt::finish_output("odt-worker", 0);
  }
  if (arg == "--help" || arg == "-h") {
    std::cout << kUsage << "kinds of jobs and their fields: daemon/worker/README.md\n";
    return odt::finish_output("odt-worker", 0);
  }
  if (arg.empty() || arg[0] == '-') {
    std::cerr << "odt-worker: " << (argc < 2 ? "what shall it do?" : "unknown arguments") << "\n"
              << kUsage;
    return 2;
  }
  return odt::finish_output("odt-worker", run(arg));
}
