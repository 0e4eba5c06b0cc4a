#pragma once

#include <cstdio>
#include <memory>
#include <random>
#include <string>

#include "session/link_runner.h"

namespace odt::bench {

class Host final : public session::LinkHost {
 public:
  bool on_session(const std::string&, std::shared_ptr<session::BoardSession> s) override {
    session = std::move(s);
    return true;
  }
  void on_port_state(const std::string&, model::PortState, const model::Reason&) override {}
  std::shared_ptr<session::BoardSession> session;
};

// Samples as the board checks them: header, labels, rows.
inline std::string samples_of(std::size_t bytes) {
  const std::uint32_t length = 196, count = static_cast<std::uint32_t>(bytes / (length + 1));
  std::string out("ODTS\1\0\1\0", 8);
  for (const std::uint32_t v : {count, length})
    for (int i = 0; i < 4; ++i) out += static_cast<char>(v >> (8 * i));
  out.append((count + 3) / 4 * 4, '\0');
  std::mt19937 random(1);
  for (std::size_t i = 0; i < std::size_t{count} * length; ++i) out += static_cast<char>(random());
  return out;
}

inline std::string read(const char* path) {
  std::string out;
  if (std::FILE* file = std::fopen(path, "rb")) {
    char buffer[4096];
    while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, file)) out.append(buffer, n);
    std::fclose(file);
  }
  return out;
}

}  // namespace odt::bench
