/* What this image is for, as an ELF note of owner "ODT": board, core and version, each ended by 0.
 * A host finds it in an ELF file, and as well in the raw bytes of a .bin: daemon/flash/image.h. */
#include "app/types.h"

enum { kDescSize = 64 };
typedef struct {
  uint32_t name_size, desc_size, type;
  char name[4];
  char desc[kDescSize];
} odt_note_t;

__attribute__((section(".note.odt"), used, aligned(4))) static const odt_note_t note = {
    4u, kDescSize, 1u, "ODT", BOARD_FOLDER "\0" BOARD_CORE "\0" APP_FW_VERSION};
