/* What the compiler calls: blocks of bytes, and division of 64 bits. The C library's and libgcc's
 * are four times as long, for speed that nothing here needs: what is hot has loops of its own. */
#include <stddef.h>
#include <stdint.h>

#include "divide.h"

#ifdef __ARM_FEATURE_UNALIGNED
#define UNALIGNED 1
typedef uint32_t __attribute__((may_alias, aligned(1))) word_t;
#else
#define UNALIGNED 0 /* then only aligned ones are touched */
typedef uint32_t __attribute__((may_alias)) word_t;
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

#ifdef __ARM_FEATURE_IDIV
#define DIGITS 1
#else
#define DIGITS 0
#endif

ALONE BASE quotient_t __aeabi_uldivmod(uint64_t n, uint64_t d) {
  divided_t r = divide_unsigned(n, d, DIGITS);
  return (quotient_t){r.quotient, r.rest};
}

static inline divided_t call(uint64_t n, uint64_t d) {
  quotient_t r = __aeabi_uldivmod(n, d);
  return (divided_t){r[0], r[1]};
}

ALONE BASE quotient_t __aeabi_ldivmod(int64_t n, int64_t d) {
  divided_t r = divide_signed(n, d, call);
  return (quotient_t){r.quotient, r.rest};
}
