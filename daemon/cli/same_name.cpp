#include "cli/same_name.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <vector>

#include "cli/context.h"
#include "cli/resolve.h"
#include "cli/text.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

struct Kind {
  const char *noun, *verb;  // "model", "odtctl model rm"
};

// remove(key): deletes one of them.
template <typename Remove>
Status settle(Context& context, const Kind& kind, const std::string& name, const std::string& key,
              const std::vector<Candidate>& all, bool replace, Remove remove) {
  std::vector<std::string> keys, older;
  for (const Candidate& c : all) keys.push_back(c.key);
  for (const Candidate& c : all)
    if (c.name == name && c.key != key && !name.empty()) older.push_back(c.key);
  if (older.empty()) return {};
  std::vector<std::string> shown;
  for (const std::string& k : older) shown.push_back(short_key(k, keys));
  if (!replace) {
    context.note(absl::StrCat("note: ", kind.noun, " '", name, "' stands for this one now; ",
                              older.size() == 1
                                  ? "an older one keeps its key: "
                                  : absl::StrCat(older.size(), " older ones keep their keys: "),
                              absl::StrJoin(shown, ", "), " (", kind.verb,
                              " KEY deletes one; --replace does it at once)"));
    return {};
  }
  for (std::size_t i = 0; i < older.size(); ++i) {
    const Status done = remove(older[i]);
    if (done.ok())
      context.note(
          absl::StrCat("note: the older ", kind.noun, " '", name, "', ", shown[i], ", is deleted"));
    else if (absl::IsFailedPrecondition(done) || absl::IsNotFound(done))
      context.note(absl::StrCat("note: the older ", kind.noun, " '", name, "', ", shown[i],
                                ", stays: ", done.message()));
    else
      return done;
  }
  return {};
}

}  // namespace

Status settle_model_name(Context& context, const std::string& name, const std::string& hash,
                         bool replace) {
  ODT_ASSIGN(Client * client, context.client());
  ODT_ASSIGN(const auto models, client->list<v1::ListModelsResponse>(
                                    v1::ListModelsRequest(), [](auto& r) { return r.models(); }));
  std::vector<Candidate> all;
  for (const auto& m : models) all.push_back({m.hash(), m.name(), {}});
  return settle(context, {"model", "odtctl model rm"}, name, hash, all, replace,
                [&](const std::string& key) {
                  v1::DeleteModelRequest request;
                  request.set_hash(key);
                  return context.call<v1::DeleteModelResponse>(request).status();
                });
}

Status settle_dataset_name(Context& context, const std::string& name, const std::string& id,
                           bool replace) {
  ODT_ASSIGN(Client * client, context.client());
  ODT_ASSIGN(const auto datasets,
             client->list<v1::ListDatasetsResponse>(v1::ListDatasetsRequest(),
                                                    [](auto& r) { return r.datasets(); }));
  std::vector<Candidate> all;
  for (const auto& d : datasets) all.push_back({d.id(), d.name(), {}});
  return settle(context, {"dataset", "odtctl data rm"}, name, id, all, replace,
                [&](const std::string& key) {
                  v1::DeleteDatasetRequest request;
                  request.set_id(key);
                  return context.call<v1::DeleteDatasetResponse>(request).status();
                });
}

}  // namespace odt::cli
