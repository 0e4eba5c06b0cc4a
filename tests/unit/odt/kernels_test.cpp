// The inner loops of the variant built in, against plain loops over the matrices: every layout,
// storage, odd size, precision and rounding.
#include <gtest/gtest.h>

#include <cstring>

#include "fixture.h"
#include "kernels/matrix.h"
#include "round.h"

namespace odt::testing {
namespace {

// A weight matrix as the library holds it, and its 8-bit view.
struct Weights {
  uint32_t rows, cols;
  std::vector<uint64_t> memory;
  std::vector<int> view;  // [rows][cols]
  odt_matrix_t matrix{};

  int at(uint32_t r, uint32_t c) const { return view[r * cols + c]; }
};

int m_max(int k) { return k > 8 ? (127 << (k - 8)) + (1 << (k - 9)) - 1 : 127 >> (8 - k); }

Weights random_weights(Random& r, uint32_t rows, uint32_t cols, int k, bool packed) {
  Weights w{rows, cols, {}, {}, {}};
  uint8_t dtype = k > 8 ? ODT_S16 : ODT_S8;
  odt_layout_t lay = odt_layout(ODT_OP_CONV2D, rows * cols, rows, dtype);
  // Unpacked bytes end with the vector: reading past them is an error that a sanitizer sees.
  size_t bytes = packed ? odt_layout_bytes(&lay) : rows * cols;
  w.memory.assign((bytes + 7) / 8, 0);
  auto* base = reinterpret_cast<uint8_t*>(w.memory.data());
  if (!packed) base += w.memory.size() * 8 - bytes;
  for (uint32_t i = 0; i < rows * cols; i++) {
    int m = k == 8 && r.chance(3) ? -128 : r.range(-m_max(k), m_max(k));
    odt_store(base, dtype, packed ? odt_layout_index(&lay, i) : i, m);
    w.view.push_back(k > 8 ? (m + (1 << (k - 9))) >> (k - 8) : m);
  }
  w.matrix = {base, rows, cols, packed, k > 8, k > 8 ? k - 8 : 0, k > 8 ? 1 << (k - 9) : 0};
  return w;
}

int random_input(Random& r, int kind) {
  if (r.chance(10)) return 0;
  return kind == 0 ? r.range(-128, 127) : kind == 1 ? r.range(0, 255) : r.range(-1000, 1000);
}

template <class Fn>
void over_shapes(uint32_t seed, int times, Fn fn) {
  Random r(seed);
  for (int i = 0; i < times && !::testing::Test::HasFailure(); i++) {
    bool packed = r.chance(80);
    int k = packed ? r.range(2, 16) : 8;
    auto rows = static_cast<uint32_t>(r.range(1, 13)), cols = static_cast<uint32_t>(r.range(1, 40));
    SCOPED_TRACE("k " + std::to_string(k) + " rows " + std::to_string(rows) + " cols " +
                 std::to_string(cols) + (packed ? " packed" : ""));
    fn(r, random_weights(r, rows, cols, k, packed));
  }
}

TEST(Dot, FourColumns) {
  over_shapes(1, 600, [](Random& r, const Weights& w) {
    auto row = static_cast<uint32_t>(r.range(0, static_cast<int>(w.rows) - 1));
    auto rows = static_cast<uint32_t>(r.range(1, static_cast<int>(w.rows - row)));
    uint32_t col = static_cast<uint32_t>(r.range(0, static_cast<int>(w.cols) - 1)) / 4 * 4;
    auto n = static_cast<uint32_t>(r.range(1, static_cast<int>(w.cols - col)));
    n = n < 4 ? w.cols - col : col + n < w.cols ? n / 4 * 4 : n;
    uint32_t tile = (n + 3) / 4 * 4;
    int kind = r.range(0, 2);
    alignas(8) int16_t x[48 * 4] = {};
    std::vector<int64_t> want(4ull * rows);
    std::vector<int32_t> acc(4ull * rows);
    for (size_t i = 0; i < acc.size(); i++) want[i] = acc[i] = r.range(-1000, 1000);
    for (uint32_t c = 0; c < 4; c++) {
      for (uint32_t j = 0; j < n; j++) {
        int v = random_input(r, kind);
        x[odt_slot4(w.matrix.wide, tile, j, c)] = static_cast<int16_t>(v);
        for (uint32_t i = 0; i < rows; i++) want[4 * i + c] += v * w.at(row + i, col + j);
      }
    }
    odt_dot4(&w.matrix, row, rows, col, n, x, acc.data());
    ASSERT_EQ(std::vector<int64_t>(acc.begin(), acc.end()), want);
  });
}

TEST(Dot, OneColumn) {
  over_shapes(2, 600, [](Random& r, const Weights& w) {
    auto row = static_cast<uint32_t>(r.range(0, static_cast<int>(w.rows) - 1));
    auto rows = static_cast<uint32_t>(r.range(1, static_cast<int>(w.rows - row)));
    int kind = r.range(0, 2);
    alignas(8) int16_t x[48] = {};
    std::vector<int32_t> acc(rows);
    std::vector<int64_t> want(rows);
    for (uint32_t i = 0; i < rows; i++) want[i] = acc[i] = r.range(-1000, 1000);
    for (uint32_t j = 0; j < w.cols; j++) {
      int v = random_input(r, kind);
      x[odt_slot1(w.matrix.wide, j)] = static_cast<int16_t>(v);
      for (uint32_t i = 0; i < rows; i++) want[i] += v * w.at(row + i, j);
    }
    odt_dot1(&w.matrix, row, rows, 0, w.cols, x, acc.data());
    ASSERT_EQ(std::vector<int64_t>(acc.begin(), acc.end()), want);
  });
}

TEST(Dot, Transposed) {
  over_shapes(3, 600, [](Random& r, const Weights& w) {
    auto row = static_cast<uint32_t>(r.range(0, static_cast<int>(w.rows) - 1));
    auto rows = static_cast<uint32_t>(r.range(1, static_cast<int>(w.rows - row)));
    uint32_t per = odt_per_word(&w.matrix), all = odt_words(&w.matrix);
    auto first = static_cast<uint32_t>(r.range(0, static_cast<int>(all) - 1)) / 2 * 2;
    uint32_t words = all - first, col = first * per;
    alignas(8) int16_t v[16] = {};
    for (uint32_t i = 0; i < rows; i++) v[i] = static_cast<int16_t>(random_input(r, 0));
    std::vector<int32_t> acc(words * per);
    std::vector<int64_t> want(w.cols - col);
    for (uint32_t j = 0; j < want.size(); j++) {
      want[j] = acc[j] = r.range(-1000, 1000);
      for (uint32_t i = 0; i < rows; i++) want[j] += v[i] * w.at(row + i, col + j);
    }
    odt_dot_t(&w.matrix, row, rows, col, words, v, acc.data());
    acc.resize(want.size());
    ASSERT_EQ(std::vector<int64_t>(acc.begin(), acc.end()), want);
  });
}

TEST(Outer, SumsAndMeasures) {
  Random r(4);
  for (int i = 0; i < 500; i++) {
    auto n = static_cast<uint32_t>(4 * r.range(1, 8));
    int kind = r.range(0, 2);
    alignas(8) int16_t x[32 * 8], dy[8];
    for (int16_t& d : dy) d = static_cast<int16_t>(random_input(r, 0));
    std::vector<int32_t> g(n);
    std::vector<int64_t> want(n);
    uint32_t or_abs = 0;
    for (uint32_t j = 0; j < n; j++) {
      int64_t sum = 0;
      for (uint32_t s = 0; s < 8; s++) {
        x[j * 8 + s] = static_cast<int16_t>(random_input(r, kind));
        sum += x[j * 8 + s] * dy[s];
      }
      or_abs |= static_cast<uint32_t>(std::abs(sum));
      g[j] = r.range(-1000, 1000);
      want[j] = g[j] + sum;
    }
    ASSERT_EQ(odt_outer_measure(x, n, dy), or_abs);
    bool add = r.chance(50);
    if (!add) {
      for (uint32_t j = 0; j < n; j++) want[j] -= g[j];
    }
    odt_outer(g.data(), x, n, dy, add);
    ASSERT_EQ(std::vector<int64_t>(g.begin(), g.end()), want);
  }
}

// ---- updates: one row of a layer, weight by weight through odt_update_one
// ------------------------

odt_update_t random_update(Random& r, int k) {
  odt_update_t u{};
  u.rounding = static_cast<uint8_t>(r.range(1, 4));
  u.literal = k == 8 && r.chance(10);
  u.sum = r.chance(50);
  u.s = r.chance(10) ? r.range(-8, 34) : r.range(1, 20);
  u.s2 = u.literal ? r.range(0, 20) : 0;
  if (u.literal && u.s < 0) u.s = 0;
  u.apply = r.chance(90);
  u.measure = !u.apply || r.chance(40);
  u.d_clip = u.apply && u.measure ? 1 << r.range(0, k > 8 ? 12 : 7) : INT32_MAX;
  u.m_hi = m_max(k);
  u.m_lo = u.literal ? -128 : -u.m_hi;
  u.sr_seed = r.word();
  u.step = r.word();
  u.layer = static_cast<uint32_t>(r.range(0, 15));
  return u;
}

TEST(Update, WordsEqualOneByOne) {
  Random r(5);
  for (int i = 0; i < 20000 && !HasFailure(); i++) {
    int k = r.range(2, 16);
    odt_update_t u = random_update(r, k);
    auto rows = static_cast<uint32_t>(r.range(1, 9)), cols = static_cast<uint32_t>(r.range(1, 32));
    bool in_out = r.chance(50);
    uint8_t dtype = k > 8 ? ODT_S16 : ODT_S8;
    odt_layout_t lay = odt_layout(in_out ? ODT_OP_LINEAR : ODT_OP_CONV2D, rows * cols, rows, dtype);
    std::vector<uint64_t> a(odt_layout_bytes(&lay) / 8 + 1, 0);
    auto* bytes = reinterpret_cast<uint8_t*>(a.data());
    for (uint32_t j = 0; j < rows * cols; j++) {
      int limit = m_max(k);
      int m = r.chance(20) ? (r.chance(50) ? limit : -limit) : r.range(-limit, limit);
      if (k == 8 && r.chance(10)) m = -128;
      odt_store(bytes, dtype, odt_layout_index(&lay, j), m);
    }
    auto o = static_cast<uint32_t>(r.range(0, static_cast<int>(rows) - 1));
    uint32_t n = (cols + 3) / 4 * 4;
    std::vector<int32_t> g(n, 0);
    int size = r.range(1, 30);
    for (uint32_t j = 0; j < cols; j++) {
      g[j] = static_cast<int32_t>(r.word()) >> (31 - size);
      if (r.chance(20)) g[j] = 0;
      // Ties, and powers of two on either side of them.
      if (r.chance(20) && u.s > 0 && u.s < 30)
        g[j] = (r.chance(50) ? 1 : -1) << (u.s - r.range(0, 1));
      g[j] = std::clamp(g[j], -(1 << 30), 1 << 30);
    }
    if (!u.measure) {  // what the pass before has measured
      for (int32_t v : g) u.or_abs |= static_cast<uint32_t>(std::abs(v));
    }
    std::vector<uint64_t> b = a;
    odt_update_t words = u, one = u;
    (k > 8 ? words.m16 = reinterpret_cast<int16_t*>(a.data()) : nullptr);
    (k > 8 ? one.m16 = reinterpret_cast<int16_t*>(b.data()) : nullptr);
    if (k <= 8) {
      words.m8 = reinterpret_cast<int8_t*>(a.data());
      one.m8 = reinterpret_cast<int8_t*>(b.data());
    }
    odt_update_prepare(&words);
    odt_update_words(&words, &lay, o, 0, g.data(), n);
    for (uint32_t j = 0; j < cols; j++) {
      uint32_t index = in_out ? j * rows + o : o * cols + j;
      odt_update_one(&one, index, odt_layout_at(&lay, o, j), g[j]);
    }
    SCOPED_TRACE("k " + std::to_string(k) + " rounding " + std::to_string(u.rounding) + " s " +
                 std::to_string(u.s) + " clip " + std::to_string(u.d_clip));
    ASSERT_EQ(a, b);
    ASSERT_EQ(words.or_abs, one.or_abs);
    ASSERT_EQ(words.sum_abs, one.sum_abs);
    ASSERT_EQ(words.nonzero, one.nonzero);
    ASSERT_EQ(words.abs_delta, one.abs_delta);
  }
}

TEST(Layout, BytesInOnnxOrderAndBothWidths) {
  Random r(6);
  for (int i = 0; i < 300; i++) {
    auto rows = static_cast<uint32_t>(r.range(1, 11)), cols = static_cast<uint32_t>(r.range(1, 23));
    odt_layer_t l{};
    l.in_out = r.chance(50);
    l.n_weights = rows * cols;
    l.n_offsets = rows;
    l.dtype = ODT_S8;
    std::vector<int16_t> memory(odt_layer_bytes(&l, ODT_S16) / 2 + 1, 0);
    memory.back() = 0x5A5A;
    l.m = memory.data();
    std::vector<uint8_t> values(rows * cols), out(rows * cols);
    for (uint8_t& v : values) v = static_cast<uint8_t>(r.word());
    odt_layout_t lay = odt_layer_layout(&l, ODT_S8);
    for (uint32_t at = 0; at < values.size();) {  // in pieces
      uint32_t n =
          std::min(static_cast<uint32_t>(r.range(1, 9)), static_cast<uint32_t>(values.size()) - at);
      odt_layout_write(&lay, static_cast<uint8_t*>(l.m), at, n, values.data() + at);
      at += n;
    }
    odt_layout_read(&lay, static_cast<uint8_t*>(l.m), 0, rows * cols, out.data());
    ASSERT_EQ(out, values);
    for (uint32_t j = 0; j < rows * cols; j++) {
      ASSERT_EQ(odt_layer_get(&l, j), static_cast<int8_t>(values[j]));
    }
    std::vector<int16_t> narrow = memory;
    odt_layer_widen(&l);
    ASSERT_EQ(l.dtype, ODT_S16);
    for (uint32_t j = 0; j < rows * cols; j++) {
      ASSERT_EQ(odt_layer_get(&l, j), static_cast<int8_t>(values[j]));
    }
    odt_layout_t wide = odt_layer_layout(&l, ODT_S16);
    std::vector<uint8_t> two(2ull * rows * cols), three(3);
    odt_layout_read(&wide, static_cast<uint8_t*>(l.m), 0, 2 * rows * cols, two.data());
    if (two.size() > 4) {
      odt_layout_read(&wide, static_cast<uint8_t*>(l.m), 1, 3, three.data());
      ASSERT_EQ(std::memcmp(three.data(), two.data() + 1, 3), 0) << "a read from the middle";
    }
    odt_layer_narrow(&l);
    ASSERT_EQ(std::memcmp(memory.data(), narrow.data(), odt_layer_bytes(&l, ODT_S8)), 0);
    ASSERT_EQ(memory.back(), 0x5A5A) << "wrote behind its weights";
  }
}

}  // namespace
}  // namespace odt::testing
