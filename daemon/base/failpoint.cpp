#include "base/failpoint.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

namespace odt {
namespace {

struct Failpoint {
  std::string name;
  long count = 1;
  bool set = false;
};

Failpoint from_environment() {
  Failpoint out;
  const char* const text = std::getenv("ODT_FAILPOINT");
  if (text == nullptr) return out;
  out.name = text;
  const std::size_t colon = out.name.find(':');
  if (colon != std::string::npos) {
    out.count = std::strtol(text + colon + 1, nullptr, 10);
    out.name.resize(colon);
  }
  out.set = true;
  return out;
}

}  // namespace

void fail_here(const char* name) {
  static const Failpoint point = from_environment();
  static std::atomic<long> passed{0};
  if (point.set && point.name == name && ++passed == point.count) ::_exit(137);
}

}  // namespace odt
