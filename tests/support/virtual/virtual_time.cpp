#include "support/virtual/virtual_time.h"

#include <dlfcn.h>
#include <openssl/rand.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

// The functions below stand before those of the shared libraries for the whole program.
namespace odt::test {
namespace {

constexpr std::int64_t kSteadyStartUs = 1'000'000;
constexpr std::int64_t kWallStartUs = 1'700'000'000'000'000;

thread_local VirtualTime* t_time = nullptr;

template <typename F>
F* real(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

using EpollWait = int(int, epoll_event*, int, int);
int real_epoll(int fd, epoll_event* events, int size, int timeout) {
  static const auto function = real<EpollWait>("epoll_wait");
  return function(fd, events, size, timeout);
}

int pass_time(VirtualTime& time, int fd, epoll_event* events, int size, int timeout) {
  int n = real_epoll(fd, events, size, 0);
  if (n != 0) return n;
  if (time.settle) time.settle();
  n = real_epoll(fd, events, size, 0);
  if (n != 0) return n;
  const std::int64_t until =
      time.elapsed_us() + (timeout < 0 ? std::int64_t{300'000'000} : std::int64_t{timeout} * 1000);
  if (time.world)
    time.world(until);
  else
    time.set(until);
  return 0;
}

void fill(void* out, std::size_t size) {
  auto* bytes = static_cast<std::uint8_t*>(out);
  if (t_time == nullptr) {
    while (size != 0) {
      const ssize_t n = ::getrandom(bytes, size, 0);
      if (n <= 0) continue;
      bytes += n;
      size -= static_cast<std::size_t>(n);
    }
    return;
  }
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(t_time->random());
}

}  // namespace

VirtualTime::VirtualTime(std::uint64_t seed) : random_(seed) { t_time = this; }
VirtualTime::~VirtualTime() { t_time = nullptr; }

std::int64_t VirtualTime::now_us() const { return kWallStartUs + now_us_; }

std::chrono::steady_clock::time_point VirtualTime::at(std::int64_t us) const {
  return std::chrono::steady_clock::time_point(std::chrono::microseconds(kSteadyStartUs + us));
}

}  // namespace odt::test

extern "C" {

int clock_gettime(clockid_t id, struct timespec* out) noexcept {
  using odt::test::t_time;
  if (t_time != nullptr && (id == CLOCK_MONOTONIC || id == CLOCK_REALTIME)) {
    const std::int64_t us =
        t_time->elapsed_us() +
        (id == CLOCK_MONOTONIC ? odt::test::kSteadyStartUs : odt::test::kWallStartUs);
    out->tv_sec = us / 1'000'000;
    out->tv_nsec = us % 1'000'000 * 1000;
    return 0;
  }
  static const auto function = odt::test::real<int(clockid_t, struct timespec*)>("clock_gettime");
  return function(id, out);
}

int epoll_wait(int fd, struct epoll_event* events, int size, int timeout) {
  if (odt::test::t_time == nullptr || timeout == 0)
    return odt::test::real_epoll(fd, events, size, timeout);
  return odt::test::pass_time(*odt::test::t_time, fd, events, size, timeout);
}

// Asio keeps its timers in epoll_wait's time-out where there is no timerfd.
int timerfd_create(int id, int flags) noexcept {
  if (odt::test::t_time != nullptr) {
    errno = EINVAL;
    return -1;
  }
  static const auto function = odt::test::real<int(int, int)>("timerfd_create");
  return function(id, flags);
}

int RAND_bytes(unsigned char* out, int size) {
  odt::test::fill(out, static_cast<std::size_t>(size));
  return 1;
}
}

std::random_device::result_type std::random_device::_M_getval() {
  result_type value;
  odt::test::fill(&value, sizeof value);
  return value;
}
