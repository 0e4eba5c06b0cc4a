#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace odt::worker {

// "odt-worker import FILE... -o X.odtd": an import without a daemon, with its report on `out`.
// args: what stands behind "import". terminal: `log` is one, so progress is a bar there; else none.
// Exit code: 0, 1 (failed; one line in `log`, each file whole or as it was), 2 (usage).
int import_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& log,
                   bool terminal);

}  // namespace odt::worker
