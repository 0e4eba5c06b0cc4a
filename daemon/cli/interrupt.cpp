#include "cli/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "cli/exit_code.h"

namespace odt::cli {
namespace {

sigset_t waited_for() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set, number);
  return set;
}

}  // namespace

void Interrupt::start() {
  const sigset_t set = waited_for();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  thread_ = std::thread([this, set] {
    while (true) {
      int number = 0;
      ::sigwait(&set, &number);
      if (ending_) return;
      if (number == SIGUSR1) continue;
      if (seen_) ::_exit(kExitInterrupted);
      raise();
    }
  });
}

Interrupt::~Interrupt() {
  if (!thread_.joinable()) return;
  ending_ = true;
  ::pthread_kill(thread_.native_handle(), SIGUSR1);
  thread_.join();
}

void Interrupt::raise() {
  std::lock_guard lock(mutex_);
  seen_ = true;
  changed_.notify_all();
  if (fn_) fn_();
}

bool Interrupt::wait(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return seen_.load(); });
}

void Interrupt::on_interrupt(std::function<void()> fn) {
  std::lock_guard lock(mutex_);
  fn_ = std::move(fn);
  if (seen_ && fn_) fn_();
}

}  // namespace odt::cli
