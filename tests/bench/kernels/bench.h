/* Measuring inside a bench image: regions of instructions, and lines on the UART.
 *   M name instructions    one measured region; the plugin counts the same regions in this order
 *   H name hex             hash of a result
 *   D name deltas zeros    deltas at the first layer's output, and how many of them are 0
 *   N name value           any other number
 *   END                    everything was done */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>

#include "odt/odt.h"
#include "odt/trainer.h"

/* Instructions between the two calls, from SysTick; its wrap is the only interrupt. */
void bench_start(void);
uint32_t bench_stop(void);

void bench_text(const char* text);
void bench_number(uint32_t value);
void bench_measured(const char* name, uint32_t index, uint32_t instructions);
void bench_hash(const char* name, const uint8_t* hash, uint32_t bytes);
void bench_value(const char* name, uint32_t value);
_Noreturn void bench_fail(const char* what);

/* xorshift32 with a fixed start per user. */
uint32_t bench_random(uint32_t* state);

/* Model images, made by models.py. */
extern const uint8_t kModelStep[], kModelHead[], kModelArc[], kModelConvA[], kModelConvAHead[],
    kModelTail[], kModelConv1[], kModelConv2[], kModelDfp[], kModelOddDense[], kModelOddConv[],
    kModelOddDfp[];
extern const uint32_t kModelStepBytes, kModelHeadBytes, kModelArcBytes, kModelConvABytes,
    kModelConvAHeadBytes, kModelTailBytes, kModelConv1Bytes, kModelConv2Bytes, kModelDfpBytes,
    kModelOddDenseBytes, kModelOddConvBytes, kModelOddDfpBytes;

#define BENCH_ARENA (512u * 1024u)
extern uint8_t bench_arena[];

/* The steps of a run one by one, the hash of the state after them, and how
 * many deltas at the first layer's output were 0. */
void bench_steps(const char* name, const uint8_t* image, uint32_t bytes,
                 const odt_run_spec_t* spec);

void bench_niti(void);
void bench_dfp(void);
void bench_f32(void);
void bench_dfp_kernels(void);

#endif
