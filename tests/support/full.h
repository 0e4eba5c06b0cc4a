// How often: everyday, or in a run of everything (tests/run.sh --full sets ODT_FULL=1).
#pragma once

#include <cstdlib>

namespace odt::test {

inline bool full_run() {
  const char* full = std::getenv("ODT_FULL");
  return full != nullptr && *full == '1';
}

template <typename T>
T repeats(T everyday, T full) {
  return full_run() ? full : everyday;
}

}  // namespace odt::test
