#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"

/* A file in the place of an EEPROM: written in place, page by page, 0xFF where it was never
 * written. */

enum { kPage = 128 };

static void die(const char* what, const char* path) {
  fprintf(stderr, "odt-sim-board: --nvm %s: %s: %s\n", path, what, strerror(errno));
  exit(1);
}

static void fill(int fd, uint32_t from, uint32_t to, const char* path) {
  uint8_t erased[4096];
  memset(erased, 0xFF, sizeof erased);
  while (from < to) {
    const uint32_t n = to - from < sizeof erased ? to - from : (uint32_t)sizeof erased;
    if (pwrite(fd, erased, n, from) != (ssize_t)n) die("cannot write", path);
    from += n;
  }
}

void nvm_open(sim_nvm_t* v, const sim_options_t* o) {
  v->fd = -1;
  if (o->nvm == NULL) return;
  struct stat st;
  v->fd = open(o->nvm, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (v->fd < 0 || fstat(v->fd, &st) != 0) die("cannot open", o->nvm);
  if (flock(v->fd, LOCK_EX | LOCK_NB) != 0) die("another board has it", o->nvm);
  if (st.st_size != 0 && st.st_size != (off_t)o->nvm_bytes) {
    errno = EINVAL;
    die("has another size than --nvm-bytes: is it this board's memory?", o->nvm);
  }
  fill(v->fd, (uint32_t)st.st_size, o->nvm_bytes, o->nvm);
  v->page_us = o->nvm_page_us;
  v->memory = (hal_nvm_t){.size = o->nvm_bytes, .page = kPage, .write_us = o->nvm_page_us};
}

void nvm_close(sim_nvm_t* v) {
  if (v->fd >= 0) close(v->fd);
}

bool nvm_read(const sim_nvm_t* v, uint32_t at, uint8_t* out, uint32_t n) {
  return pread(v->fd, out, n, at) == (ssize_t)n;
}

bool nvm_write(const sim_nvm_t* v, uint32_t at, const uint8_t* data, uint32_t n) {
  const struct timespec page = {.tv_sec = v->page_us / 1000000u,
                                .tv_nsec = (long)(v->page_us % 1000000u) * 1000};
  if (n == 0 || at / kPage != (at + n - 1u) / kPage) return false;
  if (pwrite(v->fd, data, n, at) != (ssize_t)n) return false;
  if (v->page_us > 0) nanosleep(&page, NULL);
  return true;
}
