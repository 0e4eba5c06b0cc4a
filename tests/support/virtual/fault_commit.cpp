#include <fmt/format.h>

#include <algorithm>

#include "support/virtual/fault_case.h"

// Commits to a board's non-volatile memory: a person's over an older one, or those of a run.
namespace odt::test {
namespace {

constexpr int kTurns = 20;
using Action = training::FleetControl::NvmAction;

}  // namespace

std::optional<model::NvmInfo> FaultMatrix::Case::memory_after(Action action,
                                                              const std::string& request) {
  std::optional<model::NvmInfo> info;
  const auto ask = [&] {
    daemon->fleet().board_nvm(context(request), uid, action,
                              take<model::NvmInfo>([&](const model::NvmInfo& got) { info = got; }));
  };
  if (!persist(ask, limit())) return std::nullopt;
  return info;
}

void FaultMatrix::Case::commit_first(Outcome& out) {
  if (by_run) {
    commit_every = static_cast<std::uint32_t>(2 + time.random() % 8);
    return;
  }
  if (!put_weights(out, "before", matrix.older_)) return;
  const auto info = memory_after(Action::kCommit, "commit-before");
  if (!info || info->hash != matrix.older_)
    out.wrong.push_back("the first commit: " + last.ToString());
}

void FaultMatrix::Case::commit(Outcome& out) {
  by_run ? commit_by_run(out) : commit_by_hand(out);
  for (const auto& neither : board().lost_commits()) out.wrong.push_back(neither);
}

// Boots from number `first` on (0: the first of all) come back with `must`.
void FaultMatrix::Case::check_boots(Outcome& out, std::uint32_t first, Hash must) {
  for (std::uint32_t i = first; i < board().boots(); ++i)
    if (board().restored()[i] != must)
      out.lost.push_back(fmt::format("boot {} has {} in place of the commit that was acknowledged",
                                     i + 1, board().restored()[i].hex()));
}

// Without power for a second, when all is quiet, and online again.
bool FaultMatrix::Case::lives_on(Outcome& out) {
  wait_until(std::max(quiet_at, time.elapsed_us()) + kSecond);
  const std::uint32_t boots = board().boots();
  world.power_cycle(0, kSecond);
  const auto back = [&] { return board().boots() > boots && daemon->online(uid); };
  const bool is_back = go(back, limit());
  if (!is_back) out.hang = "the board did not come back after the power cycle";
  return is_back;
}

void FaultMatrix::Case::commit_by_hand(Outcome& out) {
  std::optional<model::NvmInfo> info;
  std::uint32_t boots = 0;
  for (int turn = 1; turn <= kTurns; ++turn) {
    boots = board().boots();
    if (!put_weights(out, fmt::format("put-{}", turn), matrix.weights_)) return;
    info = memory_after(Action::kCommit, fmt::format("commit-{}", turn));
    if (info && info->hash == matrix.weights_) break;
    // A board that has restarted meanwhile has lost these weights: they are put there again.
    if (board().boots() == boots) {
      if (info)
        out.wrong.push_back("committed was " + info->hash.hex());
      else
        out.hang = "nothing was committed: " + last.ToString();
      return;
    }
  }
  const std::uint32_t acknowledged = board().boots();
  if (!lives_on(out)) return;
  check_boots(out, acknowledged, matrix.weights_);
  const Hash held = look("look");
  if (held != matrix.weights_)
    out.lost.push_back("the board holds " + held.hex() + ": " + last.ToString());
}

void FaultMatrix::Case::commit_by_run(Outcome& out) {
  const auto run = train(out);
  if (!run) return;
  wait_until(std::max(quiet_at, time.elapsed_us()) + kSecond);
  const auto info = memory_after(Action::kStatus, "");
  if (!info) {
    out.hang = "the memory was not read: " + last.ToString();
    return;
  }
  if (info->sequence != 0 && info->run_id != run->id)
    out.wrong.push_back("a commit of another run");
  if (info->step == run->steps_total && info->hash != matrix.state_)
    out.wrong.push_back("committed at the end was " + info->hash.hex());
  if (board().boots() == 1 && info->step != run->steps_total)
    out.lost.push_back(fmt::format("the commit at the end; there is one of step {}", info->step));
  const std::uint32_t boots = board().boots();
  if (lives_on(out)) check_boots(out, boots, info->hash);
}

}  // namespace odt::test
