#include "worker/command_line.h"

#include <new>
#include <ostream>

#include "base/std_output.h"

namespace odt::worker {

int run_command(CLI::App& app, const std::vector<std::string>& args, std::ostream& out,
                std::ostream& log, const std::function<Status()>& command) {
  try {
    std::vector<std::string> reversed(args.rbegin(), args.rend());
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    out << app.help();
    return finish_output(app.get_name().c_str(), 0, out, log);
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
  if (status.ok()) return finish_output(app.get_name().c_str(), 0, out, log);
  log << app.get_name() << ": " << status.message() << "\n";
  return 1;
}

}  // namespace odt::worker
