/* SHA-256, FIPS 180-4. */
#include <string.h>

#include "odt/odt.h"

static const uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t ror(uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }

static uint32_t be32(const uint8_t* p) {
  return ((uint32_t)p[0] << 24) | ((uint32_t)p[1] << 16) | ((uint32_t)p[2] << 8) | p[3];
}

static void compress(uint32_t state[8], const uint8_t* block) {
  uint32_t w[16];
  uint32_t v[8];
  memcpy(v, state, sizeof v);
  for (int i = 0; i < 16; i++) w[i] = be32(block + 4 * i);
  for (int i = 0; i < 64; i++) {
    if (i >= 16) {
      uint32_t a = w[(i + 1) & 15], b = w[(i + 14) & 15];
      w[i & 15] += w[(i + 9) & 15] + (ror(a, 7) ^ ror(a, 18) ^ (a >> 3)) +
                   (ror(b, 17) ^ ror(b, 19) ^ (b >> 10));
    }
    uint32_t t1 = v[7] + (ror(v[4], 6) ^ ror(v[4], 11) ^ ror(v[4], 25)) +
                  ((v[4] & v[5]) ^ (~v[4] & v[6])) + kRound[i] + w[i & 15];
    uint32_t t2 = (ror(v[0], 2) ^ ror(v[0], 13) ^ ror(v[0], 22)) +
                  ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    for (int j = 7; j > 0; j--) v[j] = v[j - 1];
    v[4] += t1;
    v[0] = t1 + t2;
  }
  for (int i = 0; i < 8; i++) state[i] += v[i];
}

void odt_sha256_init(odt_sha256_t* s) {
  static const uint32_t kInit[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(s->state, kInit, sizeof kInit);
  s->bytes = 0;
}

void odt_sha256_update(odt_sha256_t* s, const void* data, uint32_t n) {
  const uint8_t* p = data;
  while (n > 0) {
    uint32_t fill = (uint32_t)(s->bytes & 63);
    if (fill == 0 && n >= 64) {
      compress(s->state, p);
      p += 64;
      n -= 64;
      s->bytes += 64;
      continue;
    }
    uint32_t take = 64 - fill < n ? 64 - fill : n;
    memcpy(s->block + fill, p, take);
    p += take;
    n -= take;
    s->bytes += take;
    if (fill + take == 64) compress(s->state, s->block);
  }
}

void odt_sha256_final(odt_sha256_t* s, uint8_t hash[32]) {
  uint64_t bits = s->bytes * 8;
  uint32_t fill = (uint32_t)(s->bytes & 63);
  s->block[fill++] = 0x80;
  if (fill > 56) {
    memset(s->block + fill, 0, 64 - fill);
    compress(s->state, s->block);
    fill = 0;
  }
  memset(s->block + fill, 0, 56 - fill);
  for (int i = 0; i < 8; i++) s->block[56 + i] = (uint8_t)(bits >> (56 - 8 * i));
  compress(s->state, s->block);
  for (int i = 0; i < 32; i++) hash[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}
