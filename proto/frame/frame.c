#include "frame/frame.h"

#include <string.h>

enum { MODE_FRAME = 0, MODE_SKIP = 1, MODE_TEXT = 2 };

static uint16_t read_u16(const uint8_t* p) { return (uint16_t)(p[0] | ((uint32_t)p[1] << 8)); }
static uint32_t read_u32(const uint8_t* p) {
  return (uint32_t)p[0] | ((uint32_t)p[1] << 8) | ((uint32_t)p[2] << 16) | ((uint32_t)p[3] << 24);
}
static void write_u32(uint8_t* p, uint32_t v) {
  p[0] = (uint8_t)v;
  p[1] = (uint8_t)(v >> 8);
  p[2] = (uint8_t)(v >> 16);
  p[3] = (uint8_t)(v >> 24);
}

/* ---- encoder ---- */

typedef struct {
  uint8_t* out;
  size_t at;   /* next byte to write */
  size_t code; /* where the current block's code byte goes */
} cobs_t;

static void cobs_put(cobs_t* c, const uint8_t* p, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const uint8_t b = p[i];
    if (b != 0) c->out[c->at++] = b;
    const size_t length = c->at - c->code;
    if (b == 0 || length == 255u) {
      c->out[c->code] = (uint8_t)length;
      c->code = c->at++;
    }
  }
}

size_t frame_encode(const frame_t* f, uint8_t* out, size_t capacity) {
  if (f->payload_size > FRAME_MTU_MAX || capacity < FRAME_WIRE_SIZE((size_t)f->payload_size)) {
    return 0;
  }
  uint8_t header[FRAME_HEADER_SIZE];
  uint8_t tail[FRAME_CRC_SIZE];
  header[0] = FRAME_VERSION;
  header[1] = f->type;
  header[2] = (uint8_t)f->session;
  header[3] = (uint8_t)(f->session >> 8);
  write_u32(header + 4, f->id);
  uint32_t crc = frame_crc32(0, header, sizeof header);
  crc = frame_crc32(crc, f->payload, f->payload_size);
  write_u32(tail, crc);

  cobs_t c = {.out = out, .at = 2, .code = 1};
  out[0] = 0;
  cobs_put(&c, header, sizeof header);
  cobs_put(&c, f->payload, f->payload_size);
  cobs_put(&c, tail, sizeof tail);
  out[c.code] = (uint8_t)(c.at - c.code);
  out[c.at++] = 0;
  return c.at;
}

/* ---- decoder ---- */

bool frame_is_text(const uint8_t* data, size_t n) {
  size_t printable = 0;
  for (size_t i = 0; i < n; i++) {
    const uint8_t b = data[i];
    printable += (b >= 0x20 && b < 0x7F) || b == '\t' || b == '\r' || b == '\n';
  }
  return n >= 4 && printable * 4 >= n * 3;
}

/* Size of the content of a COBS block sequence, or -1 where its structure is broken. */
static int32_t cobs_content_size(const uint8_t* p, uint32_t n) {
  uint32_t at = 0;
  uint32_t size = 0;
  while (at < n) {
    const uint32_t code = p[at];
    if (code == 0 || at + code > n) return -1;
    size += code - 1u;
    at += code;
    if (code != 255u && at < n) size++; /* the zero that the block stands for */
  }
  return (int32_t)size;
}

/* In place: the content is never longer than what encodes it. */
static void cobs_decode(uint8_t* p, uint32_t n) {
  uint32_t at = 0;
  uint32_t to = 0;
  while (at < n) {
    const uint32_t code = p[at];
    memmove(p + to, p + at + 1, code - 1u);
    to += code - 1u;
    at += code;
    if (code != 255u && at < n) p[to++] = 0;
  }
}

/* CRC over the first `size` content bytes without decoding them, so that the bytes as received are
 * still there for the raw console. The last four content bytes go to tail. */
static uint32_t cobs_crc(const uint8_t* p, uint32_t n, uint32_t size, uint8_t tail[4]) {
  static const uint8_t kZero = 0;
  uint32_t crc = 0;
  uint32_t seen = 0;
  for (uint32_t at = 0; at < n;) {
    const uint32_t code = p[at];
    for (uint32_t i = 1; i <= code; i++) {
      if (i == code && (code == 255u || at + code >= n)) break;
      const uint8_t* b = i < code ? p + at + i : &kZero;
      if (seen < size) {
        crc = frame_crc32(crc, b, 1);
      } else {
        tail[(seen - size) & 3u] = *b;
      }
      seen++;
    }
    at += code;
  }
  return crc;
}

static void set_header(const uint8_t* raw, frame_t* out) {
  out->type = raw[1];
  out->session = read_u16(raw + 2);
  out->id = read_u32(raw + 4);
}

/* The second byte of every frame of ours is its version, which no text has. */
static bool is_console(const frame_decoder_t* d) {
  return frame_is_text(d->buffer, d->size) && d->buffer[1] != FRAME_VERSION;
}

static frame_event_t bad(frame_decoder_t* d, uint32_t* counter, frame_t* out) {
  out->payload = d->buffer;
  out->payload_size = d->size;
  if (is_console(d)) {
    d->counters.text_bytes += d->size;
    return FRAME_TEXT;
  }
  (*counter)++;
  return FRAME_BAD;
}

static frame_event_t finish(frame_decoder_t* d, frame_t* out) {
  const int32_t content = cobs_content_size(d->buffer, d->size);
  if (content < 0) return bad(d, &d->counters.crc_errors, out);
  if (content < (int32_t)(FRAME_HEADER_SIZE + FRAME_CRC_SIZE)) {
    return bad(d, &d->counters.short_errors, out);
  }
  const uint32_t size = (uint32_t)content - FRAME_CRC_SIZE;
  uint8_t tail[FRAME_CRC_SIZE] = {0};
  const bool sound = cobs_crc(d->buffer, d->size, size, tail) == read_u32(tail);
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
  if (!sound) return bad(d, &d->counters.crc_errors, out);
#else
  (void)sound;
#endif
  cobs_decode(d->buffer, d->size);
  if (d->buffer[0] != FRAME_VERSION) {
    d->counters.version_errors++;
    return FRAME_BAD_VERSION;
  }
  set_header(d->buffer, out);
  out->payload_size = size - FRAME_HEADER_SIZE;
  if (out->payload_size > d->max_payload) {
    d->counters.oversize++;
    return FRAME_OVERSIZE;
  }
  out->payload = d->buffer + FRAME_HEADER_SIZE;
  d->counters.frames++;
  return FRAME_OK;
}

static frame_event_t finish_long(frame_decoder_t* d, frame_t* out) {
  if (d->mode == MODE_TEXT) {
    out->payload = d->buffer;
    out->payload_size = d->size;
    d->counters.text_bytes += d->size;
    return d->size > 0 ? FRAME_TEXT : FRAME_NONE;
  }
  d->counters.oversize++;
  out->payload_size = d->size + d->skipped;
  return FRAME_OVERSIZE;
}

static frame_event_t end_of_block(frame_decoder_t* d, frame_t* out) {
  frame_event_t event = FRAME_NONE;
  if (d->mode != MODE_FRAME) {
    event = finish_long(d, out);
  } else if (d->size > 0) {
    event = finish(d, out);
  }
  d->mode = MODE_FRAME;
  d->size = 0;
  d->skipped = 0;
  return event;
}

void frame_decoder_init(frame_decoder_t* d, uint8_t* buffer, uint32_t capacity,
                        uint32_t max_payload) {
  memset(d, 0, sizeof *d);
  d->buffer = buffer;
  d->capacity = capacity;
  d->max_payload = max_payload;
}

/* The buffer is full and no delimiter came: text is handed on piece by piece, all else skipped. */
static frame_event_t overflow(frame_decoder_t* d, frame_t* out) {
  if (d->mode == MODE_SKIP || !is_console(d)) {
    d->mode = MODE_SKIP;
    return FRAME_NONE;
  }
  d->mode = MODE_TEXT;
  out->payload = d->buffer;
  out->payload_size = d->size;
  d->counters.text_bytes += d->size;
  d->size = 0;
  return FRAME_TEXT;
}

frame_event_t frame_decoder_feed(frame_decoder_t* d, const uint8_t** data, size_t* n,
                                 frame_t* out) {
  memset(out, 0, sizeof *out);
  while (*n > 0) {
    frame_event_t event = FRAME_NONE;
    const uint8_t b = **data;
    if (b != 0 && d->size == d->capacity && d->mode != MODE_SKIP) {
      event = overflow(d, out); /* b is looked at again: the caller still reads the buffer */
      if (event != FRAME_NONE) return event;
    }
    (*data)++;
    (*n)--;
    if (b == 0) {
      event = end_of_block(d, out);
      if (event != FRAME_NONE) return event;
    } else if (d->mode == MODE_SKIP) {
      if (d->skipped < UINT32_MAX - d->capacity) d->skipped++;
    } else {
      d->buffer[d->size++] = b;
    }
  }
  return FRAME_NONE;
}

frame_event_t frame_decoder_flush(frame_decoder_t* d, frame_t* out) {
  memset(out, 0, sizeof *out);
  if (d->mode == MODE_SKIP || !is_console(d)) return FRAME_NONE;
  out->payload = d->buffer;
  out->payload_size = d->size;
  d->counters.text_bytes += d->size;
  d->mode = MODE_TEXT; /* what follows before a delimiter is no frame either */
  d->size = 0;
  return FRAME_TEXT;
}
