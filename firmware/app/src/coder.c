#include "coder.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static uint32_t wire_of(uint32_t type) {
  if (type <= CODER_S64) return WIRE_VARINT;
  return type == CODER_F32 ? WIRE_32 : type == CODER_F64 ? WIRE_64 : WIRE_BYTES;
}

/* ---- writing ------------------------------------------------------------------------------------
 */

static void put_byte(coder_out_t* out, uint32_t byte) {
  if (out->used < out->limit) out->bytes[out->used] = (uint8_t)byte;
  out->used++;
}

void coder_put_bytes(coder_out_t* out, const void* bytes, uint32_t n) {
  const uint8_t* p = bytes;
  while (n-- > 0) put_byte(out, *p++);
}

static void put_varint(coder_out_t* out, uint64_t v) {
  for (; v > 127u; v >>= 7) put_byte(out, (uint32_t)v | 0x80u);
  put_byte(out, (uint32_t)v);
}

/* One byte for the length, until it is known. */
uint32_t coder_open(coder_out_t* out, uint32_t tag) {
  put_varint(out, tag << 3 | WIRE_BYTES);
  put_byte(out, 0);
  return out->used;
}

void coder_close(coder_out_t* out, uint32_t at) {
  uint32_t n = out->used - at;
  if (n > 127u) {
    put_byte(out, 0);
    if (out->used <= out->limit) memmove(out->bytes + at + 1u, out->bytes + at, n);
  }
  coder_out_t length = {.bytes = out->bytes, .limit = out->limit, .used = at - 1u};
  put_varint(&length, n); /* a message has less than 2^14 bytes */
}

void coder_put_message(coder_out_t* out, uint32_t tag, const coder_message_t* m,
                       const void* message) {
  uint32_t at = coder_open(out, tag);
  coder_put(out, m, message);
  coder_close(out, at);
}

static uint64_t number_at(uint32_t type, const uint8_t* p) {
  uint64_t v = 0;
  if (type <= CODER_U8) return *p;
  if (type == CODER_U64 || type == CODER_F64) {
    memcpy(&v, p, 8);
    return v;
  }
  uint32_t word;
  memcpy(&word, p, 4);
  return type == CODER_S32 ? word << 1 ^ (uint32_t)((int32_t)word >> 31) : word;
}

static void put_one(coder_out_t* out, coder_field_t f, const uint8_t* p) {
  uint32_t wire = wire_of(f.type);
  uint64_t v = 0;
  if (f.type == CODER_STRING) {
    while (p[v] != 0) v++;
  } else if (f.type == CODER_BYTES) {
    pb_size_t size;
    memcpy(&size, p, sizeof size);
    p += sizeof size;
    v = size;
  } else {
    v = number_at(f.type, p);
  }
  if (v == 0 && f.label == CODER_SINGULAR) return;
  put_varint(out, (uint32_t)f.tag << 3 | wire);
  if (wire == WIRE_32 || wire == WIRE_64) {
    coder_put_bytes(out, &v, wire == WIRE_32 ? 4 : 8);
    return;
  }
  put_varint(out, v);
  if (wire == WIRE_BYTES) coder_put_bytes(out, p, (uint32_t)v);
}

/* How many elements a field has. */
static uint32_t count_of(coder_field_t f, const coder_more_t* more, const uint8_t* message) {
  const uint8_t* p = message + more->count;
  if (f.label == CODER_OPTIONAL) return *p;
  pb_size_t n;
  memcpy(&n, p, sizeof n);
  return f.label == CODER_REPEATED ? n : n == f.tag ? 1 : 0;
}

void coder_put(coder_out_t* out, const coder_message_t* m, const void* message) {
  const coder_more_t* more = m->more;
  for (uint32_t i = 0; i < m->n; i++) {
    coder_field_t f = m->fields[i];
    const uint8_t* p = (const uint8_t*)message + f.offset;
    if (f.label == CODER_SINGULAR) {
      put_one(out, f, p);
      continue;
    }
    for (uint32_t n = count_of(f, more, message); n > 0; n--, p += more->size) {
      if (more->message != NULL) {
        coder_put_message(out, f.tag, more->message, p);
      } else {
        put_one(out, f, p);
      }
    }
    more++;
  }
}

/* ---- reading ------------------------------------------------------------------------------------
 */

typedef struct {
  const uint8_t *at, *end;
} span_t;

static bool get_varint(span_t* in, uint64_t* v) {
  *v = 0;
  for (uint32_t shift = 0; shift < 64u && in->at != in->end; shift += 7u) {
    uint8_t byte = *in->at++;
    *v |= (uint64_t)(byte & 0x7Fu) << shift;
    if (byte < 0x80u) return true;
  }
  return false;
}

/* What a number's wire type says, or the bytes behind a length. */
static bool get_value(span_t* in, uint32_t wire, uint64_t* v, span_t* bytes) {
  if (wire == WIRE_VARINT) return get_varint(in, v);
  uint64_t n = wire == WIRE_32 ? 4 : 8;
  if (wire == WIRE_BYTES) {
    if (!get_varint(in, &n)) return false;
  } else if (wire != WIRE_32 && wire != WIRE_64) {
    return false;
  }
  if (n > (uint64_t)(in->end - in->at)) return false;
  bytes->at = in->at;
  bytes->end = in->at += n;
  *v = 0;
  if (wire != WIRE_BYTES) memcpy(v, bytes->at, (size_t)n);
  return true;
}

static bool take_number(uint32_t type, uint64_t v, uint8_t* p) {
  uint32_t size = type == CODER_U64 || type == CODER_S64 || type == CODER_F64 ? 8u : 4u;
  if (type == CODER_S32 || type == CODER_S64) v = v >> 1 ^ (0u - (v & 1u));
  if (type == CODER_BOOL) v = v != 0;
  if (type <= CODER_U8) {
    size = 1;
    if (v > UINT8_MAX) return false;
  }
  if (type == CODER_S32 && (int64_t)v != (int32_t)v) return false;
  if ((type == CODER_U32 || type == CODER_F32) && v > UINT32_MAX) return false;
  memcpy(p, &v, size);
  return true;
}

static bool take_one(coder_field_t f, const coder_more_t* more, uint32_t wire, uint64_t v,
                     span_t bytes, uint8_t* p) {
  if (wire != wire_of(f.type)) return false;
  uint32_t n = (uint32_t)(bytes.end - bytes.at);
  if (f.type == CODER_MESSAGE) return coder_get(more->message, bytes.at, n, p);
  if (wire != WIRE_BYTES) return take_number(f.type, v, p);
  if (f.type == CODER_STRING) {
    if (n >= f.limit) return false;
    p[n] = 0;
  } else {
    if (n > f.limit) return false;
    pb_size_t size = (pb_size_t)n;
    memcpy(p, &size, sizeof size);
    p += sizeof size;
  }
  memcpy(p, bytes.at, n);
  return true;
}

static bool take_repeated(coder_field_t f, const coder_more_t* more, uint32_t wire, uint64_t v,
                          span_t bytes, uint8_t* message) {
  pb_size_t* n = (pb_size_t*)(void*)(message + more->count);
  bool packed = wire == WIRE_BYTES && more->message == NULL;
  if (packed) wire = wire_of(f.type);
  if (packed && bytes.at == bytes.end) return true;
  do {
    if (packed && !get_varint(&bytes, &v)) return false;
    if (*n == f.limit) return false;
    if (!take_one(f, more, wire, v, bytes, message + f.offset + (uint32_t)*n * more->size)) {
      return false;
    }
    (*n)++;
  } while (packed && bytes.at != bytes.end);
  return true;
}

static bool take(coder_field_t f, const coder_more_t* more, uint32_t wire, uint64_t v, span_t bytes,
                 uint8_t* message) {
  uint8_t* p = message + f.offset;
  if (f.label == CODER_REPEATED) return take_repeated(f, more, wire, v, bytes, message);
  if (f.label == CODER_OPTIONAL) message[more->count] = 1;
  if (f.label == CODER_ONEOF) {
    pb_size_t* which = (pb_size_t*)(void*)(message + more->count);
    if (*which != f.tag) memset(p, 0, more->size);
    *which = (pb_size_t)f.tag;
  }
  return take_one(f, more, wire, v, bytes, p);
}

bool coder_get(const coder_message_t* m, const uint8_t* bytes, uint32_t n, void* message) {
  span_t in = {bytes, bytes + n}, value = {NULL, NULL};
  while (in.at != in.end) {
    uint64_t key, v;
    if (!get_varint(&in, &key) || key > UINT32_MAX || key < 8u) return false;
    uint32_t wire = (uint32_t)key & 7u, tag = (uint32_t)key >> 3;
    if (!get_value(&in, wire, &v, &value)) return false;
    const coder_more_t* more = m->more;
    for (uint32_t i = 0; i < m->n; i++) {
      coder_field_t f = m->fields[i];
      if (f.tag == tag && !take(f, more, wire, v, value, message)) return false;
      if (f.label != CODER_SINGULAR) more++;
    }
  }
  return true;
}
