#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "app/app.h"
#include "sim.h"

enum { kPowerOn = 1, kRequested = 2, kWatchdog = 3 }; /* odt.device.v1.ResetReason */

struct sim_board {
  sim_options_t options;
  sim_port_t port;
  sim_wire_t rx, tx;
  sim_nvm_t nvm;
  sim_sensor_t sensor;
  app_t app;
  app_config_t config;
  char nvm_path[256], listen[256];
  uint64_t boot_us, seed, random;
  bool reset, busy, off, cut;
  uint64_t held_us, off_us, cut_us; /* up to which it stands still, is off, has no cable */
  uint64_t next_stall_us, next_busy_us, next_cut_us, next_reset_us, next_power_us;
  uint32_t steps_seen;
  uint64_t next_step_us; /* --step-period-ms */
};

/* A board that is later than this begins a new schedule. */
enum { kLatestUs = 10000000 };

uint64_t clock_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

static uint32_t sim_read(void* ctx, uint8_t* out, uint32_t capacity) {
  sim_board_t* b = ctx;
  const uint64_t now = clock_us();
  if (b->rx.plain) return port_read(&b->port, out, capacity, now);
  uint8_t data[512];
  for (;;) {
    uint32_t room = wire_room(&b->rx, now);
    if (room > sizeof data) room = sizeof data;
    const uint32_t n = room == 0 ? 0 : port_read(&b->port, data, room, now);
    if (n == 0) break;
    wire_put(&b->rx, data, n, now);
  }
  const uint32_t got = wire_peek(&b->rx, out, capacity, now);
  wire_take(&b->rx, got);
  return got;
}

static void flush_tx(sim_board_t* b, uint64_t now) {
  uint8_t data[512];
  uint32_t n;
  if (b->tx.plain) return;
  while ((n = wire_peek(&b->tx, data, sizeof data, now)) > 0) {
    const uint32_t sent = port_write(&b->port, data, n, now);
    if (sent == 0) return;
    wire_take(&b->tx, sent);
  }
}

static uint32_t sim_write(void* ctx, const uint8_t* data, uint32_t n) {
  sim_board_t* b = ctx;
  const uint64_t now = clock_us();
  if (b->tx.plain) return port_write(&b->port, data, n, now);
  const uint32_t room = wire_room(&b->tx, now);
  if (n > room) n = room;
  if (n > 0) wire_put(&b->tx, data, n, now);
  flush_tx(b, now);
  return n;
}

static uint64_t board_us(const sim_board_t* b) {
  const int64_t since = (int64_t)(clock_us() - b->boot_us);
  return (uint64_t)(since + since * b->options.drift_ppm / 1000000);
}
static uint32_t sim_us(void* ctx) { return (uint32_t)board_us(ctx); }
static uint32_t sim_ms(void* ctx) { return (uint32_t)(board_us(ctx) / 1000u); }
static uint64_t sim_entropy(void* ctx) { return ((sim_board_t*)ctx)->seed; }
static void sim_reset(void* ctx) { ((sim_board_t*)ctx)->reset = true; }

static bool sim_nvm_read(void* ctx, uint32_t at, uint8_t* out, uint32_t n) {
  return nvm_read(&((sim_board_t*)ctx)->nvm, at, out, n);
}
static bool sim_nvm_write(void* ctx, uint32_t at, const uint8_t* data, uint32_t n) {
  return nvm_write(&((sim_board_t*)ctx)->nvm, at, data, n);
}
static uint32_t sim_sensor(void* ctx, void* out, uint32_t steps, uint32_t* lost) {
  return sensor_read(&((sim_board_t*)ctx)->sensor, clock_us(), out, steps, lost);
}
static bool sim_button(void* ctx) { return button_pressed(&((sim_board_t*)ctx)->options); }

static void boot(sim_board_t* b, uint8_t reason) {
  hal_t hal = {.ctx = b,
               .uart_read = sim_read,
               .uart_write = sim_write,
               .now_ms = sim_ms,
               .now_us = sim_us,
               .entropy = sim_entropy,
               .reset = sim_reset};
  if (b->nvm.fd >= 0) {
    b->nvm.memory.read = sim_nvm_read;
    b->nvm.memory.write = sim_nvm_write;
    hal.nvm = &b->nvm.memory;
  }
  if (b->options.sensor != NULL) {
    b->sensor.sensor.read = sim_sensor;
    hal.sensor = &b->sensor.sensor;
  }
  if (b->options.button != NULL) hal.button = sim_button;
  b->config.reset_count = reason == kPowerOn ? 0 : b->config.reset_count + 1u;
  b->config.reset_reason = reason;
  b->boot_us = clock_us();
  b->reset = b->busy = false;
  b->held_us = 0;
  b->steps_seen = 0;
  app_init(&b->app, &b->config, &hal);
}

/* Is a fault of this period due? The boards of a fleet have theirs at different times. */
static bool due(sim_board_t* b, uint64_t* next_us, uint32_t every_ms, uint64_t now) {
  if (every_ms == 0 || now < *next_us) return false;
  const bool first = *next_us == 0;
  *next_us = now + every_ms * 1000ull;
  if (first) *next_us += b->random % (every_ms * 1000ull);
  return !first;
}

static void hang_up(sim_board_t* b, uint64_t now) {
  port_close(&b->port, now);
  wire_clear(&b->rx);
  wire_clear(&b->tx);
}

/* Cable, power and reset. False: the board is off. */
static bool life(sim_board_t* b, uint64_t now) {
  const sim_options_t* o = &b->options;
  if (due(b, &b->next_cut_us, o->cut_every_ms, now)) {
    hang_up(b, now);
    b->cut = true;
    b->cut_us = now + o->cut_ms * 1000ull;
  }
  if (b->cut && now >= b->cut_us) b->cut = false;
  if (due(b, &b->next_power_us, o->power_every_ms, now)) {
    hang_up(b, now);
    b->off = true;
    b->off_us = now + o->power_off_ms * 1000ull;
  }
  if (b->off && now < b->off_us) return false;
  if (b->off || b->reset || due(b, &b->next_reset_us, o->reset_every_ms, now)) {
    const uint8_t reason = b->off ? kPowerOn : b->reset ? kRequested : kWatchdog;
    b->off = false;
    b->seed = b->seed * 6364136223846793005u + 1442695040888963407u;
    boot(b, reason);
  }
  return true;
}

/* Faults that stop the whole board for a while. */
static void interruptions(sim_board_t* b, uint64_t now) {
  const sim_options_t* o = &b->options;
  if (due(b, &b->next_stall_us, o->stall_every_ms, now)) b->held_us = now + o->stall_ms * 1000ull;
  if (due(b, &b->next_busy_us, o->busy_every_ms, now) && b->app.link.session != 0) {
    app_busy(&b->app, o->busy_ms);
    app_poll(&b->app);
    b->busy = true;
    b->held_us = now + o->busy_ms * 1000ull;
  }
}

/* Streamed steps come from outside: the slow core stands still after each. */
static void slow_streamed_step(sim_board_t* b, uint64_t now) {
  const app_t* app = &b->app;
  if (b->options.step_delay_ms == 0 || !app->job.streamed || !app->job.has_last) return;
  const uint32_t steps = odt_trainer_step_count(&app->trainer);
  if (steps != b->steps_seen) b->held_us = now + b->options.step_delay_ms * 1000ull;
  b->steps_seen = steps;
}

uint32_t board_steps(const sim_board_t* b) {
  return b->app.job.has_last ? odt_trainer_step_count(&b->app.trainer) : 0;
}

/* One step each period, by a schedule that no delay moves. */
static void allow_step(sim_board_t* b, uint64_t now) {
  if (b->options.step_period_ms == 0) return;
  if (now > b->next_step_us + kLatestUs) b->next_step_us = now;
  b->config.step_delay_ms = now >= b->next_step_us ? 0 : UINT32_MAX;
  b->steps_seen = board_steps(b);
}
static void schedule_step(sim_board_t* b) {
  if (b->options.step_period_ms != 0 && board_steps(b) != b->steps_seen)
    b->next_step_us += b->options.step_period_ms * 1000ull;
}

static uint64_t earlier(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* When bytes on the way to the port are due; those that are and stay wait for room there, of which
 * board_sends() tells, and not for a time. */
static uint64_t tx_due(const sim_board_t* b, uint64_t now) {
  const uint64_t due_us = wire_due(&b->tx);
  return due_us > now ? due_us : UINT64_MAX;
}

static uint64_t next_turn(const sim_board_t* b, uint64_t now) {
  const sim_options_t* o = &b->options;
  uint64_t next = now + (b->port.fd >= 0 ? APP_IDLE_MS : 250u) * 1000u;
  if (o->sensor != NULL) next = earlier(next, now + 10000u); /* its steps do not wake the board */
  if (o->step_delay_ms > 0) next = earlier(next, now + o->step_delay_ms * 1000ull);
  if (o->step_period_ms > 0 && b->app.job.has_last && b->next_step_us > now)
    next = earlier(next, b->next_step_us);
  if (!b->rx.plain) {
    next = earlier(next, earlier(wire_due(&b->rx), tx_due(b, now)));
    const bool full = wire_room(&b->rx, now) == 0 || b->app.link.tx_size > 0;
    if (full) next = earlier(next, now + 500u);
  }
  return next;
}

uint64_t board_turn(sim_board_t* b) {
  const uint64_t now = clock_us();
  if (!life(b, now)) return b->off_us;
  if (!b->cut && port_poll(&b->port, now)) {
    wire_clear(&b->rx);
    wire_clear(&b->tx);
    app_link_reset(&b->app);
  }
  flush_tx(b, now);
  if (now < b->held_us) return b->tx.plain ? b->held_us : earlier(b->held_us, tx_due(b, now));
  if (b->busy) {
    app_busy_over(&b->app);
    b->busy = false;
  }
  interruptions(b, now);
  if (now < b->held_us) return b->held_us;
  allow_step(b, now);
  const bool more = app_poll(&b->app);
  schedule_step(b);
  slow_streamed_step(b, now);
  if (now < b->held_us) return b->held_us;
  return more || b->reset ? now : next_turn(b, now);
}

int board_fd(const sim_board_t* b) {
  const uint64_t now = clock_us();
  if (b->off || b->cut || now < b->held_us) return -1;
  if (b->port.fd < 0) return b->port.listener;
  return b->rx.plain || wire_room(&b->rx, now) > 0 ? b->port.fd : -1;
}

uint32_t board_opened(const sim_board_t* b) { return b->port.opened; }
void board_wake(sim_board_t* b) { b->port.empty = false; }

bool board_sends(const sim_board_t* b) {
  if (b->port.fd < 0) return false;
  return b->tx.plain ? b->app.link.tx_size > 0 : wire_due(&b->tx) <= clock_us();
}

/* The options of one board of several: uids count on, so do ports; each has its own memory. */
static void individual(sim_board_t* b, uint32_t number) {
  sim_options_t* o = &b->options;
  const bool twin = o->duplicate_uid && number + 1 == o->count;
  for (uint32_t i = o->uid_size, carry = twin ? 0 : number; i-- > 0 && carry > 0; carry >>= 8) {
    carry += o->uid[i];
    o->uid[i] = (uint8_t)carry;
  }
  if (o->nvm != NULL && o->count > 1) {
    snprintf(b->nvm_path, sizeof b->nvm_path, "%s.%u", o->nvm, number);
    o->nvm = b->nvm_path;
  }
  const char* colon = o->listen != NULL ? strrchr(o->listen, ':') : NULL;
  const char* port = colon != NULL ? colon + 1 : o->listen;
  if (o->listen != NULL && number > 0 && strcmp(port, "0") != 0) {
    snprintf(b->listen, sizeof b->listen, "%.*s%u", (int)(port - o->listen), o->listen,
             (unsigned)strtoul(port, NULL, 10) + number);
    o->listen = b->listen;
  }
}

sim_board_t* board_open(const sim_options_t* options, uint32_t number) {
  sim_board_t* b = calloc(1, sizeof *b);
  if (b == NULL) return NULL;
  b->options = *options;
  individual(b, number);
  const sim_options_t* o = &b->options;
  b->seed = o->boot_seed + number;
  if (!o->has_boot_seed && getrandom(&b->seed, sizeof b->seed, 0) != sizeof b->seed) exit(1);
  const uint64_t fault_seed = o->fault_seed * 1000003u + number;
  b->random = number == 0 ? 0 : fault_seed * 0x9E3779B97F4A7C15u >> 1;
  wire_init(&b->rx, o, fault_seed * 2u);
  wire_init(&b->tx, o, fault_seed * 2u + 1u);
  b->config = (app_config_t){.board = o->type,
                             .core = "host",
                             .uid = o->uid,
                             .uid_size = o->uid_size,
                             .extra_caps = o->busy_every_ms > 0 ? APP_CAP_BUSY : 0,
                             .max_poll_ms = 20,
                             .rx_window = 32768,
                             .arena = aligned_alloc(8, (o->ram + 7u) & ~7u),
                             .arena_size = o->ram & ~7u,
                             .epochs = calloc(o->epochs, sizeof(app_epoch_t)),
                             .epoch_bytes = o->epochs * (uint32_t)sizeof(app_epoch_t),
                             .epoch_capacity = o->epochs,
                             .step_delay_ms = o->step_delay_ms};
  if (b->config.arena == NULL || b->config.epochs == NULL || !wire_open(&b->rx) ||
      !wire_open(&b->tx)) {
    fprintf(stderr, "odt-sim-board: no memory for --ram %u\n", o->ram);
    exit(1);
  }
  nvm_open(&b->nvm, o);
  sensor_open(&b->sensor, o);
  port_open(&b->port, o);
  boot(b, kPowerOn);
  return b;
}

void board_close(sim_board_t* b) {
  port_close(&b->port, clock_us());
  nvm_close(&b->nvm);
  wire_close(&b->rx);
  wire_close(&b->tx);
  free(b->config.arena);
  free(b->config.epochs);
  free(b);
}
