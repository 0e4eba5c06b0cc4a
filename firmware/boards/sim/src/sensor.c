#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim.h"

/* A file in the place of a sensor, played at its rate; and one that stands for a button. */

enum { kFifoSteps = 1024 }; /* what waits for the firmware; older steps are lost */

static void die(const char* what, const char* path, const char* why) {
  fprintf(stderr, "odt-sim-board: --sensor %s: %s%s\n", path, what, why);
  exit(1);
}

void sensor_open(sim_sensor_t* v, const sim_options_t* o) {
  struct stat st;
  memset(v, 0, sizeof *v);
  if (o->sensor == NULL) return;
  const int fd = open(o->sensor, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &st) != 0) die("cannot open: ", o->sensor, strerror(errno));
  v->sensor.channels = (uint16_t)o->sensor_channels;
  v->sensor.dtype = o->sensor_dtype;
  v->sensor.rate_milli_hz = o->sensor_milli_hz;
  v->step_bytes = o->sensor_channels * (o->sensor_dtype == 3 ? 2u : 1u);
  v->steps = (uint64_t)st.st_size / v->step_bytes;
  v->once = o->sensor_once;
  if (v->steps == 0 || (uint64_t)st.st_size % v->step_bytes != 0) {
    die("its size is no whole number of time steps", o->sensor, "");
  }
  v->data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (v->data == MAP_FAILED) die("cannot read: ", o->sensor, strerror(errno));
  close(fd);
}

uint32_t sensor_read(sim_sensor_t* v, uint64_t now_us, void* out, uint32_t steps, uint32_t* lost) {
  if (v->begin_us == 0) v->begin_us = now_us;
  uint64_t due =
      (uint64_t)((unsigned __int128)(now_us - v->begin_us) * v->sensor.rate_milli_hz / 1000000000u);
  if (v->once && due > v->steps) due = v->steps;
  *lost = 0;
  if (due - v->taken > kFifoSteps) {
    *lost = (uint32_t)(due - v->taken - kFifoSteps);
    v->taken = due - kFifoSteps;
  }
  uint32_t n = 0;
  for (uint8_t* p = out; n < steps && v->taken < due; n++, p += v->step_bytes) {
    memcpy(p, v->data + v->taken++ % v->steps * v->step_bytes, v->step_bytes);
  }
  return n;
}

bool button_pressed(const sim_options_t* o) { return access(o->button, F_OK) == 0; }
