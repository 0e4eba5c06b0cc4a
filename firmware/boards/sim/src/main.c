#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "app/app.h"
#include "sim.h"

typedef struct {
  sim_options_t options;
  sim_port_t port;
  sim_faults_t faults;
  sim_nvm_t nvm;
  sim_sensor_t sensor;
  uint64_t boot_us;
  uint64_t seed;
  bool reset;
  uint64_t next_stall_us, next_busy_us;
} sim_t;

static volatile sig_atomic_t g_stop; /* the one thing a signal handler may touch */
static void on_signal(int number) {
  (void)number;
  g_stop = 1;
}

static uint64_t clock_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static uint32_t sim_read(void* ctx, uint8_t* out, uint32_t capacity) {
  sim_t* s = ctx;
  const uint64_t now = clock_us();
  const uint32_t room = faults_room(&s->faults, &s->faults.rx_us, now);
  if (room == 0) return 0;
  for (;;) {
    const uint32_t n = port_read(&s->port, out, room < capacity ? room : capacity, now);
    if (n == 0) return 0;
    faults_book(&s->faults, &s->faults.rx_us, now, n);
    const uint32_t kept = faults_apply(&s->faults, out, n);
    if (kept > 0) return kept;
  }
}

static uint32_t sim_write(void* ctx, const uint8_t* data, uint32_t n) {
  sim_t* s = ctx;
  uint8_t copy[256];
  const uint64_t now = clock_us();
  const uint32_t room = faults_room(&s->faults, &s->faults.tx_us, now);
  if (n > room) n = room;
  if (s->faults.drop_ppm == 0 && s->faults.corrupt_ppm == 0) {
    const uint32_t sent = port_write(&s->port, data, n, now);
    faults_book(&s->faults, &s->faults.tx_us, now, sent);
    return sent;
  }
  if (n > sizeof copy) n = sizeof copy;
  memcpy(copy, data, n);
  const uint32_t kept = faults_apply(&s->faults, copy, n);
  /* A short write below would need the fault's history; what does not fit is lost, as a fault. */
  port_write(&s->port, copy, kept, now);
  faults_book(&s->faults, &s->faults.tx_us, now, n);
  return n;
}

static uint32_t sim_us(void* ctx) { return (uint32_t)(clock_us() - ((sim_t*)ctx)->boot_us); }
static uint32_t sim_ms(void* ctx) {
  return (uint32_t)((clock_us() - ((sim_t*)ctx)->boot_us) / 1000u);
}
static uint64_t sim_entropy(void* ctx) { return ((sim_t*)ctx)->seed; }
static void sim_reset(void* ctx) { ((sim_t*)ctx)->reset = true; }

static bool sim_nvm_read(void* ctx, uint32_t at, uint8_t* out, uint32_t n) {
  return nvm_read(&((sim_t*)ctx)->nvm, at, out, n);
}
static bool sim_nvm_write(void* ctx, uint32_t at, const uint8_t* data, uint32_t n) {
  return nvm_write(&((sim_t*)ctx)->nvm, at, data, n);
}

static uint32_t sim_sensor(void* ctx, void* out, uint32_t steps, uint32_t* lost) {
  return sensor_read(&((sim_t*)ctx)->sensor, clock_us(), out, steps, lost);
}
static bool sim_button(void* ctx) { return button_pressed(&((sim_t*)ctx)->options); }

static void sleep_us(uint64_t us) {
  const struct timespec t = {.tv_sec = (time_t)(us / 1000000u),
                             .tv_nsec = (long)(us % 1000000u * 1000u)};
  nanosleep(&t, NULL);
}

/* Faults that stop the whole board. */
static void interruptions(sim_t* s, app_t* app) {
  const sim_options_t* o = &s->options;
  const uint64_t now = clock_us();
  if (o->stall_every_ms > 0 && now >= s->next_stall_us) {
    if (s->next_stall_us > 0) sleep_us(o->stall_ms * 1000ull);
    s->next_stall_us = clock_us() + o->stall_every_ms * 1000ull;
  }
  if (o->busy_every_ms > 0 && now >= s->next_busy_us) {
    if (s->next_busy_us > 0 && app->link.session != 0) {
      app_busy(app, o->busy_ms);
      app_poll(app);
      sleep_us(o->busy_ms * 1000ull);
      app_busy_over(app);
    }
    s->next_busy_us = clock_us() + o->busy_every_ms * 1000ull;
  }
}

static void wait_for_work(const sim_t* s, const app_t* app) {
  struct pollfd fds[2];
  nfds_t n = 0;
  const bool tx = app->link.tx_size > 0;
  if (s->port.fd >= 0) {
    fds[n++] = (struct pollfd){.fd = s->port.fd, .events = (short)(tx ? POLLIN | POLLOUT : POLLIN)};
  } else if (s->port.listener >= 0) {
    fds[n++] = (struct pollfd){.fd = s->port.listener, .events = POLLIN};
  }
  int timeout = s->port.fd >= 0 ? (int)APP_IDLE_MS : 250;
  if (s->options.sensor != NULL) timeout = 10; /* its steps do not wake the poll */
  const uint32_t delay = s->options.step_delay_ms;
  if (delay > 0 && delay < (uint32_t)timeout) timeout = (int)delay;
  if (s->options.baud > 0) {
    sleep_us(500); /* a paced line is not ready when its socket is */
    timeout = 2;
    if (tx) return;
  }
  poll(fds, n, timeout);
}

static void boot(sim_t* s, app_t* app, const app_config_t* config) {
  static const hal_t kHal = {.uart_read = sim_read,
                             .uart_write = sim_write,
                             .now_ms = sim_ms,
                             .now_us = sim_us,
                             .entropy = sim_entropy,
                             .reset = sim_reset};
  hal_t hal = kHal;
  hal.ctx = s;
  if (s->nvm.fd >= 0) {
    s->nvm.memory.read = sim_nvm_read;
    s->nvm.memory.write = sim_nvm_write;
    hal.nvm = &s->nvm.memory;
  }
  if (s->options.sensor != NULL) {
    s->sensor.sensor.read = sim_sensor;
    hal.sensor = &s->sensor.sensor;
  }
  if (s->options.button != NULL) hal.button = sim_button;
  s->boot_us = clock_us();
  s->reset = false;
  app_init(app, config, &hal);
}

/* Streamed steps come from outside: the slow core sleeps after each. */
static void slow_streamed_step(const sim_t* s, const app_t* app, uint32_t* steps_seen) {
  if (s->options.step_delay_ms == 0 || !app->job.streamed || !app->job.has_last) return;
  const uint32_t steps = odt_trainer_step_count(&app->trainer);
  if (steps != *steps_seen) sleep_us(s->options.step_delay_ms * 1000ull);
  *steps_seen = steps;
}

static void run(sim_t* s, app_t* app, app_config_t* config) {
  uint32_t steps_seen = 0;
  boot(s, app, config);
  while (!g_stop) {
    if (port_poll(&s->port, clock_us())) app_link_reset(app);
    interruptions(s, app);
    const bool more = app_poll(app);
    slow_streamed_step(s, app, &steps_seen);
    if (s->reset) {
      config->reset_count++;
      config->reset_reason = 2; /* requested */
      boot(s, app, config);
    } else if (!more) {
      wait_for_work(s, app);
    }
  }
}

int main(int argc, char** argv) {
  sim_t* s = calloc(1, sizeof *s);
  app_t* app = calloc(1, sizeof *app);
  if (s == NULL || app == NULL) return 1;
  sim_options_t* o = &s->options;
  sim_parse(argc, argv, o);
  if (!o->detach) prctl(PR_SET_PDEATHSIG, SIGTERM);
  const struct sigaction stop = {.sa_handler = on_signal};
  sigaction(SIGTERM, &stop, NULL);
  sigaction(SIGINT, &stop, NULL);
  signal(SIGPIPE, SIG_IGN);
  s->seed = o->boot_seed;
  if (!o->has_boot_seed && getrandom(&s->seed, sizeof s->seed, 0) != sizeof s->seed) return 1;

  app_config_t config = {.board = o->type,
                         .core = "host",
                         .uid = o->uid,
                         .uid_size = o->uid_size,
                         .reset_reason = 1, /* power on */
                         .extra_caps = o->busy_every_ms > 0 ? APP_CAP_BUSY : 0,
                         .max_poll_ms = 20,
                         .rx_window = 32768,
                         .arena = aligned_alloc(8, (o->ram + 7u) & ~7u),
                         .arena_size = o->ram & ~7u,
                         .epochs = calloc(o->epochs, sizeof(app_epoch_t)),
                         .epoch_bytes = o->epochs * (uint32_t)sizeof(app_epoch_t),
                         .epoch_capacity = o->epochs,
                         .step_delay_ms = o->step_delay_ms};
  if (config.arena == NULL || config.epochs == NULL) {
    fprintf(stderr, "odt-sim-board: no memory for --ram %u\n", o->ram);
    return 1;
  }
  faults_init(&s->faults, o);
  nvm_open(&s->nvm, o);
  sensor_open(&s->sensor, o);
  port_open(&s->port, o);
  run(s, app, &config);
  port_close(&s->port, clock_us());
  nvm_close(&s->nvm);
  free(config.arena);
  free(config.epochs);
  free(app);
  free(s);
  return 0;
}
