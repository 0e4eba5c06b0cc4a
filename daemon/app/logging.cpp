#include "app/logging.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

#include "api/errors.h"

namespace odt::app {
namespace {

constexpr std::size_t kFileBytes = 10u << 20;
constexpr std::size_t kFiles = 5;

void log_of_grpc(gpr_log_func_args* line) {
  const std::string text = api::clean_text(line->message);
  switch (line->severity) {
    case GPR_LOG_SEVERITY_ERROR:
      spdlog::error("grpc: {}", text);
      break;
    case GPR_LOG_SEVERITY_INFO:
      spdlog::info("grpc: {}", text);
      break;
    default:
      spdlog::debug("grpc: {}", text);
  }
}

// Protobuf complains on stderr about every payload it cannot parse; a board may send any number of
// them, and who decodes it handles the error.
void log_of_protobuf(google::protobuf::LogLevel, const char*, int, const std::string& text) {
  spdlog::debug("protobuf: {}", api::clean_text(text));
}

}  // namespace

Status start_logging(const Config& config) {
  std::vector<spdlog::sink_ptr> sinks{std::make_shared<spdlog::sinks::stderr_color_sink_mt>()};
  if (!config.log_file.empty()) {
    try {
      sinks.push_back(std::make_shared<spdlog::sinks::rotating_file_sink_mt>(config.log_file,
                                                                             kFileBytes, kFiles));
    } catch (const spdlog::spdlog_ex& error) {
      return absl::InvalidArgumentError("log file " + config.log_file + ": " + error.what());
    }
  }
  auto logger = std::make_shared<spdlog::logger>("odtd", sinks.begin(), sinks.end());
  logger->set_level(
      spdlog::level::from_str(config.log_level == "warn" ? "warning" : config.log_level));
  logger->flush_on(spdlog::level::info);
  // The journal stamps its lines itself.
  const bool journal = std::getenv("JOURNAL_STREAM") != nullptr;
  logger->set_pattern(journal ? "%l %v" : "%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
  spdlog::set_default_logger(std::move(logger));
  google::protobuf::SetLogHandler(log_of_protobuf);
  gpr_set_log_function(log_of_grpc);
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  return absl::OkStatus();
}

void log_line(int level, const std::string& text) {
  spdlog::log(static_cast<spdlog::level::level_enum>(level), "{}", text);
}

}  // namespace odt::app
