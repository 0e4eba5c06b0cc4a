#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "sim.h"

static void die(const char* what, const char* where) {
  fprintf(stderr, "odt-sim-board: %s %s: %s\n", what, where, strerror(errno));
  exit(1);
}

static void set_up(sim_port_t* p, int fd) {
  const int on = 1;
  p->fd = fd;
  p->empty = false;
  p->opened++;
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

/* "HOST:PORT" or "PORT" -> addresses; the caller frees. */
static struct addrinfo* resolve(const char* where, bool passive) {
  char host[256] = "127.0.0.1";
  const char* colon = strrchr(where, ':');
  const char* port = colon != NULL ? colon + 1 : where;
  if (colon != NULL) snprintf(host, sizeof host, "%.*s", (int)(colon - where), where);
  const struct addrinfo hints = {
      .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = passive ? AI_PASSIVE : 0};
  struct addrinfo* list = NULL;
  return getaddrinfo(host, port, &hints, &list) == 0 ? list : NULL;
}

static void print_listener(int fd) {
  struct sockaddr_storage a;
  socklen_t size = sizeof a;
  char host[64];
  char port[16];
  if (getsockname(fd, (struct sockaddr*)&a, &size) != 0 ||
      getnameinfo((struct sockaddr*)&a, size, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    die("cannot name", "listener");
  }
  printf("ready tcp:%s:%s\n", host, port);
}

static void open_listener(sim_port_t* p) {
  struct addrinfo* a = resolve(p->options->listen, true);
  const int on = 1;
  if (a == NULL) {
    errno = EINVAL;
    die("cannot understand --listen", p->options->listen);
  }
  p->listener = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (p->listener < 0) die("cannot listen on", p->options->listen);
  setsockopt(p->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(p->listener, a->ai_addr, a->ai_addrlen) != 0 || listen(p->listener, 4) != 0) {
    die("cannot listen on", p->options->listen);
  }
  freeaddrinfo(a);
  print_listener(p->listener);
}

static void open_pty(sim_port_t* p) {
  char name[256];
  int slave = -1;
  struct termios raw;
  if (openpty(&p->fd, &slave, name, NULL, NULL) != 0) die("cannot open", "a pty");
  tcgetattr(slave, &raw);
  cfmakeraw(&raw);
  tcsetattr(slave, TCSANOW, &raw);
  /* The slave stays open here: the pty outlives each program that opens it, as a plugged-in board
   * outlives the programs that talk to it. */
  fcntl(p->fd, F_SETFL, fcntl(p->fd, F_GETFL) | O_NONBLOCK);
  printf("ready %s\n", name);
}

void port_open(sim_port_t* p, const sim_options_t* o) {
  *p = (sim_port_t){
      .options = o, .listener = -1, .fd = -1, .random = o->fault_seed + 88172645463325252u};
  for (uint32_t i = 0; i < o->uid_size; i++) p->random = p->random * 31u + o->uid[i];
  if (o->listen != NULL) {
    open_listener(p);
  } else if (o->pty) {
    open_pty(p);
  } else {
    printf("ready dialing:%s\n", o->connect);
  }
  fflush(stdout);
}

static bool dial(sim_port_t* p, uint64_t now_us) {
  if (now_us < p->retry_us) return false;
  p->random = p->random * 6364136223846793005u + 1442695040888963407u;
  p->retry_us = now_us + 500000u + (p->random >> 33) % 3500000u;
  struct addrinfo* list = resolve(p->options->connect, false);
  for (const struct addrinfo* a = list; a != NULL; a = a->ai_next) {
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    const struct timeval limit = {.tv_sec = 2};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
      set_up(p, fd);
      break;
    }
    close(fd);
  }
  if (list != NULL) freeaddrinfo(list);
  return p->fd >= 0;
}

bool port_poll(sim_port_t* p, uint64_t now_us) {
  if (p->fd >= 0) return false;
  if (p->options->connect != NULL) return dial(p, now_us);
  if (p->listener < 0) return false;
  const int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return false;
  set_up(p, fd);
  return true;
}

void port_close(sim_port_t* p, uint64_t now_us) {
  if (p->options->pty || p->fd < 0) return;
  close(p->fd);
  p->fd = -1;
  if (p->retry_us < now_us) p->retry_us = now_us; /* dials at once after a connection that worked */
}

uint32_t port_read(sim_port_t* p, uint8_t* out, uint32_t capacity, uint64_t now_us) {
  if (p->fd < 0 || p->empty) return 0;
  const ssize_t n = read(p->fd, out, capacity);
  p->empty = n < 0 ? errno == EAGAIN : n > 0 && (uint32_t)n < capacity;
  if (n > 0) return (uint32_t)n;
  if (n == 0 || (errno != EAGAIN && errno != EINTR)) port_close(p, now_us);
  return 0;
}

uint32_t port_write(sim_port_t* p, const uint8_t* data, uint32_t n, uint64_t now_us) {
  if (p->fd < 0) return n; /* nobody listens: the bytes are lost, as on a wire */
  const ssize_t sent = p->options->pty ? write(p->fd, data, n) : send(p->fd, data, n, MSG_NOSIGNAL);
  if (sent >= 0) return (uint32_t)sent;
  if (errno == EAGAIN || errno == EINTR) return 0;
  port_close(p, now_us);
  return n;
}
