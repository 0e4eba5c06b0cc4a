#include "data/splits.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <numeric>

#include "data/sampling.h"

namespace odt::data {
namespace {

using Counts = std::vector<std::uint32_t>;

std::uint64_t sum(const Counts& n) { return std::accumulate(n.begin(), n.end(), std::uint64_t{0}); }

// Shares `total` out in proportion to `weights` (largest remainder; ties to the first). total <=
// the sum of the weights, so no share is above its weight.
Counts apportion(std::uint64_t total, const Counts& weights) {
  const std::uint64_t all = sum(weights);
  Counts shares(weights.size(), 0);
  if (all == 0) return shares;
  std::vector<std::pair<std::uint64_t, std::size_t>> rest;
  std::uint64_t given = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::uint64_t exact = total * weights[i];
    shares[i] = static_cast<std::uint32_t>(exact / all);
    given += shares[i];
    rest.emplace_back(exact % all, i);
  }
  std::stable_sort(rest.begin(), rest.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; given < total; ++i, ++given) ++shares[rest[i].second];
  return shares;
}

struct Wanted {
  std::uint64_t train = 0, heldout = 0, test = 0;
  bool counted = false;
};

Result<Wanted> wanted(const SplitOptions& o, std::uint32_t rows, std::uint32_t test_rows) {
  const bool own_test = test_rows > 0;
  if (o.skip >= rows)
    return absl::InvalidArgumentError(absl::StrCat("skip ", o.skip, " of ", rows, " samples"));
  const std::uint32_t left = rows - o.skip;
  Wanted w{o.train, o.heldout, o.test, true};
  const std::uint64_t parts = std::uint64_t{o.parts[0]} + o.parts[1] + (own_test ? 0 : o.parts[2]);
  if (w.train + w.heldout + w.test == 0) {
    w.counted = false;
    w.heldout = parts == 0 ? left / 10 : std::uint64_t{left} * o.parts[1] / parts;
    w.test = parts == 0 ? left / 10 : std::uint64_t{left} * o.parts[2] / parts;
    if (own_test) w.test = test_rows;
    w.train = left - w.heldout - (own_test ? 0 : w.test);
  }
  const std::uint64_t from_pool = w.train + w.heldout + (own_test ? 0 : w.test);
  if (from_pool > left)
    return absl::InvalidArgumentError(
        absl::StrCat("train ", w.train, " + heldout ", w.heldout,
                     own_test ? std::string() : absl::StrCat(" + test ", w.test), " = ", from_pool,
                     " samples; ", left, " are there", o.skip > 0 ? " behind skip" : ""));
  if (own_test && w.test > test_rows)
    return absl::InvalidArgumentError(
        absl::StrCat("test ", w.test, " samples; the test set has ", test_rows));
  return w;
}

Counts class_sizes(const SplitRows& rows) {
  Counts n;
  for (auto c : rows.classes) {
    if (c >= n.size()) n.resize(c + std::size_t{1}, 0);
    ++n[c];
  }
  return n;
}

Counts minus(Counts a, const Counts& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

// One stratum when nothing is stratified: the order alone decides.
void pick_rows(const SplitOptions& o, const Wanted& w, const SplitRows& pool, bool own_test,
               Picks& picks) {
  SplitRows strata = pool;
  if (!o.stratify) std::fill(strata.classes.begin(), strata.classes.end(), std::uint8_t{0});
  const std::uint64_t test = own_test ? 0 : w.test;
  Counts skip = apportion(o.skip, class_sizes(strata));
  const Counts left = minus(class_sizes(strata), skip);
  Counts all = apportion(w.train + w.heldout + test, left);
  Counts heldout = apportion(w.heldout, all);
  Counts rest = minus(all, heldout);
  Counts tests = apportion(test, rest);
  Counts train = minus(rest, tests);
  for (auto row : shuffled(pool.rows(), o.seed)) {
    const std::uint8_t c = strata.classes[row];
    const auto take = [&](Counts& quota) { return quota[c] > 0 && quota[c]-- > 0; };
    if (take(skip)) continue;
    if (take(train))
      picks.train.push_back(row);
    else if (take(heldout))
      picks.heldout.push_back(row);
    else if (take(tests))
      picks.test.push_back(row);
  }
}

struct Group {
  std::uint32_t rows = 0;
  std::uint8_t stratum = 0;
  int split = 0;  // 0 train, 1 held-out, 2 test
};

std::vector<Group> groups_of(const SplitRows& pool, bool stratify) {
  std::vector<Group> groups;
  bool mixed = !stratify;
  for (std::uint32_t row = 0; row < pool.rows(); ++row) {
    const auto g = pool.groups[row];
    if (g >= groups.size()) groups.resize(g + std::size_t{1});
    if (groups[g].rows > 0 && groups[g].stratum != pool.classes[row]) mixed = true;
    if (groups[g].rows++ == 0) groups[g].stratum = pool.classes[row];
  }
  // Groups that hold several classes (speakers) have no stratum of their own.
  if (mixed)
    for (auto& g : groups) g.stratum = 0;
  return groups;
}

// Which split each group goes to: held-out and test are filled to their share, the rest trains.
void place_groups(const SplitOptions& o, const Wanted& w, std::uint64_t test,
                  std::vector<Group>& groups) {
  Counts sizes, left;
  for (const auto& g : groups) {
    if (g.stratum >= sizes.size()) {
      sizes.resize(g.stratum + std::size_t{1}, 0);
      left.resize(sizes.size(), 0);
    }
    sizes[g.stratum] += g.rows;
    left[g.stratum] += g.rows > 0;
  }
  const Counts heldout = apportion(w.heldout, sizes);
  const Counts tests = apportion(test, minus(sizes, heldout));
  Counts have[3] = {Counts(sizes.size(), 0), Counts(sizes.size(), 0), Counts(sizes.size(), 0)};
  // Counts are reached (and what is above them left out); shares are met as nearly as they can be.
  const auto fits = [&](const Group& g, int split, const Counts& quota) {
    const std::uint64_t filled = have[split][g.stratum], wants = quota[g.stratum];
    if (wants == 0 || left[g.stratum] < 2) return false;  // one group at least trains
    return w.counted ? filled < wants : filled + g.rows / 2 <= wants;
  };
  for (auto n : shuffled(static_cast<std::uint32_t>(groups.size()), o.seed)) {
    Group& g = groups[n];
    if (g.rows == 0) continue;
    g.split = fits(g, 1, heldout) ? 1 : fits(g, 2, tests) ? 2 : 0;
    have[g.split][g.stratum] += g.rows;
    --left[g.stratum];
  }
}

Status pick_groups(const SplitOptions& o, const Wanted& w, const SplitRows& pool, bool own_test,
                   Picks& picks) {
  if (o.skip > 0)
    return absl::InvalidArgumentError(
        "skip does not go with recordings: they stay whole; use another seed");
  auto groups = groups_of(pool, o.stratify);
  place_groups(o, w, own_test ? 0 : w.test, groups);
  for (auto row : shuffled(pool.rows(), o.seed)) {
    const int split = groups[pool.groups[row]].split;
    (split == 0 ? picks.train : split == 1 ? picks.heldout : picks.test).push_back(row);
  }
  if (!w.counted) return absl::OkStatus();
  const auto cut = [](std::vector<std::uint32_t>& rows, std::uint64_t n) {
    const bool enough = rows.size() >= n;
    if (enough) rows.resize(n);
    return enough;
  };
  const std::size_t have[] = {picks.train.size(), picks.heldout.size(), picks.test.size()};
  bool enough = cut(picks.train, w.train);
  enough = cut(picks.heldout, w.heldout) && enough;
  enough = (own_test || cut(picks.test, w.test)) && enough;
  if (enough) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("train ", w.train, ", heldout ", w.heldout, ", test ", w.test,
                   " samples wanted; whole recordings leave ", have[0], ", ", have[1], " and ",
                   have[2], ": ask for fewer"));
}

}  // namespace

Result<Picks> choose_splits(const SplitOptions& o, const SplitRows& pool,
                            const SplitRows& own_test) {
  Wanted w;
  ODT_ASSIGN(w, wanted(o, pool.rows(), own_test.rows()));
  const bool has_test = own_test.rows() > 0;
  Picks picks;
  picks.wanted[0] = w.train;
  picks.wanted[1] = w.heldout;
  picks.wanted[2] = w.test;
  if (pool.groups.empty())
    pick_rows(o, w, pool, has_test, picks);
  else
    ODT_TRY(pick_groups(o, w, pool, has_test, picks));
  if (!has_test) return picks;
  SplitOptions of_test = o;
  of_test.skip = 0;
  Picks tests;
  pick_rows(of_test, {w.test, 0, 0, true}, own_test, true, tests);
  picks.test = std::move(tests.train);
  return picks;
}

}  // namespace odt::data
