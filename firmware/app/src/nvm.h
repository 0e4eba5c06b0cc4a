/* Between the sources of non-volatile memory.
 *
 * Two slots of equal size. A slot: head (128 bytes), then class weights (where they are not all
 * 64), model image, content (training state or weights), the guard's best weights, how windows of
 * the sensor are made (alone.h). The head is
 * written last; of two whole slots the higher sequence counts. A memory written in place keeps the
 * old head until then: its CRC-32 does not fit the new bytes any more.
 *
 * Head: "ODTN", u16 version (1; 2: with the sensor's part), u8 kind, u8 flags, u32 sequence, u32
 * body, u32 crc, u32 classes, u32 image, u32 content, u32 best, u32 step, u32 attempt, u32 writes,
 * run_id[16], hash[32], model hash[16], u32 sensor, u32 CRC-32 of that part, 4 bytes 0, u32 CRC-32
 * of the 124 bytes before.
 */
#ifndef ODT_APP_NVM_H
#define ODT_APP_NVM_H

#include "alone.h"

#define NVM_KIND(name) odt_device_v1_NvmKind_NVM_KIND_##name

#define NVM_RESIDENT 1u
#define NVM_BEST_ON_HOST 2u
#define NVM_DONE 4u

typedef enum {
  NVM_IDLE,
  NVM_BODY,
  NVM_HEAD,
  NVM_ERASE_OLD, /* the slot that is not the newest first: a cut between them leaves the newest */
  NVM_ERASE_NEWEST
} nvm_work_t;

typedef enum {
  NVM_SLOT_BLANK,
  NVM_SLOT_HERE,
  NVM_SLOT_FOREIGN, /* other version */
  NVM_SLOT_GARBAGE, /* not a head, or a torn one */
  NVM_SLOT_UNREAD   /* the memory does not answer */
} nvm_slot_state_t;

/* Bytes of one write: at most a page, and a divisor of all offsets here. */
static inline uint32_t nvm_part(const app_t* app) {
  return min_u32(app->hal.nvm->page, APP_NVM_HEAD);
}
uint32_t nvm_slot_at(const app_t* app, uint32_t slot);
uint32_t nvm_slot_bytes(const app_t* app); /* behind the head */
nvm_slot_state_t nvm_head_read(app_t* app, uint32_t slot, app_nvm_head_t* h);
void nvm_head_encode(const app_nvm_head_t* h, uint8_t out[APP_NVM_HEAD]);

/* What a commit of what is in memory now would take, whether it fits or not; kind 0: nothing. */
void nvm_measure(app_t* app, app_nvm_head_t* h);
/* Leaves out what does not fit beside the content. False: the content does not fit, with error. */
bool nvm_choose(const app_t* app, app_nvm_head_t* h, odt_error_t* err);
void nvm_body_read(app_t* app, const app_nvm_head_t* h, uint32_t at, uint8_t* out, uint32_t n);
void nvm_erase_begin(app_t* app, uint32_t commit_id);

#endif
