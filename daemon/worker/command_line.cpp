#include "worker/command_line.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <new>
#include <ostream>

namespace odt::worker {

Bar::~Bar() {
  if (terminal_) log_ << "\r\x1b[K" << std::flush;
}

void Bar::show(std::uint32_t permille, const std::string& message) {
  if (!terminal_) {
    if (elsewhere_ == Elsewhere::kLines) log_ << message << std::endl;
    return;
  }
  constexpr std::size_t kWidth = 24;
  const std::size_t full = std::min<std::size_t>(permille, 1000) * kWidth / 1000;
  log_ << "\r\x1b[K[" << std::string(full, '#') << std::string(kWidth - full, '.')
       << absl::StrFormat("] %3d %%  ", permille / 10) << message << std::flush;
}

int run_command(CLI::App& app, const std::vector<std::string>& args, std::ostream& out,
                std::ostream& log, const std::function<Status()>& command) {
  try {
    std::vector<std::string> reversed(args.rbegin(), args.rend());
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    out << app.help();
    return 0;
  } catch (const CLI::ParseError& e) {
    log << app.get_name() << ": " << e.what() << " (" << app.get_name() << " --help)\n";
    return 2;
  }
  Status status;
  try {
    status = command();
  } catch (const std::bad_alloc&) {
    status = absl::ResourceExhaustedError("more memory is needed than there is");
  }
  if (status.ok() && !out.flush())
    status = absl::UnavailableError("the output could not be written");
  if (status.ok()) return 0;
  log << app.get_name() << ": " << status.message() << "\n";
  return 1;
}

}  // namespace odt::worker
