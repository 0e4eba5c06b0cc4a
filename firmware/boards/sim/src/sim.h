/* Between the sources of the simulator board. */
#ifndef ODT_SIM_H
#define ODT_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "hal/hal.h"

/* ---- options.c ---- */
typedef struct {
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
  uint32_t step_delay_ms;
  uint32_t baud; /* paces both directions; 0: no limit */
  uint64_t fault_seed;
  uint32_t drop_ppm, corrupt_ppm; /* of bytes, both directions */
  uint32_t stall_every_ms, stall_ms;
  uint32_t busy_every_ms, busy_ms;
  const char* nvm; /* file of the non-volatile memory; NULL: none */
  uint32_t nvm_bytes, nvm_page_us;
  const char* sensor; /* file of its time steps; NULL: no sensor */
  uint32_t sensor_channels, sensor_milli_hz;
  uint8_t sensor_dtype;
  bool sensor_once;
  const char* button; /* pressed while this file is there; NULL: no button */
} sim_options_t;
/* Exits with a message where the command line is wrong, or after --help. */
void sim_parse(int argc, char** argv, sim_options_t* o);

/* ---- faults.c: seeded, between firmware and link ---- */
typedef struct {
  uint64_t random;
  uint32_t drop_ppm, corrupt_ppm;
  uint32_t baud;
  uint64_t rx_us, tx_us; /* pacing: time up to which the line is taken */
} sim_faults_t;
void faults_init(sim_faults_t* f, const sim_options_t* o);
/* Alters bytes in place; returns how many are left. */
uint32_t faults_apply(sim_faults_t* f, uint8_t* data, uint32_t n);
/* Bytes the line has room for now; `take` books them. */
uint32_t faults_room(const sim_faults_t* f, const uint64_t* line_us, uint64_t now_us);
void faults_book(const sim_faults_t* f, uint64_t* line_us, uint64_t now_us, uint32_t n);

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

/* ---- port.c: TCP server, TCP client or pty ---- */
typedef struct {
  const sim_options_t* options;
  int listener; /* -1: none */
  int fd;       /* -1: not connected */
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
