#include "training/rate_book.h"

#include <set>

namespace odt::training {

RateBook::Measured RateBook::measured(const model::Run& run) {
  return {run.spec.board_uid, run.spec.model_hash, run.timing, run.effective.k,
          run.effective.batch};
}

Result<RateBook::Contents> RateBook::read(store::ControlStore& store) {
  Contents out;
  ODT_ASSIGN(const auto page, store.runs({kMost, ""}));
  for (const auto& run : page.items) {
    if (run.timing == model::RunTiming{}) continue;
    out.runs.emplace(run.id, measured(run));
    if (out.models.contains(run.spec.model_hash)) continue;
    auto model = store.model(run.spec.model_hash);
    if (model.ok()) out.models.emplace(run.spec.model_hash, std::move(*model));
  }
  return out;
}

void RateBook::take(Contents contents) {
  here_.runs.merge(contents.runs);
  here_.models.merge(contents.models);
  loaded_ = true;
  trim();
}

void RateBook::note(const model::Run& run, const model::Model* model) {
  if (run.timing == model::RunTiming{}) return;
  here_.runs.insert_or_assign(run.id, measured(run));
  if (model != nullptr) here_.models.try_emplace(run.spec.model_hash, *model);
  trim();
}

const model::Model* RateBook::model(const Hash& hash) const {
  const auto it = here_.models.find(hash);
  return it == here_.models.end() ? nullptr : &it->second;
}

void RateBook::trim() {
  if (here_.runs.size() <= kMost) return;
  // Ids are UUIDv7: the least is the oldest.
  while (here_.runs.size() > kMost) here_.runs.erase(here_.runs.begin());
  if (here_.models.size() <= 16) return;
  std::set<Hash> used;
  for (const auto& [id, run] : here_.runs) used.insert(run.model);
  std::erase_if(here_.models, [&used](const auto& m) { return !used.contains(m.first); });
}

}  // namespace odt::training
