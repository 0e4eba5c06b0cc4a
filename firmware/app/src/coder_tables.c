/* The messages of odt/device/v1 as coder.h describes them, from the lists of fields in device.pb.h.
 */
#include <stddef.h>

#include "app/types.h"
#include "coder.h"

#define PATH(group, member, path) path
#define MEMBER(type, member) (((type*)0)->member)

#define TYPE_BOOL(t, m) CODER_BOOL
#define TYPE_UENUM(t, m) (sizeof(MEMBER(t, m)) == 1u ? CODER_U8 : CODER_U32)
#define TYPE_UINT32(t, m) CODER_U32
#define TYPE_SINT32(t, m) CODER_S32
#define TYPE_UINT64(t, m) CODER_U64
#define TYPE_SINT64(t, m) CODER_S64
#define TYPE_FIXED32(t, m) CODER_F32
#define TYPE_FIXED64(t, m) CODER_F64
#define TYPE_BYTES(t, m) CODER_BYTES
#define TYPE_STRING(t, m) CODER_STRING
#define TYPE_MESSAGE(t, m) CODER_MESSAGE

#define LIMIT_BOOL(t, m) 0
#define LIMIT_UENUM(t, m) 0
#define LIMIT_UINT32(t, m) 0
#define LIMIT_SINT32(t, m) 0
#define LIMIT_UINT64(t, m) 0
#define LIMIT_FIXED32(t, m) 0
#define LIMIT_FIXED64(t, m) 0
#define LIMIT_BYTES(t, m) sizeof(MEMBER(t, m.bytes))
#define LIMIT_STRING(t, m) sizeof(MEMBER(t, m))

/* A value that does not fit its bits is an error of the compiler (-Woverflow). */
#define FIELD(t, storage, label, type, name, tag) FIELD_##storage##_##label(t, type, name, tag)
#define FIELD_STATIC_SINGULAR(t, type, m, tag) \
  {tag, TYPE_##type(t, m), CODER_SINGULAR, offsetof(t, m), LIMIT_##type(t, m)},
#define FIELD_STATIC_OPTIONAL(t, type, m, tag) \
  {tag, TYPE_##type(t, m), CODER_OPTIONAL, offsetof(t, m), 0},
#define FIELD_STATIC_REPEATED(t, type, m, tag)             \
  {tag, TYPE_##type(t, m), CODER_REPEATED, offsetof(t, m), \
   sizeof(MEMBER(t, m)) / sizeof(MEMBER(t, m[0]))},
#define FIELD_STATIC_ONEOF(t, type, name, tag) \
  {tag, TYPE_##type(t, PATH name), CODER_ONEOF, offsetof(t, PATH name), 0},
#define FIELD_CALLBACK_REPEATED(t, type, m, tag) /* who puts the message puts it */

#define MORE(t, storage, label, type, name, tag) MORE_##storage##_##label(t, type, name)
#define MORE_STATIC_SINGULAR(t, type, m)
#define MORE_STATIC_OPTIONAL(t, type, m) \
  {MESSAGE_##type(t##_##m##_MSGTYPE), offsetof(t, has_##m), sizeof(MEMBER(t, m))},
#define MORE_STATIC_REPEATED(t, type, m) \
  {MESSAGE_##type(t##_##m##_MSGTYPE), offsetof(t, m##_count), sizeof(MEMBER(t, m[0]))},
#define MORE_STATIC_ONEOF(t, type, name) MORE_OF(t, type, name, SPLIT name)
#define MORE_OF(...) MORE_OF_(__VA_ARGS__)
#define MORE_OF_(t, type, name, group, member)                                   \
  {MESSAGE_##type(t##_##group##_##member##_MSGTYPE), offsetof(t, which_##group), \
   sizeof(MEMBER(t, PATH name))},
#define SPLIT(group, member, path) group, member
#define MESSAGE_MESSAGE(name) TABLE_OF(name)
#define MESSAGE_UINT32(name) NULL
#define MESSAGE_SINT32(name) NULL
#define MESSAGE_SINT64(name) NULL
#define TABLE_OF(name) TABLE_OF_(name)
#define TABLE_OF_(name) &name##_coder

#define COUNT(t, storage, label, type, name, tag) COUNT_##storage##_##label
#define COUNT_STATIC_SINGULAR +0
#define COUNT_STATIC_OPTIONAL +1
#define COUNT_STATIC_REPEATED +1
#define COUNT_STATIC_ONEOF +1
#define COUNT_CALLBACK_REPEATED +0

#define FIELDS(t) static const coder_field_t t##_fields_of[] = {t##_FIELDLIST(FIELD, t)};
#define LENGTH(array) (sizeof(array) / sizeof(array)[0])
/* Only singular fields. */
#define PLAIN(name) PLAIN_(odt_device_v1_##name)
#define PLAIN_(t)                                                             \
  FIELDS(t)                                                                   \
  _Static_assert(0 t##_FIELDLIST(COUNT, t) == 0, "it has others: use MIXED"); \
  extern const coder_message_t t##_coder;                                     \
  const coder_message_t t##_coder = {t##_fields_of, NULL, LENGTH(t##_fields_of)};
#define MIXED(name) MIXED_(odt_device_v1_##name)
#define MIXED_(t)                                                     \
  FIELDS(t)                                                           \
  static const coder_more_t t##_more_of[] = {t##_FIELDLIST(MORE, t)}; \
  extern const coder_message_t t##_coder;                             \
  const coder_message_t t##_coder = {t##_fields_of, t##_more_of, LENGTH(t##_fields_of)};
/* Without fields, or of what this firmware does not do: they are skipped. */
#define EMPTY(name)                                          \
  extern const coder_message_t odt_device_v1_##name##_coder; \
  const coder_message_t odt_device_v1_##name##_coder = {NULL, NULL, 0};

PLAIN(Hello)
PLAIN(HelloAck)
PLAIN(NeedHello)
PLAIN(LinkErr)
PLAIN(Busy)
PLAIN(Pong)
PLAIN(Log)
PLAIN(Window)
PLAIN(StepRecord)
PLAIN(LayerEpoch)
PLAIN(EpochRecord)
PLAIN(JobChanged)
PLAIN(EvalResult)
PLAIN(NvmCommitted)

/* Of Request. */
PLAIN(GetState)
PLAIN(XferOpen)
PLAIN(XferCommit)
PLAIN(XferAbort)
PLAIN(RunSpec)
PLAIN(Steer)
MIXED(StartRun)
PLAIN(TrainStep)
PLAIN(EndEpoch)
PLAIN(AckEpoch)
PLAIN(JobControl)
PLAIN(Evaluate)
PLAIN(EvalStep)
EMPTY(Infer)
PLAIN(GetTelemetryFrom)
PLAIN(GetEpoch)
PLAIN(Identify)
EMPTY(Reset)
PLAIN(SetPrecision)
PLAIN(BestKept)
/* Of Response. */
PLAIN(Error)
PLAIN(State)
PLAIN(XferOpened)
PLAIN(InferResult)
PLAIN(TelemetryRange)

#if APP_NVM
PLAIN(NvmCommit)
PLAIN(NvmErase)
PLAIN(NvmStatusGet)
MIXED(NvmStatus)
#else
EMPTY(NvmCommit)
EMPTY(NvmErase)
EMPTY(NvmStatusGet)
EMPTY(NvmStatus)
#endif

EMPTY(CaptureStop)
#if APP_CAPTURE
PLAIN(LabelRule)
MIXED(CaptureStart)
PLAIN(GetWindows)
PLAIN(LabelWindow)
PLAIN(FeedSensor)
PLAIN(Windows)
#else
EMPTY(CaptureStart)
EMPTY(GetWindows)
EMPTY(LabelWindow)
EMPTY(FeedSensor)
EMPTY(Windows)
#endif

MIXED(Request)
MIXED(Response)
