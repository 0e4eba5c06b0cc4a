/* Which inner loops are built in: ODT_KERNELS_C, ODT_KERNELS_DSP, ODT_KERNELS_MVE or
 * ODT_KERNELS_X86 of the build, else by what the core has. ODT_KERNELS_DSP on another machine
 * emulates the instructions, for tests. */
#ifndef ODT_KERNELS_VARIANT_H
#define ODT_KERNELS_VARIANT_H

#if !defined(ODT_KERNELS_C) && !defined(ODT_KERNELS_DSP) && !defined(ODT_KERNELS_MVE) && \
    !defined(ODT_KERNELS_X86)
#if defined(__ARM_FEATURE_MVE)
#define ODT_KERNELS_MVE
#elif defined(__ARM_FEATURE_DSP)
#define ODT_KERNELS_DSP
#elif defined(__x86_64__)
#define ODT_KERNELS_X86
#else
#define ODT_KERNELS_C
#endif
#endif

#endif
