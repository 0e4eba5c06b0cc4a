#include <stddef.h>

#include "sim.h"

static uint64_t next_random(uint64_t* s) {
  *s ^= *s << 13;
  *s ^= *s >> 7;
  *s ^= *s << 17;
  return *s;
}

static bool hits(sim_faults_t* f, uint32_t ppm) {
  return ppm > 0 && next_random(&f->random) % 1000000u < ppm;
}

void faults_init(sim_faults_t* f, const sim_options_t* o) {
  *f = (sim_faults_t){.random = o->fault_seed * 0x9E3779B97F4A7C15u + 1u,
                      .drop_ppm = o->drop_ppm,
                      .corrupt_ppm = o->corrupt_ppm,
                      .baud = o->baud};
}

uint32_t faults_apply(sim_faults_t* f, uint8_t* data, uint32_t n) {
  if (f->drop_ppm == 0 && f->corrupt_ppm == 0) return n;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (hits(f, f->drop_ppm)) continue;
    uint8_t b = data[i];
    if (hits(f, f->corrupt_ppm)) b ^= (uint8_t)(1u << (next_random(&f->random) % 8u));
    data[kept++] = b;
  }
  return kept;
}

/* A UART: ten bits a byte, at most 20 ms of bytes under way. */
uint32_t faults_room(const sim_faults_t* f, const uint64_t* line_us, uint64_t now_us) {
  if (f->baud == 0) return UINT32_MAX;
  const uint64_t ahead = *line_us > now_us ? *line_us - now_us : 0;
  if (ahead >= 20000u) return 0;
  return (uint32_t)((20000u - ahead) * f->baud / 10000000u) + 1u;
}

void faults_book(const sim_faults_t* f, uint64_t* line_us, uint64_t now_us, uint32_t n) {
  if (f->baud == 0) return;
  if (*line_us < now_us) *line_us = now_us;
  *line_us += (uint64_t)n * 10000000u / f->baud;
}
