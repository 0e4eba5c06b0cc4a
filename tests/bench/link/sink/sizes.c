/* Bytes of static memory, as sizes of symbols (arm-none-eabi-nm -S). */
#include "app/types.h"

extern char size_link[], size_events[], size_logs[], size_transfers[];
char size_link[sizeof(app_link_t)];
char size_events[sizeof(app_events_t)];
char size_logs[sizeof(app_logs_t)];
char size_transfers[2 * sizeof(app_xfer_t)];
