/* The frame of the device link, for both ends (proto/README.md, "Frame"):
 *
 *   00 | COBS( ver type session:u16 id:u32 | payload[0..mtu] | crc32:u32 ) | 00 (little-endian)
 *
 * C11, no heap, no statics; every buffer is the caller's. A decoder never trusts a length from the
 * wire: it holds at most its buffer and skips what is longer to the next delimiter.
 */
#ifndef ODT_FRAME_H
#define ODT_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FRAME_VERSION 1u
#define FRAME_HEADER_SIZE 8u
#define FRAME_CRC_SIZE 4u
#define FRAME_MTU_MIN 128u     /* payload bytes */
#define FRAME_MTU_MAX 4096u    /* hard cap: anything longer is skipped */
#define FRAME_MTU_DEFAULT 576u /* chunk data 512 */
#define FRAME_HELLO_MAX 256u   /* HELLO, HELLO_ACK, NEED_HELLO, LINK_ERR; before an MTU is agreed */

#define FRAME_RAW_SIZE(payload) ((payload) + FRAME_HEADER_SIZE + FRAME_CRC_SIZE)
#define FRAME_COBS_SIZE(payload) (FRAME_RAW_SIZE(payload) + FRAME_RAW_SIZE(payload) / 254u + 1u)
/* Bytes on the wire at most, both delimiters included. */
#define FRAME_WIRE_SIZE(payload) (FRAME_COBS_SIZE(payload) + 2u)
/* Buffer a decoder needs for payloads of `payload` bytes. */
#define FRAME_DECODER_SIZE(payload) FRAME_COBS_SIZE(payload)
/* A payload that lies in the encoder's output buffer at this offset or behind is encoded in place;
 * such a buffer holds FRAME_IN_PLACE_SIZE(payload) bytes. */
#define FRAME_IN_PLACE_OFFSET 32u
#define FRAME_IN_PLACE_SIZE(payload) (FRAME_IN_PLACE_OFFSET + (payload) + 8u)

/* Bit 7 set: board -> host. Either end drops frames of the other direction (echoes). */
#define FRAME_TO_HOST 0x80u
enum {
  FRAME_HELLO = 0x01,
  FRAME_REQ = 0x02,
  FRAME_CHUNK_TO_BOARD = 0x03,
  FRAME_WINDOW_TO_BOARD = 0x04,
  FRAME_PING = 0x05,
  FRAME_BYE = 0x06,
  FRAME_HELLO_ACK = 0x81,
  FRAME_RSP = 0x82,
  FRAME_CHUNK_TO_HOST = 0x83,
  FRAME_WINDOW_TO_HOST = 0x84,
  FRAME_PONG = 0x85,
  FRAME_EVENT = 0x86,
  FRAME_LOG = 0x87,
  FRAME_NEED_HELLO = 0x88,
  FRAME_LINK_ERR = 0x89,
  FRAME_BUSY = 0x8A,
};

typedef struct {
  uint8_t type;
  uint16_t session;
  uint32_t id;
  const uint8_t* payload;
  uint32_t payload_size;
} frame_t;

/* Continues a CRC-32 (reflected 0xEDB88320); start with 0. Equal to zlib's crc32(). */
uint32_t frame_crc32(uint32_t crc, const void* data, size_t n);

/* Writes the whole frame with both delimiters to out. Returns bytes written, 0 if it does not fit.
 * Payload may be apart from out, or inside it at FRAME_IN_PLACE_OFFSET or behind. */
size_t frame_encode(const frame_t* f, uint8_t* out, size_t capacity);

typedef enum {
  FRAME_NONE = 0, /* input used up, nothing to report */
  FRAME_OK,       /* a frame */
  /* Bytes between delimiters that are no frame but mostly printable: raw console (boot ROM, panic).
   * payload/payload_size: the bytes as received. Not counted as an error. */
  FRAME_TEXT,
  /* No frame: broken CRC, COBS structure or length. payload: the bytes as received. */
  FRAME_BAD,
  FRAME_BAD_VERSION, /* sound, but of an unknown framing major. type/session/id are not set */
  /* Longer than the limit; skipped. payload NULL, payload_size: encoded bytes seen. The header
   * fields are set where they could be read. */
  FRAME_OVERSIZE,
} frame_event_t;

typedef struct {
  uint32_t frames;
  uint32_t crc_errors; /* CRC or COBS structure */
  uint32_t short_errors;
  uint32_t version_errors;
  uint32_t oversize;
  uint32_t text_bytes;
} frame_counters_t;

typedef struct {
  uint8_t* buffer;
  uint32_t capacity;
  uint32_t size;        /* bytes held since the last delimiter */
  uint32_t skipped;     /* bytes beyond the capacity */
  uint32_t max_payload; /* mtu in force; may be changed at any time */
  uint8_t mode;
  frame_counters_t counters;
} frame_decoder_t;

/* buffer: FRAME_DECODER_SIZE(max_payload) bytes or more, must outlive the decoder. */
void frame_decoder_init(frame_decoder_t* d, uint8_t* buffer, uint32_t capacity,
                        uint32_t max_payload);

/* Consumes bytes up to the next event; advances *data and *n. Call until FRAME_NONE:
 *
 *   while ((event = frame_decoder_feed(&d, &data, &n, &frame)) != FRAME_NONE) ...
 *
 * What `out` points to is valid until the next call. */
frame_event_t frame_decoder_feed(frame_decoder_t* d, const uint8_t** data, size_t* n, frame_t* out);

/* Gives up what was received since the last delimiter, if it is text (a line that no delimiter
 * ended, when the line has been silent for a while): FRAME_TEXT or FRAME_NONE. */
frame_event_t frame_decoder_flush(frame_decoder_t* d, frame_t* out);

/* At least 4 bytes, at least 3 of 4 printable (TAB, CR, LF included). */
bool frame_is_text(const uint8_t* data, size_t n);

#ifdef __cplusplus
}
#endif
#endif
