/* Protobuf coder for the messages of odt/device/v1. The structures and the lists of fields are
 * those that nanopb's generator makes of device.proto; this coder takes a third of the flash of
 * nanopb's, because a field's description is one word and because it does what these messages need
 * and no more: no floats, no groups, no extensions, and repeated numbers are only read. What it
 * writes is the same to the byte. */
#ifndef ODT_APP_CODER_H
#define ODT_APP_CODER_H

#include <stdbool.h>
#include <stdint.h>

#include "odt/device/v1/device.pb.h"

typedef enum {
  CODER_BOOL,
  CODER_U8, /* an enum as small cores store it */
  CODER_U32,
  CODER_S32,
  CODER_U64,
  CODER_S64,
  CODER_F32,
  CODER_F64,
  CODER_BYTES,
  CODER_STRING,
  CODER_MESSAGE,
} coder_type_t;

typedef enum { CODER_SINGULAR, CODER_OPTIONAL, CODER_REPEATED, CODER_ONEOF } coder_label_t;

typedef struct {
  unsigned tag : 7, type : 4, label : 2;
  unsigned offset : 10; /* of the member in its structure */
  unsigned limit : 9;   /* bytes of BYTES and STRING, elements of REPEATED */
} coder_field_t;

typedef struct coder_message coder_message_t;

/* Of each field that is not SINGULAR, in the fields' order. */
typedef struct {
  const coder_message_t* message; /* NULL: a number */
  uint16_t count;                 /* offset of has_NAME, NAME_count, which_NAME */
  uint16_t size;                  /* bytes of an element */
} coder_more_t;

struct coder_message {
  const coder_field_t* fields; /* by tag, rising */
  const coder_more_t* more;
  uint32_t n;
};

/* `used` counts on where the limit is reached, and nothing is written there: used > limit says that
 * it did not fit. */
typedef struct {
  uint8_t* bytes;
  uint32_t limit, used;
} coder_out_t;

void coder_put_bytes(coder_out_t* out, const void* bytes, uint32_t n);
/* The fields of a message that are not zero. */
void coder_put(coder_out_t* out, const coder_message_t* m, const void* message);
/* A field that is a message; open and close enclose what is put into it. */
void coder_put_message(coder_out_t* out, uint32_t tag, const coder_message_t* m,
                       const void* message);
uint32_t coder_open(coder_out_t* out, uint32_t tag);
void coder_close(coder_out_t* out, uint32_t at);

/* Reads into a structure that is zero. False: malformed, or a field exceeds its bound. Unknown
 * fields are skipped. */
bool coder_get(const coder_message_t* m, const uint8_t* bytes, uint32_t n, void* message);

/* One for each message: odt_device_v1_NAME_coder (coder_tables.c). */
#define CODER_DECLARE(name) extern const coder_message_t odt_device_v1_##name##_coder;
CODER_DECLARE(Hello)
CODER_DECLARE(HelloAck)
CODER_DECLARE(NeedHello)
CODER_DECLARE(LinkErr)
CODER_DECLARE(Busy)
CODER_DECLARE(Pong)
CODER_DECLARE(Log)
CODER_DECLARE(Window)
CODER_DECLARE(Request)
CODER_DECLARE(Response)
CODER_DECLARE(StepRecord)
CODER_DECLARE(LayerEpoch)
CODER_DECLARE(EpochRecord)
CODER_DECLARE(JobChanged)
CODER_DECLARE(EvalResult)
CODER_DECLARE(NvmCommitted)

#endif
