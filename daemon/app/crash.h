#pragma once

#include <string>
#include <string_view>

namespace odt::app {

// From now on a crash (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) leaves a report in
// DATA_DIR/crashes/TIME-PID.txt before the process dies of it as ever: version and build id of
// odtd, the signal, the address at fault, and addresses of the stack relative to their module, for
// addr2line. The handler allocates nothing and takes no lock. The newest 20 reports are kept.
void catch_crashes(const std::string& data_dir, const std::string& version);

// What reports say of the moment, one line such as "runs ab12.., cd34.."; at most 200 bytes of it.
// From one thread at a time.
void crash_context(std::string_view text);

// Build id of this executable, hex; empty: linked without.
std::string own_build_id();

}  // namespace odt::app
