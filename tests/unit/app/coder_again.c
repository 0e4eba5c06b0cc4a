#include "coder_again.h"

#include <stdalign.h>
#include <string.h>

#include "coder.h"

enum { kRoom = 4096 };
_Static_assert(sizeof(odt_device_v1_Request) <= kRoom, "a request's structure");
_Static_assert(sizeof(odt_device_v1_Response) <= kRoom, "a response's structure");

uint32_t coder_again(const char* name, const uint8_t* in, uint32_t n, uint8_t* out,
                     uint32_t limit) {
  static const struct {
    const char* name;
    const coder_message_t* message;
  } kTables[] = {{"Hello", &odt_device_v1_Hello_coder},
                 {"HelloAck", &odt_device_v1_HelloAck_coder},
                 {"NeedHello", &odt_device_v1_NeedHello_coder},
                 {"LinkErr", &odt_device_v1_LinkErr_coder},
                 {"Busy", &odt_device_v1_Busy_coder},
                 {"Pong", &odt_device_v1_Pong_coder},
                 {"Log", &odt_device_v1_Log_coder},
                 {"Window", &odt_device_v1_Window_coder},
                 {"Request", &odt_device_v1_Request_coder},
                 {"Response", &odt_device_v1_Response_coder},
                 {"StepRecord", &odt_device_v1_StepRecord_coder},
                 {"LayerEpoch", &odt_device_v1_LayerEpoch_coder},
                 {"JobChanged", &odt_device_v1_JobChanged_coder},
                 {"EvalResult", &odt_device_v1_EvalResult_coder},
                 {"NvmCommitted", &odt_device_v1_NvmCommitted_coder}};
  alignas(8) uint8_t structure[kRoom];
  for (uint32_t i = 0; i < sizeof kTables / sizeof kTables[0]; i++) {
    if (strcmp(kTables[i].name, name) != 0) continue;
    memset(structure, 0, sizeof structure);
    if (!coder_get(kTables[i].message, in, n, structure)) return CODER_AGAIN_REFUSED;
    coder_out_t o = {.bytes = out, .limit = limit};
    coder_put(&o, kTables[i].message, structure);
    return o.used;
  }
  return CODER_AGAIN_UNKNOWN;
}
