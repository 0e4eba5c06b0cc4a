/* Layout of app_t, public so that its size is known; touched only by firmware/app. */
#ifndef ODT_APP_TYPES_H
#define ODT_APP_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "frame/frame.h"
#include "hal/hal.h"
#include "odt/odt.h"
#include "odt/trainer.h"

#define APP_FW_VERSION "0.1.0"
#define APP_MTU FRAME_MTU_DEFAULT
#define APP_CHUNK 512u
#define APP_RSP_MAX 448u
#define APP_BUILD_ID 6u /* bytes of HELLO_ACK.build_id */
#ifndef APP_EVENTS
#define APP_EVENTS 16u
#endif
#ifndef APP_EVENT_BYTES
#define APP_EVENT_BYTES 1024u
#endif
#ifndef APP_LOGS
#define APP_LOGS 4u
#endif
#define APP_LOG_TEXT 97u
#define APP_IDLE_MS 50u
#define APP_LINK_DOWN_MS 5000u
#define APP_XFER_STALL_MS 5000u
#define APP_HOLD_MS 5000u
/* A step that will take longer is answered before it is done. */
#define APP_ACCEPT_US 50000u

/* HelloAck.caps, proto/README.md. */
#define APP_CAP_IDENTIFY 0x001u
#define APP_CAP_RESET 0x002u
#define APP_CAP_RESIDENT 0x004u
#define APP_CAP_STREAMED 0x008u
#define APP_CAP_EVALUATE 0x010u
#define APP_CAP_INFER 0x020u
#define APP_CAP_BUSY 0x040u
#define APP_CAP_NVM 0x080u
#define APP_CAP_WEAK_ENTROPY 0x100u
#define APP_CAP_PRECISION 0x200u
#define APP_CAP_DFP16 0x400u
#define APP_CAP_GRAPHS 0x800u
#define APP_CAP_BEST_ON_HOST 0x1000u
#define APP_CAP_TASKS 0x2000u
#define APP_CAP_FROZEN 0x4000u
#define APP_CAP_CAPTURE 0x8000u
#define APP_CAP_REDUCED 0x10000u
#define APP_CAP_NO_CONV 0x20000u

#define APP_STEER 8u

/* 0: for boards without non-volatile memory; hal_t.nvm is then not looked at. */
#ifndef APP_NVM
#define APP_NVM 1
#endif

/* 0: for boards that take no windows of a sensor; hal_t.sensor is then not looked at. */
#ifndef APP_CAPTURE
#define APP_CAPTURE 1
#endif

/* An epoch's record, kept until the host has acknowledged it. Only the model's layers are there. */
typedef struct {
  uint32_t event_id;
  uint32_t step_us;
  odt_epoch_record_t record;
} app_epoch_t;
#define APP_EPOCH_BYTES(layers)     \
  ((uint32_t)(sizeof(app_epoch_t) - \
              (ODT_MAX_LAYERS - (uint32_t)(layers)) * sizeof(odt_layer_epoch_t)))

typedef struct {
  const char* board; /* at most 16 characters each */
  const char* core;
  const uint8_t* uid;
  uint8_t uid_size;     /* 8..16 */
  uint8_t reset_reason; /* odt.device.v1.ResetReason */
  uint32_t reset_count; /* of a counter that survives a reset */
  uint32_t extra_caps;  /* beside those the app has by itself: IDENTIFY and up follow hal_t */
  uint32_t max_poll_ms; /* longest turn of app_poll */
  uint32_t rx_window;   /* bytes the receive ring takes in flight, beside one control frame */
  uint8_t* arena;
  uint32_t arena_size;
  void* epochs;            /* ring of unacknowledged epoch records, 8-byte aligned */
  uint32_t epoch_bytes;    /* at least one of ODT_MAX_LAYERS */
  uint32_t epoch_capacity; /* most of them, however short */
  uint32_t step_delay_ms;  /* the simulator's slower core; 0: none */
  const uint8_t* build_id; /* of the image, APP_BUILD_ID bytes; NULL: not known */
} app_config_t;

/* Pieces of the arena, from its start on, in this order. The trainer lies at its end. */
typedef enum {
  APP_REGION_IMAGE,
  APP_REGION_TRAIN, /* order of SampleRole */
  APP_REGION_HELDOUT,
  APP_REGION_TEST,
  APP_REGION_SLOT0,
  APP_REGION_SLOT1,
  APP_REGION_INFER,
  APP_REGION_EVAL, /* confusion counts */
#if APP_CAPTURE
  APP_REGION_CAPTURE, /* windows of the sensor */
#endif
  APP_REGIONS
} app_region_id_t;

typedef struct {
  uint32_t at, capacity, size;
  uint32_t batch_id;
  bool valid;
} app_region_t;

typedef enum {
  APP_TRAINER_NONE,
  APP_TRAINER_IMAGE,   /* holds the image's weights only: may be dropped and made again */
  APP_TRAINER_WEIGHTS, /* weights as pushed, no training state */
  APP_TRAINER_STATE,   /* a state as pushed, no run yet */
  APP_TRAINER_RUN,
} app_trainer_kind_t;

typedef struct {
  bool active;
  bool gap; /* asked to go back; silent until progress */
  uint8_t resource, index;
  uint32_t id, size, crc_want;
  uint32_t at; /* in: next byte expected; out: next byte to send */
  uint32_t crc;
  uint32_t end; /* out: the host takes up to here */
  uint32_t version;
  uint32_t batch_id;
  uint32_t progress_ms;
  odt_error_t error; /* status != OK: the transfer failed; COMMIT tells why */
  uint32_t last_committed;
} app_xfer_t;

/* What comes in for the trainer, STATE and WEIGHTS: the head, until it says how to lay that out. */
typedef struct {
  bool planned;
  uint8_t size;
  uint8_t bytes[208];
  uint32_t fed; /* bytes that the trainer has taken */
} app_head_t;

typedef struct {
  uint32_t id; /* 0: none yet */
  uint8_t role;
  bool active, done;
  bool confusion;
  uint32_t next, total, correct, seq;
  uint32_t step; /* of the weights it was made with */
  uint64_t loss;
} app_eval_t;

/* A streamed step that was answered with ACCEPTED. */
typedef struct {
  bool waits, failed;
  uint8_t slot;
  uint32_t step, batch_id;
  odt_error_t error; /* where it failed: told once */
} app_later_t;

/* A change of a layer's precision that the host asked for; kept when done, for repetitions. */
typedef struct {
  uint32_t step; /* in force from it on */
  uint8_t layer, k;
  bool done;
} app_steer_t;

typedef struct {
  uint8_t state; /* odt.device.v1.JobState */
  bool streamed, hold_at_epoch;
  bool has_last;
  bool guard_eval_active;
  uint32_t attempt;
  uint32_t telemetry_every;
  uint32_t hold_since_ms;
  uint32_t last_step_ms;
  uint64_t epoch_us;
  uint32_t epoch_steps;
  uint32_t step_us; /* of the last streamed step; 0: none yet */
  app_later_t later;
  uint32_t steer_count;
  app_eval_t guard_eval;
  uint8_t run_id[16];
  odt_run_spec_t spec;
  odt_step_record_t last;
  app_steer_t steer[APP_STEER];
} app_job_t;

typedef struct {
  uint16_t size; /* encoded; 0: an epoch record, by reference */
  uint32_t epoch;
} app_event_t;

typedef struct {
  uint32_t used;
  uint32_t count;
  uint32_t next; /* id of the next event */
  uint32_t send; /* id of the next event to send */
  uint32_t dropped;
  app_event_t entry[APP_EVENTS];
  uint8_t bytes[APP_EVENT_BYTES];
} app_events_t;

typedef struct {
  uint32_t first, count;
  uint32_t sequence;
  uint32_t dropped, dropped_total;
  struct {
    uint8_t level;
    char text[APP_LOG_TEXT];
  } line[APP_LOGS];
} app_logs_t;

/* What waits to be sent, one bit each; encoded when the transmitter is free. */
#define APP_TX_EPOCH_AGAIN 0x01u /* before the answer to GET_EPOCH */
#define APP_TX_RSP 0x02u
#define APP_TX_HELLO_ACK 0x04u
#define APP_TX_NEED_HELLO 0x08u
#define APP_TX_LINK_ERR 0x10u
#define APP_TX_WINDOW 0x20u
#define APP_TX_PONG 0x40u
#define APP_TX_BUSY 0x80u

typedef struct {
  frame_decoder_t decoder;
  uint32_t tx_size, tx_at;
  uint32_t tx_progress_ms;
  uint32_t pending;
  uint16_t session; /* 0: none */
  uint64_t session64;
  uint32_t mtu;
  uint32_t last_rx_ms;
  uint32_t need_hello_ms;
  bool need_hello_sent;
  uint64_t boot_id; /* 0: no HELLO yet */
  uint32_t hello_id, pong_id;
  uint16_t hello_session;
  bool hello_refused;
  uint32_t link_err_reason, link_err_limit, link_err_got;
  uint32_t window_id, window_offset, window_end;
  bool window_retransmit;
  uint8_t window_status;
  uint32_t busy_ms;
  bool has_request;
  uint32_t request_id;
  uint16_t rsp_size;
  uint8_t rsp[APP_RSP_MAX];
  uint8_t rx[FRAME_DECODER_SIZE(APP_MTU)];
  uint8_t tx[FRAME_IN_PLACE_SIZE(APP_MTU)];
} app_link_t;

#define APP_NVM_HEAD 128u

/* A commit as the head of its slot says. */
typedef struct {
  uint32_t sequence; /* 0: none */
  uint8_t kind;      /* odt.device.v1.NvmKind */
  uint8_t flags;
  uint32_t body, crc;                             /* bytes behind the head, their CRC-32 */
  uint32_t classes, image, content, best, sensor; /* bytes of each part, in this order */
  uint32_t sensor_crc;                            /* of the last part */
  uint32_t step, attempt;
  uint32_t writes; /* of the slot, this one included */
  uint8_t run_id[16], hash[32], model[16];
} app_nvm_head_t;

typedef struct {
  app_nvm_head_t newest; /* that is whole */
  app_nvm_head_t next;   /* of the commit under way */
  uint32_t writes[2];    /* of each slot */
  uint32_t sequence;     /* highest ever seen */
  uint8_t slot;          /* of the newest; under way: of the other */
  uint8_t work, said;
  bool restored, restoring_resident;
  uint32_t at, erased, begin_ms;
  uint32_t every;     /* steps of the run from commit to commit; 0: on request */
  uint32_t commit_id; /* of the last one asked for, and how it ended */
  uint32_t under_way; /* commit_id of the one under way; 0: by itself */
  odt_error_t error;
} app_nvm_t;

/* What code asks for often comes first: short offsets make short instructions. */
typedef struct {
  const app_config_t* config;
  uint8_t set_stale; /* bit a set: the hash of that resident set is of what it was before */
  bool has_model;
  bool identifying;
  bool reset_wanted;
  uint8_t trainer_kind;
  uint32_t trainer_bytes;
  uint32_t epoch_first, epoch_count; /* in the ring of config->epochs */
  uint32_t epoch_again;
  uint32_t identify_until_ms;
  uint32_t reset_at_ms;
  hal_t hal;
  app_eval_t eval;
  app_region_t region[APP_REGIONS];
  app_xfer_t in, out;
  app_job_t job;
  odt_run_spec_t trainer_spec;
#if APP_NVM
  app_nvm_t nvm;
#endif
  uint8_t set_hash[2][32]; /* SHA-256 of the resident train and held-out ODTS */
  app_head_t head;         /* of `in` */
  app_link_t link;
  app_events_t events;
  app_logs_t logs;
  odt_trainer_t trainer;
  odt_model_t model;
} app_t;

#endif
