/* Uid and boot seed. */
#include "board.h"

/* Written before start by whoever starts a board that has no uid register of its own (QEMU's
 * generic loader: deploy/qemu-board.sh). On silicon: the chip's uid and random number generator. */
#define ID_MAGIC 0x3144494Fu /* "OID1" */
typedef struct {
  uint32_t magic;
  uint32_t uid_size;
  uint8_t uid[16];
  uint64_t seed;
} loaded_id_t;

__attribute__((section(".identity"))) static volatile loaded_id_t loaded_id;

static bool is_loaded(void) {
  return loaded_id.magic == ID_MAGIC && loaded_id.uid_size >= 8 && loaded_id.uid_size <= 16;
}

static uint8_t loaded_uid(uint8_t uid[16]) {
  for (uint32_t i = 0; i < 16; i++) uid[i] = is_loaded() ? loaded_id.uid[i] : (uint8_t)(0xE0u + i);
  return (uint8_t)(is_loaded() ? loaded_id.uid_size : 8u);
}

void identity_read(board_identity_t* id) {
  id->uid_size = board_uid(id->uid);
  if (id->uid_size == 0) id->uid_size = loaded_uid(id->uid);
  id->has_seed = board_entropy(&id->seed);
  if (!id->has_seed) {
    id->has_seed = is_loaded();
    id->seed = is_loaded() ? loaded_id.seed : 0;
  }
}
