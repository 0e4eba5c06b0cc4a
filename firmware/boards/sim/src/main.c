#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "sim.h"

static volatile sig_atomic_t g_stop; /* the one thing a signal handler may touch */
static void on_signal(int number) {
  (void)number;
  g_stop = 1;
}
static volatile sig_atomic_t g_tell;
static void on_tell(int number) {
  (void)number;
  g_tell = 1;
}

typedef struct {
  sim_board_t* board;
  uint64_t due_us;
} place_t;

/* Boards whose time has come within this are taken together: a thousand idle ones wake the process
 * a few times each 50 ms and not a thousand times. */
enum { kSlackUs = 2000 };

/* Waits until a board has something to do; marks those whose peer wrote. */
static void wait_for_work(place_t* places, struct pollfd* fds, uint32_t count) {
  uint64_t next = UINT64_MAX;
  for (uint32_t i = 0; i < count; i++) {
    const sim_board_t* b = places[i].board;
    fds[i] = (struct pollfd){.fd = board_fd(b),
                             .events = (short)(board_sends(b) ? POLLIN | POLLOUT : POLLIN)};
    if (places[i].due_us < next) next = places[i].due_us;
  }
  const uint64_t now = clock_us();
  const uint64_t left = next > now ? next - now : 0;
  const struct timespec limit = {.tv_sec = (time_t)(left / 1000000u),
                                 .tv_nsec = (long)(left % 1000000u * 1000u)};
  if (ppoll(fds, count, &limit, NULL) <= 0) return;
  for (uint32_t i = 0; i < count; i++) {
    if (fds[i].revents != 0) places[i].due_us = 0;
  }
}

/* What the boards have trained, for who measures: "steps TOTAL TIME_US". */
static void tell_steps(const place_t* places, uint32_t count) {
  g_tell = 0;
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; i++) total += board_steps(places[i].board);
  printf("steps %llu %llu\n", (unsigned long long)total, (unsigned long long)clock_us());
  fflush(stdout);
}

static void run(place_t* places, struct pollfd* fds, uint32_t count) {
  while (!g_stop) {
    if (g_tell) tell_steps(places, count);
    const uint64_t now = clock_us();
    const uint64_t soon = now + (count > 1 ? kSlackUs : 0);
    bool more = false;
    for (uint32_t i = 0; i < count; i++) {
      if (places[i].due_us > soon) continue;
      places[i].due_us = board_turn(places[i].board);
      more = more || places[i].due_us <= now;
    }
    if (!more) wait_for_work(places, fds, count);
  }
}

int main(int argc, char** argv) {
  sim_options_t options;
  sim_parse(argc, argv, &options);
  if (!options.detach) prctl(PR_SET_PDEATHSIG, SIGTERM);
  const struct sigaction stop = {.sa_handler = on_signal};
  sigaction(SIGTERM, &stop, NULL);
  sigaction(SIGINT, &stop, NULL);
  const struct sigaction tell = {.sa_handler = on_tell};
  sigaction(SIGUSR1, &tell, NULL);
  signal(SIGPIPE, SIG_IGN);
  struct rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  place_t* places = calloc(options.count, sizeof *places);
  struct pollfd* fds = calloc(options.count, sizeof *fds);
  if (places == NULL || fds == NULL) return 1;
  for (uint32_t i = 0; i < options.count; i++) {
    places[i].board = board_open(&options, i);
    if (places[i].board == NULL) return 1;
  }
  run(places, fds, options.count);
  for (uint32_t i = 0; i < options.count; i++) board_close(places[i].board);
  free(places);
  free(fds);
  return 0;
}
