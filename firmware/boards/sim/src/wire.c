#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* One direction of the line: speed, time on the way, and damage, frame by frame as they pass. What
 * is under way lies in a ring; its memory is there only while the line needs it. */

enum { kRing = 16384, kSegments = 512, kExtra = 160 };

struct sim_segment {
  uint64_t due_us;
  uint32_t size;
};

static uint32_t next_random(sim_wire_t* w, uint32_t below) {
  w->random ^= w->random << 13;
  w->random ^= w->random >> 7;
  w->random ^= w->random << 17;
  return (uint32_t)(w->random >> 16) % below;
}

static bool hits(sim_wire_t* w, uint32_t per_mille) {
  return per_mille > 0 && next_random(w, 1000) < per_mille;
}

void wire_init(sim_wire_t* w, const sim_options_t* o, uint64_t seed) {
  *w = (sim_wire_t){.options = o, .random = seed * 0x9E3779B97F4A7C15u + 1u};
  const sim_fates_t* f = &o->fates;
  w->plain = o->baud == 0 && o->one_way_ms == 0 && o->drop_ppm == 0 && o->corrupt_ppm == 0 &&
             f->drop + f->flip + f->burst + f->truncate + f->duplicate + f->garbage + f->delay == 0;
}

bool wire_open(sim_wire_t* w) {
  if (w->plain) return true;
  w->ring = malloc(kRing);
  w->copy = malloc(SIM_FRAME_MAX);
  w->segments = calloc(kSegments, sizeof *w->segments);
  return w->ring != NULL && w->copy != NULL && w->segments != NULL;
}

void wire_close(sim_wire_t* w) {
  free(w->ring);
  free(w->copy);
  free(w->segments);
  w->ring = NULL;
}

void wire_clear(sim_wire_t* w) {
  w->used = w->first = w->fresh = w->segment_count = w->copied = 0;
  w->in_frame = false;
  w->line_us = 0;
}

uint32_t wire_room(const sim_wire_t* w, uint64_t now_us) {
  const uint32_t free_bytes = kRing - w->used;
  /* A byte can become two (duplicate), and garbage can come before a frame. */
  const uint32_t fits = free_bytes > 2u * (SIM_FRAME_MAX + kExtra)
                            ? (free_bytes - 2u * (SIM_FRAME_MAX + kExtra)) / 2u
                            : 0;
  if (w->segment_count + 4u > kSegments) return 0;
  const uint32_t baud = w->options->baud;
  if (baud == 0) return fits;
  /* A transmitter holds at most 20 ms of bytes. */
  const uint64_t ahead = w->line_us > now_us ? w->line_us - now_us : 0;
  if (ahead >= 20000u) return 0;
  const uint32_t paced = (uint32_t)((20000u - ahead) * baud / 10000000u) + 1u;
  return fits < paced ? fits : paced;
}

static void emit(sim_wire_t* w, uint8_t byte) {
  if (w->used == kRing) return;
  w->ring[(w->first + w->used++) % kRing] = byte;
  w->fresh++;
}

/* What was emitted since the last time becomes a piece that arrives together. */
static void flush(sim_wire_t* w, uint64_t now_us) {
  if (w->fresh == 0 || w->segment_count == kSegments) return;
  if (w->line_us < now_us) w->line_us = now_us;
  const uint32_t baud = w->options->baud;
  if (baud > 0) w->line_us += (uint64_t)w->fresh * 10000000u / baud;
  struct sim_segment* s = &w->segments[(w->segment_first + w->segment_count++) % kSegments];
  *s = (struct sim_segment){.due_us = w->line_us + w->options->one_way_ms * 1000ull,
                            .size = w->fresh};
  w->fresh = 0;
}

static void garbage(sim_wire_t* w) {
  const bool text = next_random(w, 2) == 0;
  const uint32_t n = 1u + next_random(w, 80);
  for (uint32_t i = 0; i < n; i++) {
    emit(w, (uint8_t)(text ? ' ' + (int)next_random(w, 94) : (int)next_random(w, 256)));
  }
  if (text) emit(w, '\n');
}

static void begin_frame(sim_wire_t* w, uint64_t now_us) {
  const sim_fates_t* f = &w->options->fates;
  w->in_frame = true;
  w->at = w->copied = 0;
  w->fate = SIM_PASS;
  w->fate_at = next_random(w, next_random(w, 2) != 0 ? 24 : 560);
  w->fate_size = 2u + next_random(w, 30);
  if (hits(w, f->delay)) {
    flush(w, now_us);
    if (w->line_us < now_us) w->line_us = now_us;
    w->line_us += w->options->delay_ms * 1000ull;
  }
  if (hits(w, f->garbage)) garbage(w);
  if (hits(w, f->drop)) {
    w->fate = SIM_DROP;
  } else if (hits(w, f->flip)) {
    w->fate = SIM_FLIP;
  } else if (hits(w, f->burst)) {
    w->fate = SIM_BURST;
  } else if (hits(w, f->truncate)) {
    w->fate = SIM_TRUNCATE;
  } else if (hits(w, f->duplicate)) {
    w->fate = SIM_DUPLICATE;
  }
}

static void content(sim_wire_t* w, uint8_t byte) {
  const uint32_t at = w->at++;
  switch (w->fate) {
    case SIM_DROP:
      return;
    case SIM_FLIP:
      if (at == w->fate_at) byte ^= (uint8_t)(1u << next_random(w, 8));
      break;
    case SIM_BURST:
      if (at >= w->fate_at && at - w->fate_at < w->fate_size) byte = (uint8_t)next_random(w, 256);
      break;
    case SIM_TRUNCATE:
      if (at >= w->fate_at) return;
      break;
    case SIM_DUPLICATE:
      if (w->copied < SIM_FRAME_MAX) w->copy[w->copied++] = byte;
      break;
    default:
      break;
  }
  emit(w, byte);
}

static void end_frame(sim_wire_t* w) {
  w->in_frame = false;
  if (w->fate == SIM_DUPLICATE && w->copied < SIM_FRAME_MAX) {
    emit(w, 0);
    for (uint32_t i = 0; i < w->copied; i++) emit(w, w->copy[i]);
  }
}

/* Faults of single bytes, whatever they belong to. False: the byte is lost. */
static bool byte_passes(sim_wire_t* w, uint8_t* byte) {
  const sim_options_t* o = w->options;
  if (o->drop_ppm > 0 && next_random(w, 1000000) < o->drop_ppm) return false;
  if (o->corrupt_ppm > 0 && next_random(w, 1000000) < o->corrupt_ppm) {
    *byte ^= (uint8_t)(1u << next_random(w, 8));
  }
  return true;
}

void wire_put(sim_wire_t* w, const uint8_t* data, uint32_t n, uint64_t now_us) {
  for (uint32_t i = 0; i < n; i++) {
    uint8_t byte = data[i];
    if (!byte_passes(w, &byte)) continue;
    if (byte == 0) {
      if (w->in_frame) end_frame(w);
      emit(w, 0);
      continue;
    }
    if (!w->in_frame) begin_frame(w, now_us);
    content(w, byte);
  }
  flush(w, now_us);
}

uint32_t wire_peek(const sim_wire_t* w, uint8_t* out, uint32_t capacity, uint64_t now_us) {
  uint32_t ready = 0;
  for (uint32_t i = 0; i < w->segment_count && ready < capacity; i++) {
    const struct sim_segment* s = &w->segments[(w->segment_first + i) % kSegments];
    if (s->due_us > now_us) break;
    ready += s->size;
  }
  if (ready > capacity) ready = capacity;
  for (uint32_t i = 0; i < ready; i++) out[i] = w->ring[(w->first + i) % kRing];
  return ready;
}

void wire_take(sim_wire_t* w, uint32_t n) {
  w->first = (w->first + n) % kRing;
  w->used -= n;
  while (n > 0) {
    struct sim_segment* s = &w->segments[w->segment_first];
    const uint32_t part = s->size < n ? s->size : n;
    s->size -= part;
    n -= part;
    if (s->size > 0) break;
    w->segment_first = (w->segment_first + 1u) % kSegments;
    w->segment_count--;
  }
}

uint64_t wire_due(const sim_wire_t* w) {
  return w->segment_count == 0 ? UINT64_MAX : w->segments[w->segment_first].due_us;
}
