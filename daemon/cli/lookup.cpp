#include "cli/lookup.h"

#include "cli/context.h"
#include "cli/resolve.h"
#include "cli/text.h"
#include "odt/api/v1/campaigns.pb.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

template <typename Response, typename Request, typename Items>
auto all_of(Context& context, Items items) {
  using Repeated = std::decay_t<decltype(items(std::declval<Response&>()))>;
  Result<Client*> client = context.client();
  if (!client.ok()) return Result<Repeated>(client.status());
  return (*client)->list<Response>(Request(), items);
}

auto boards(Context& c) {
  return all_of<v1::ListBoardsResponse, v1::ListBoardsRequest>(c,
                                                               [](auto& r) { return r.boards(); });
}
auto models(Context& c) {
  return all_of<v1::ListModelsResponse, v1::ListModelsRequest>(c,
                                                               [](auto& r) { return r.models(); });
}
auto datasets(Context& c) {
  return all_of<v1::ListDatasetsResponse, v1::ListDatasetsRequest>(
      c, [](auto& r) { return r.datasets(); });
}
auto runs(Context& c) {
  return all_of<v1::ListRunsResponse, v1::ListRunsRequest>(c, [](auto& r) { return r.runs(); });
}
auto snapshots(Context& c) {
  return all_of<v1::ListSnapshotsResponse, v1::ListSnapshotsRequest>(
      c, [](auto& r) { return r.snapshots(); });
}

// `candidate` turns an item into what people may call it.
template <typename Items, typename CandidateOf>
auto pick(const std::string& what, const std::string& word, Result<Items> items,
          CandidateOf candidate) -> Result<typename Items::value_type> {
  ODT_TRY(items.status());
  std::vector<Candidate> candidates;
  for (const auto& item : *items) candidates.push_back(candidate(item));
  ODT_ASSIGN(const std::size_t index, resolve(what, word, candidates));
  return (*items)[static_cast<int>(index)];
}

// The same, where names may come again.
template <typename Items, typename CandidateOf>
auto pick_named(Context& context, const std::string& what, const std::string& word,
                Result<Items> items, Several several, CandidateOf candidate)
    -> Result<typename Items::value_type> {
  ODT_TRY(items.status());
  std::vector<Candidate> candidates;
  for (const auto& item : *items) candidates.push_back(candidate(item));
  if (several == Several::kRefuse) ODT_TRY(only_one_named(what, word, candidates));
  const auto found = all_named(word, candidates);
  if (found.size() > 1)
    context.note("note: " + several_text(what, word, found, candidates) +
                 "; the first, the newest, is meant");
  return pick(what, word, std::move(items), candidate);
}

std::string name_of(const std::vector<std::pair<std::string, std::string>>& pairs,
                    const std::string& key) {
  for (const auto& [k, name] : pairs)
    if (k == key && !name.empty()) return name;
  return key.empty() ? "-" : hex(key).substr(0, 12);
}

}  // namespace

Result<v1::Board> find_board(Context& context, const std::string& word) {
  return pick("board", word, boards(context), [](const v1::Board& b) {
    return Candidate{b.uid(), b.name(), {}};
  });
}
Result<v1::Model> find_model(Context& context, const std::string& word, Several several) {
  return pick_named(context, "model", word, models(context), several, [](const v1::Model& m) {
    return Candidate{m.hash(), m.name(), {}};
  });
}
Result<v1::Dataset> find_dataset(Context& context, const std::string& word, Several several) {
  return pick_named(context, "dataset", word, datasets(context), several, [](const v1::Dataset& d) {
    return Candidate{d.id(), d.name(), {}};
  });
}
Result<v1::Run> find_run(Context& context, const std::string& word) {
  return pick("run", word, runs(context), [](const v1::Run& r) {
    return Candidate{r.id(), r.spec().name(), {}};
  });
}
Result<v1::Campaign> find_campaign(Context& context, const std::string& word) {
  auto all = all_of<v1::ListCampaignsResponse, v1::ListCampaignsRequest>(
      context, [](auto& r) { return r.campaigns(); });
  return pick("campaign", word, std::move(all), [](const v1::Campaign& c) {
    return Candidate{c.id(), c.spec().name(), {}};
  });
}
Result<v1::Snapshot> find_snapshot(Context& context, const std::string& word) {
  return pick("snapshot", word, snapshots(context), [](const v1::Snapshot& s) {
    return Candidate{s.hash(), "", {s.aliases().begin(), s.aliases().end()}};
  });
}

Result<Names> Names::read(Context& context) {
  Names names;
  ODT_ASSIGN(const auto all_boards, boards(context));
  for (const auto& b : all_boards) names.boards_.emplace_back(b.uid(), b.name());
  ODT_ASSIGN(const auto all_models, models(context));
  for (const auto& m : all_models) names.models_.emplace_back(m.hash(), m.name());
  ODT_ASSIGN(const auto all_datasets, datasets(context));
  for (const auto& d : all_datasets) names.datasets_.emplace_back(d.id(), d.name());
  return names;
}
std::string Names::board(const std::string& uid) const { return name_of(boards_, uid); }
std::string Names::model(const std::string& hash) const { return name_of(models_, hash); }
std::string Names::dataset(const std::string& id) const { return name_of(datasets_, id); }

}  // namespace odt::cli
