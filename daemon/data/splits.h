#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"

namespace odt::data {

// Samples per split: counts, or (all 0) parts of what is there. Parts all 0: 80/10/10, or 90/10
// where there is an own test set (which then is the test split).
struct SplitOptions {
  std::uint32_t train = 0, heldout = 0, test = 0;
  std::uint32_t parts[3] = {0, 0, 0};
  std::uint32_t seed = 0;
  std::uint32_t skip = 0;  // leaves out the first of the shuffled pool: disjoint draws
  bool stratify = true;    // every class in proportion; off: as the shuffle falls
};

// Rows of a pool: class of each, and (may be empty) group of each. A group stays in one split.
struct SplitRows {
  std::vector<std::uint8_t> classes;
  std::vector<std::uint32_t> groups;
  std::uint32_t rows() const { return static_cast<std::uint32_t>(classes.size()); }
};

// Row numbers of each split, in the order in which they are stored. test: rows of the own test set
// where there is one, else of the pool.
struct Picks {
  std::vector<std::uint32_t> train, heldout, test;
  std::uint64_t wanted[3] = {0, 0, 0};  // samples of each that the options ask for
};

// Seeded: the same rows and options give the same picks on every machine. With groups and no counts
// the shares are those of whole groups, as near as these allow; with counts, rows above them are
// left out. Errors: INVALID_ARGUMENT (more wanted than there is, skip with groups).
Result<Picks> choose_splits(const SplitOptions& options, const SplitRows& pool,
                            const SplitRows& own_test);

}  // namespace odt::data
