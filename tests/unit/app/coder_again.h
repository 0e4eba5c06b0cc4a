/* The board's coder for C++, which has another device.pb.h: reads a message and writes it again. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CODER_AGAIN_REFUSED 0xFFFFFFFFu
#define CODER_AGAIN_UNKNOWN 0xFFFFFFFEu
/* Bytes that the message takes; over `limit`: only so many were written. */
uint32_t coder_again(const char* name, const uint8_t* in, uint32_t n, uint8_t* out, uint32_t limit);

#ifdef __cplusplus
}
#endif
