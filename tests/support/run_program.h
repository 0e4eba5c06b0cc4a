#pragma once

#include <stdio.h>
#include <sys/wait.h>

#include <fstream>
#include <sstream>
#include <string>

// Programs as a person runs them, and the files that they write.
namespace odt::test {

struct Output {
  int code = -1;
  std::string text;  // standard output and error
};

inline Output run(const std::string& command) {
  Output out;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "re");
  if (pipe == nullptr) return out;
  char buffer[4096];
  while (const std::size_t n = ::fread(buffer, 1, sizeof buffer, pipe)) out.text.append(buffer, n);
  const int status = ::pclose(pipe);
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return out;
}

inline std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

}  // namespace odt::test
