/* Between the sources of the simulator board. */
#ifndef ODT_SIM_H
#define ODT_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "hal/hal.h"

/* ---- options.c ---- */
/* Per mille of the frames, both directions; each frame has one fate. */
typedef struct {
  uint32_t drop, flip, burst, truncate, duplicate, garbage, delay;
} sim_fates_t;

typedef struct {
  uint32_t count;     /* boards of this process */
  bool duplicate_uid; /* the last board has the first one's uid */
  uint8_t uid[16];
  uint8_t uid_size;
  const char* type;
  const char* listen;  /* port, or host:port */
  const char* connect; /* host:port */
  bool pty;
  bool detach; /* outlives its parent */
  uint32_t ram;
  uint32_t epochs;
  bool has_boot_seed;
  uint64_t boot_seed;
  uint32_t step_delay_ms, step_period_ms;
  uint32_t baud; /* paces both directions; 0: no limit */
  uint64_t fault_seed;
  uint32_t drop_ppm, corrupt_ppm; /* of bytes, both directions */
  uint32_t stall_every_ms, stall_ms;
  uint32_t busy_every_ms, busy_ms;
  sim_fates_t fates;
  uint32_t delay_ms;   /* how long a delayed frame holds the line up */
  uint32_t one_way_ms; /* of every byte */
  uint32_t cut_every_ms, cut_ms, reset_every_ms, power_every_ms, power_off_ms;
  int32_t drift_ppm; /* of the board's clock */
  const char* nvm;   /* file of the non-volatile memory; NULL: none */
  uint32_t nvm_bytes, nvm_page_us;
  const char* sensor; /* file of its time steps; NULL: no sensor */
  uint32_t sensor_channels, sensor_milli_hz;
  uint8_t sensor_dtype;
  bool sensor_once;
  const char* button; /* pressed while this file is there; NULL: no button */
} sim_options_t;
/* Exits with a message where the command line is wrong, or after --help. */
void sim_parse(int argc, char** argv, sim_options_t* o);

/* ---- wire.c: one direction of the line ---- */
enum { SIM_FRAME_MAX = 4400 };
typedef enum { SIM_PASS, SIM_DROP, SIM_FLIP, SIM_BURST, SIM_TRUNCATE, SIM_DUPLICATE } sim_fate_t;
typedef struct {
  const sim_options_t* options;
  uint64_t random;
  bool plain; /* nothing to do: bytes pass by */
  uint8_t* ring;
  uint8_t* copy;
  struct sim_segment* segments;
  uint32_t first, used, fresh, segment_first, segment_count;
  uint64_t line_us; /* up to which the line is taken */
  bool in_frame;
  sim_fate_t fate;
  uint32_t at, fate_at, fate_size, copied;
} sim_wire_t;
void wire_init(sim_wire_t* w, const sim_options_t* o, uint64_t seed);
bool wire_open(sim_wire_t* w); /* false: no memory */
void wire_close(sim_wire_t* w);
void wire_clear(sim_wire_t* w); /* what is under way is lost */
/* Bytes that may be put now. */
uint32_t wire_room(const sim_wire_t* w, uint64_t now_us);
void wire_put(sim_wire_t* w, const uint8_t* data, uint32_t n, uint64_t now_us);
/* Bytes that have arrived; they stay until they are taken. */
uint32_t wire_peek(const sim_wire_t* w, uint8_t* out, uint32_t capacity, uint64_t now_us);
void wire_take(sim_wire_t* w, uint32_t n);
uint64_t wire_due(const sim_wire_t* w); /* arrival of the next; UINT64_MAX: none */

/* ---- nvm.c ---- */
typedef struct {
  int fd; /* -1: none */
  uint32_t page_us;
  hal_nvm_t memory; /* its functions are the caller's */
} sim_nvm_t;
/* Exits with a message where the file cannot be used. */
void nvm_open(sim_nvm_t* v, const sim_options_t* o);
void nvm_close(sim_nvm_t* v);
bool nvm_read(const sim_nvm_t* v, uint32_t at, uint8_t* out, uint32_t n);
bool nvm_write(const sim_nvm_t* v, uint32_t at, const uint8_t* data, uint32_t n);

/* ---- sensor.c ---- */
typedef struct {
  const uint8_t* data;
  uint32_t step_bytes;
  uint64_t steps, taken, begin_us;
  bool once;
  hal_sensor_t sensor; /* its function is the caller's */
} sim_sensor_t;
/* Exits with a message where the file cannot be used. */
void sensor_open(sim_sensor_t* v, const sim_options_t* o);
uint32_t sensor_read(sim_sensor_t* v, uint64_t now_us, void* out, uint32_t steps, uint32_t* lost);
bool button_pressed(const sim_options_t* o);

/* ---- board.c: one board of the process ---- */
typedef struct sim_board sim_board_t;
/* Options of board `number` (from 0) are those of the command line but for uid, ports and files.
 * Exits with a message where that is impossible. */
sim_board_t* board_open(const sim_options_t* o, uint32_t number);
void board_close(sim_board_t* b);
/* One turn; returns when the next is due at the latest, in microseconds of clock_us(). */
uint64_t board_turn(sim_board_t* b);
uint32_t board_steps(const sim_board_t* b);  /* of its run so far */
int board_fd(const sim_board_t* b);          /* wakes the board; -1: none */
uint32_t board_opened(const sim_board_t* b); /* another number: another connection */
void board_wake(sim_board_t* b);             /* something came there */
bool board_sends(const sim_board_t* b);      /* and waits for room there */
uint64_t clock_us(void);

/* ---- port.c: TCP server, TCP client or pty ---- */
typedef struct {
  const sim_options_t* options;
  int listener; /* -1: none */
  int fd;       /* -1: not connected */
  bool empty;   /* it was read to its end, and nothing has come since */
  uint32_t opened;
  uint64_t retry_us;
  uint64_t random;
} sim_port_t;
/* Prints "ready <where>" on stdout. Exits with a message where that is impossible. */
void port_open(sim_port_t* p, const sim_options_t* o);
/* Accepts or dials where there is no peer. True: a new peer is there. */
bool port_poll(sim_port_t* p, uint64_t now_us);
void port_close(sim_port_t* p, uint64_t now_us);
uint32_t port_read(sim_port_t* p, uint8_t* out, uint32_t capacity, uint64_t now_us);
uint32_t port_write(sim_port_t* p, const uint8_t* data, uint32_t n, uint64_t now_us);

#endif
