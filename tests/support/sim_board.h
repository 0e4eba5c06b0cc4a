#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace odt::test {

// A process that ends with the test: killed in the destructor, and by the kernel if the test dies.
class ChildProcess {
 public:
  ChildProcess() = default;
  explicit ChildProcess(const std::vector<std::string>& argv);
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;

  bool running();
  void kill(int signal);
  // SIGKILL and wait.
  void end();
  pid_t pid() const { return pid_; }
  // One line of its standard output; empty after `timeout_ms` or at its end.
  std::string read_line(int timeout_ms);

 private:
  pid_t pid_ = -1;
  int out_ = -1;
  std::string pending_;
};

// Where odt-sim-board lies: $ODT_SIM_BOARD, or bin/ beside the test. Empty: not built.
std::string sim_board_binary();

// A free port of 127.0.0.1.
std::uint16_t free_port();

}  // namespace odt::test
