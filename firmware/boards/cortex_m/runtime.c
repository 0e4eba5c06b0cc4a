/* What the compiler calls: blocks of bytes, and division of 64 bits. The C library's and libgcc's
 * are four times as long, for speed that nothing here needs: what is hot has loops of its own. */
#include <stddef.h>
#include <stdint.h>

typedef uint32_t __attribute__((may_alias, aligned(1))) word_t;
#ifdef __ARM_FEATURE_UNALIGNED
#define UNALIGNED 1
#else
#define UNALIGNED 0 /* then only aligned ones are touched */
#endif

/* The compiler must not make calls of these functions out of their loops; pointers stay pointers.
 */
#define ALONE __attribute__((used, optimize("no-tree-loop-distribute-patterns")))

void* memcpy(void* restrict to, const void* restrict from, size_t n);
void* memmove(void* to, const void* from, size_t n);
void* memset(void* to, int value, size_t n);
int memcmp(const void* a, const void* b, size_t n);

ALONE void* memmove(void* to, const void* from, size_t n) {
  uint8_t* t = to;
  const uint8_t* f = from;
  if ((uintptr_t)t - (uintptr_t)f < n) { /* what is read would be overwritten: from the end */
    while (n > 0) {
      n--;
      t[n] = f[n];
    }
    return to;
  }
  if (UNALIGNED || (((uintptr_t)t | (uintptr_t)f) & 3u) == 0) {
    word_t* w = (word_t*)(void*)t;
    const word_t* v = (const word_t*)(const void*)f;
    if (n >= 4u) {
      const word_t* end = v + n / 4u;
      do *w++ = *v++;
      while (v != end);
    }
    t = (uint8_t*)w;
    f = (const uint8_t*)v;
    n &= 3u;
  }
  while (n-- > 0) *t++ = *f++;
  return to;
}

/* No call: the compiler would make one of memcpy out of it. */
ALONE void* memcpy(void* restrict to, const void* restrict from, size_t n)
    __attribute__((alias("memmove")));

ALONE void* memset(void* to, int value, size_t n) {
  uint8_t* t = to;
  uint32_t word = 0x01010101u * (uint8_t)value;
  for (; n > 0 && ((uintptr_t)t & 3u) != 0; n--) *t++ = (uint8_t)word;
  if (n >= 4u) {
    uint8_t* end = t + (n & ~3u);
    do {
      *(word_t*)(void*)t = word;
      t += 4;
    } while (t != end);
    n &= 3u;
  }
  while (n-- > 0) *t++ = (uint8_t)word;
  return to;
}

ALONE int memcmp(const void* a, const void* b, size_t n) {
  const uint8_t *x = a, *y = b;
  for (; n > 0; n--, x++, y++) {
    if (*x != *y) return *x - *y;
  }
  return 0;
}

/* ---- division: quotient in r0 and r1, remainder in r2 and r3, by the procedure call standard's
 * base variant, also where floats have registers ---- */

typedef uint64_t __attribute__((vector_size(16))) quotient_t;
#define BASE __attribute__((pcs("aapcs")))
BASE quotient_t __aeabi_uldivmod(uint64_t n, uint64_t d);
BASE quotient_t __aeabi_ldivmod(int64_t n, int64_t d);

static uint32_t zeros(uint64_t v) {
  uint32_t high = (uint32_t)(v >> 32);
  return high != 0 ? (uint32_t)__builtin_clz(high)
                   : 32u + (uint32_t)__builtin_clz((uint32_t)v | 1u);
}

#ifdef __ARM_FEATURE_IDIV
/* high < d: the quotient has 32 bits, which come in two digits of 16. */
static uint32_t two_digits(uint32_t high, uint32_t low, uint32_t d, uint32_t* rest) {
  uint32_t q = 0, shift = (uint32_t)__builtin_clz(d);
  uint64_t n = ((uint64_t)high << 32 | low) << shift;
  high = (uint32_t)(n >> 32);
  low = (uint32_t)n;
  d <<= shift;
  for (int i = 0; i < 2; i++) {
    uint32_t digit = high / (d >> 16); /* at most 2 too large */
    uint64_t part = (uint64_t)high << 16 | low >> 16, product = (uint64_t)digit * d;
    for (; product > part; digit--) product -= d;
    high = (uint32_t)(part - product);
    low <<= 16;
    q = q << 16 | digit;
  }
  *rest = high >> shift;
  return q;
}
#endif

ALONE BASE quotient_t __aeabi_uldivmod(uint64_t n, uint64_t d) {
  uint64_t q = 0;
  if (n <= UINT32_MAX && d <= UINT32_MAX) {
    uint32_t n32 = (uint32_t)n, d32 = (uint32_t)d, q32 = n32 / d32;
    return (quotient_t){q32, n32 - q32 * d32};
  }
#ifdef __ARM_FEATURE_IDIV
  if (d <= UINT32_MAX) {
    uint32_t high = (uint32_t)(n >> 32), d32 = (uint32_t)d, q32 = high / d32, rest;
    q = two_digits(high - q32 * d32, (uint32_t)n, d32, &rest);
    return (quotient_t){(uint64_t)q32 << 32 | q, rest};
  }
#endif
  int32_t shift = (int32_t)(zeros(d) - zeros(n));
  if (shift >= 0) d <<= shift;
  for (; shift >= 0; shift--, d >>= 1) {
    q <<= 1;
    if (n < d) continue;
    n -= d;
    q |= 1u;
  }
  return (quotient_t){q, n};
}

ALONE BASE quotient_t __aeabi_ldivmod(int64_t n, int64_t d) {
  uint64_t u = n < 0 ? 0u - (uint64_t)n : (uint64_t)n, v = d < 0 ? 0u - (uint64_t)d : (uint64_t)d;
  quotient_t r = __aeabi_uldivmod(u, v);
  uint64_t q = (n ^ d) < 0 ? 0u - r[0] : r[0], rest = n < 0 ? 0u - r[1] : r[1];
  return (quotient_t){q, rest};
}
