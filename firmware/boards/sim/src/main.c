#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

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
  int fd; /* as the poller knows it; -1: not at all */
  uint32_t opened, events;
} place_t;

/* Boards whose time has come within this are taken together: a thousand idle ones wake the process
 * a few times each 50 ms and not a thousand times. */
enum { kSlackUs = 2000, kEventsAtOnce = 256 };

/* After a turn: what the board now waits for. A connection that it closed has left the poller. */
static void watch(int poller, place_t* p, uint32_t number) {
  const int fd = board_fd(p->board);
  const uint32_t opened = board_opened(p->board);
  struct epoll_event e = {.events = board_sends(p->board) ? EPOLLIN | EPOLLOUT : EPOLLIN,
                          .data.u32 = number};
  if (p->fd == fd && p->opened == opened && p->events == e.events) return;
  if (p->fd >= 0 && p->fd != fd) epoll_ctl(poller, EPOLL_CTL_DEL, p->fd, NULL);
  if (fd >= 0 && epoll_ctl(poller, EPOLL_CTL_MOD, fd, &e) != 0)
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e);
  p->fd = fd;
  p->opened = opened;
  p->events = e.events;
}

/* Waits until a board has something to do; marks those whose peer wrote. */
static void wait_for_work(int poller, place_t* places, uint32_t count) {
  uint64_t next = UINT64_MAX;
  for (uint32_t i = 0; i < count; i++) {
    if (places[i].due_us < next) next = places[i].due_us;
  }
  const uint64_t now = clock_us();
  const uint64_t left = next > now ? next - now : 0;
  const struct timespec limit = {.tv_sec = (time_t)(left / 1000000u),
                                 .tv_nsec = (long)(left % 1000000u * 1000u)};
  struct epoll_event events[kEventsAtOnce];
  const int n = epoll_pwait2(poller, events, kEventsAtOnce, &limit, NULL);
  for (int i = 0; i < n; i++) {
    place_t* p = &places[events[i].data.u32];
    p->due_us = 0;
    board_wake(p->board);
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

static void run(int poller, place_t* places, uint32_t count) {
  while (!g_stop) {
    if (g_tell) tell_steps(places, count);
    const uint64_t now = clock_us();
    const uint64_t soon = now + (count > 1 ? kSlackUs : 0);
    bool more = false;
    for (uint32_t i = 0; i < count; i++) {
      if (places[i].due_us > soon) continue;
      places[i].due_us = board_turn(places[i].board);
      watch(poller, &places[i], i);
      more = more || places[i].due_us <= now;
    }
    if (!more) wait_for_work(poller, places, count);
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
  const int poller = epoll_create1(EPOLL_CLOEXEC);
  if (places == NULL || poller < 0) return 1;
  for (uint32_t i = 0; i < options.count; i++) {
    places[i].board = board_open(&options, i);
    if (places[i].board == NULL) return 1;
    places[i].fd = -1;
  }
  run(poller, places, options.count);
  for (uint32_t i = 0; i < options.count; i++) board_close(places[i].board);
  free(places);
  close(poller);
  return 0;
}
