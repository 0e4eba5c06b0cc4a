#include "training/run_checks.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "training/board_ops.h"
#include "training/ram_fit.h"

namespace odt::training {
namespace {

// A class with fewer training samples is hardly seen; so few in all are no training set.
constexpr std::uint32_t kFewOfClass = 8, kFewTraining = 50;

Status refuse(Status status, const char* reason, const std::string& remedy) {
  return with_reason(std::move(status), reason, remedy);
}

std::string shape_text(const std::vector<std::uint32_t>& shape) {
  return shape.empty() ? "(none)" : absl::StrJoin(shape, "x");
}

std::uint64_t count(const std::vector<std::uint32_t>& shape) {
  std::uint64_t n = shape.empty() ? 0 : 1;
  for (const auto d : shape) n *= d;
  return n;
}

asio::awaitable<Status> check_snapshot(Env& env, std::shared_ptr<model::RunSpec> spec,
                                       model::Board board) {
  const Hash hash = spec->start_snapshot;
  auto content = co_await env.read_blob(hash);
  if (!content.ok())
    co_return refuse(absl::NotFoundError("start snapshot " + hash.hex() + " is not here"),
                     "SNAPSHOT_NOT_FOUND", "List the snapshots: odtctl weights list.");
  auto header = read_weights_header(**content);
  if (!header.ok()) co_return header.status();
  if (header->model_hash != spec->model_hash)
    co_return refuse(
        absl::InvalidArgumentError("start snapshot " + hash.hex().substr(0, 12) +
                                   " belongs to model " + header->model_hash.hex().substr(0, 12) +
                                   ", the run to " + spec->model_hash.hex().substr(0, 12)),
        "OTHER_MODEL", "Choose a snapshot of this model.");
  if (board.rules_version != 0 && header->rules_version != board.rules_version)
    co_return refuse(absl::FailedPreconditionError(
                         absl::StrCat("start snapshot has rules version ", header->rules_version,
                                      ", board ", board.name, " has ", board.rules_version)),
                     "OTHER_RULES", "Use a board whose firmware has that version.");
  auto& hyper = spec->hyper;
  const auto& ks = header->layer_k;
  if (hyper.apt != model::AptMode::kUnspecified || hyper.apt_k_max) {
    // The weights bring their precision along.
    const std::uint32_t limit = hyper.apt_k_max.value_or(16);
    const std::uint32_t most = *std::max_element(ks.begin(), ks.end());
    if (most > limit)
      co_return refuse(absl::InvalidArgumentError(absl::StrCat(
                           "apt_k_max is ", limit, "; the start snapshot has k ", most)),
                       "OUT_OF_RANGE", "Raise apt_k_max, or start from the model.");
    if (!hyper.k) hyper.k = std::min(limit, header->k + 0u);
    co_return absl::OkStatus();
  }
  const bool unequal = std::any_of(ks.begin(), ks.end(), [&](auto k) { return k != ks[0]; });
  if (unequal && !hyper.k && hyper.layer_k.empty()) hyper.layer_k.assign(ks.begin(), ks.end());
  for (std::size_t i = 0; unequal && i < ks.size(); ++i) {
    const std::uint32_t own = i < hyper.layer_k.size() ? hyper.layer_k[i] : 0;
    if ((own != 0 ? own : hyper.k.value_or(0)) != ks[i])
      co_return refuse(absl::InvalidArgumentError(absl::StrCat(
                           "layer_k of layer ", i,
                           " is not that of the start snapshot: ", absl::StrJoin(ks, ","))),
                       "OUT_OF_RANGE", "Leave k and layer_k out, or start from the model.");
  }
  if (!unequal && hyper.k && *hyper.k != header->k)
    co_return refuse(absl::InvalidArgumentError(
                         absl::StrCat("k is ", *hyper.k, "; the start snapshot has k ", header->k)),
                     "OUT_OF_RANGE", "Leave k out, or start from the model.");
  if (!hyper.k) hyper.k = header->k;
  co_return absl::OkStatus();
}

// What a board does not know it would leave out of the settings.
Status check_caps(const model::HyperParams& asked, const model::Board& board) {
  const std::uint32_t lacks = caps_needed(asked) & ~board.caps;
  if (lacks == 0) return absl::OkStatus();
  const char* what = "layer_k or apt";
  if ((lacks & kCapBestOnHost) != 0) what = "best_on_host";
  if ((lacks & kCapFrozen) != 0) what = "frozen outputs";
  if ((lacks & kCapDfp16) != 0) what = "rule_set DFP16";
  if ((lacks & model::kCapNvm) != 0) what = "commit_every: it has no non-volatile memory";
  return refuse(absl::FailedPreconditionError(absl::StrCat("board ", board.name, " (firmware ",
                                                           board.fw_version, ") cannot do ", what)),
                "NO_CAPABILITY", "Use firmware that can, or other settings.");
}

// What the model learns, and what the dataset has for it.
Status check_task(const model::Model& model, const model::Dataset& dataset) {
  const auto mismatch = [&](const char* reason, const std::string& wanted, const char* remedy) {
    const std::string has = dataset.outputs != 0     ? absl::StrCat(dataset.outputs, " targets")
                            : dataset.n_classes != 0 ? absl::StrCat(dataset.n_classes, " classes")
                                                     : std::string("neither classes nor targets");
    return refuse(absl::InvalidArgumentError(absl::StrCat("dataset '", dataset.name, "' has ", has,
                                                          "; model '", model.name, "' ", wanted)),
                  reason, remedy);
  };
  switch (model.outputs.task) {
    case model::Task::kClassify:
      if (dataset.n_classes > model.n_classes)
        return mismatch("CLASS_MISMATCH", absl::StrCat("has ", model.n_classes),
                        "Use a model with at least as many classes.");
      if (dataset.outputs != 0 || dataset.n_classes == 0)
        return mismatch("CLASS_MISMATCH", absl::StrCat("tells ", model.n_classes, " classes apart"),
                        "Use a model for regression, or a dataset with labels.");
      return absl::OkStatus();
    case model::Task::kRegress:
      if (dataset.outputs != model.outputs.count)
        return mismatch(
            "TARGET_MISMATCH", absl::StrCat("is a regression of ", model.outputs.count, " values"),
            "Import the dataset with as many target columns (--target), or use another model.");
      return absl::OkStatus();
    default:
      return absl::OkStatus();  // an autoencoder's targets are its inputs
  }
}

Status check_caps(const model::Model& model, const model::Board& board) {
  if (model.outputs.has_classes() || (board.caps & kCapTasks) != 0) return absl::OkStatus();
  return refuse(absl::FailedPreconditionError(
                    absl::StrCat("board ", board.name, " (firmware ", board.fw_version,
                                 ") cannot train regressions and autoencoders")),
                "NO_CAPABILITY", "Use firmware that can.");
}

asio::awaitable<Result<model::Dataset>> find_dataset(Env& env, Uuid id) {
  auto dataset = co_await env.control.call([id](store::ControlStore& s) { return s.dataset(id); });
  if (absl::IsNotFound(dataset.status()))
    co_return refuse(absl::NotFoundError("dataset " + id.hex() + " is not known"),
                     "DATASET_NOT_FOUND", "List the datasets: odtctl data list.");
  co_return dataset;
}

}  // namespace

asio::awaitable<Result<model::Model>> find_model(Env& env, Hash hash) {
  auto model = co_await env.control.call([hash](store::ControlStore& s) { return s.model(hash); });
  if (!model.ok() || model->outputs.count != 0) co_return model;
  // Compiled by an older version: the image says it.
  constexpr std::size_t kTask = 38;
  model->outputs.count = model->n_classes;
  auto image = co_await env.read_blob(hash);
  if (image.ok() && (*image)->size() > kTask && (*image)->compare(0, 4, "ODTM") == 0 &&
      static_cast<unsigned char>((**image)[kTask]) <= 2)
    model->outputs.task = static_cast<model::Task>((**image)[kTask]);
  co_return model;
}

Status check_shapes(const model::Model& model, const model::Dataset& dataset, bool evaluate) {
  if (count(model.input_shape) != count(dataset.shape))
    return refuse(
        absl::InvalidArgumentError(absl::StrCat(
            "dataset '", dataset.name, "' has samples of shape ", shape_text(dataset.shape), " (",
            count(dataset.shape), " values); model '", model.name, "' takes ",
            shape_text(model.input_shape), " (", count(model.input_shape), ")")),
        "SHAPE_MISMATCH", "Import the dataset again with the model's shape (resize).");
  ODT_TRY(check_task(model, dataset));
  if (dataset.train == 0)
    return refuse(
        absl::InvalidArgumentError("dataset '" + dataset.name + "' has no training samples"),
        "NO_SAMPLES", "Import it again with a training split.");
  if (dataset.train > 65535 || dataset.heldout > 65535)
    return refuse(absl::InvalidArgumentError(absl::StrCat(
                      "dataset '", dataset.name, "' has ", dataset.train, " training and ",
                      dataset.heldout, " held-out samples; at most 65535 each")),
                  "OUT_OF_RANGE", "Import it again with fewer samples.");
  if (evaluate && dataset.test == 0)
    return refuse(absl::InvalidArgumentError("evaluate is set, but dataset '" + dataset.name +
                                             "' has no test split"),
                  "NO_TEST_SPLIT", "Import it again with a test split, or do not evaluate.");
  return absl::OkStatus();
}

Status check_settings(const RunParts& parts, const model::HyperParams& asked,
                      model::HyperParams* guess) {
  const bool classes = parts.model.outputs.has_classes();
  ODT_TRY(check_asked(asked, classes));
  ODT_TRY(check_caps(asked, parts.board));
  ODT_TRY(check_caps(parts.model, parts.board));
  if (parts.board.max_layers != 0 && parts.model.trainable_layers > parts.board.max_layers)
    return refuse(
        absl::InvalidArgumentError(absl::StrCat(
            "model '", parts.model.name, "' has ", parts.model.trainable_layers,
            " trainable layers; board ", parts.board.name, " takes ", parts.board.max_layers)),
        "OUT_OF_RANGE", "Compile the model with fewer trainable layers.");
  if (asked.frozen.value_or(false) && parts.model.tail.image.is_zero())
    return refuse(absl::FailedPreconditionError(absl::StrCat(
                      "frozen is on, but model '", parts.model.name,
                      "' has no frozen outputs: they need layers that are computed in front of the "
                      "first trained one, one tensor between, and 8-bit integers")),
                  "NO_FROZEN_PART",
                  "Add the model with fewer trainable layers, or leave frozen out.");
  const bool fixed = asked.policy == model::Policy::kFixed;
  const SampleCounts counts{parts.dataset.train, parts.dataset.heldout, parts.evaluate,
                            parts.start_snapshot, asked.guard.value_or(true)};
  // Which step the policy will take is known only after the first evaluation: both must do.
  for (const Drift drift : {Drift::kMild, Drift::kStrong}) {
    if (!classes && drift == Drift::kMild) continue;  // judged by accuracy
    // Ranges first: they are errors of the request, whatever the board is.
    Placement asked_place = asked_placement(asked);
    asked_place.batch = policy_batch(asked, drift);
    if (parts.board.max_batch != 0 && !asked.batch)
      asked_place.batch = std::min(asked_place.batch, parts.board.max_batch);
    const bool heldout = parts.dataset.heldout != 0;
    ODT_TRY(
        check_ranges(resolve(asked, drift, asked_place, parts.model.has_ce_scale, heldout, classes),
                     parts.model, parts.board));
    ODT_ASSIGN(const auto fit,
               placements(parts.model, parts.board, counts, asked, asked_place.batch));
    const auto resolved =
        resolve(asked, drift, fit.front(), parts.model.has_ce_scale, heldout, classes);
    ODT_TRY(check_ranges(resolved, parts.model, parts.board));
    if (guess != nullptr && fixed) *guess = resolved;
  }
  return absl::OkStatus();
}

std::vector<model::Reason> sample_warnings(const RunParts& parts, const model::HyperParams& asked) {
  std::vector<model::Reason> out;
  const std::uint32_t train = parts.dataset.train, heldout = parts.dataset.heldout;
  const std::uint32_t classes = parts.model.outputs.has_classes() ? parts.dataset.n_classes : 0;
  const std::uint32_t wanted = std::max(kFewTraining, classes * kFewOfClass);
  if (train < wanted)
    out.push_back(
        {"TOO_FEW_SAMPLES",
         absl::StrCat("dataset '", parts.dataset.name, "' has ", train, " training samples; below ",
                      wanted, " a model rather learns them by heart"),
         "Import more, or train fewer layers and epochs; look at the held-out accuracy."});
  if (asked.guard.value_or(true) && heldout != 0 && heldout < kFewHeldout)
    out.push_back({"FEW_HELDOUT",
                   absl::StrCat("the guard judges by ", heldout, " held-out samples; below ",
                                kFewHeldout, " one sample more or less decides"),
                   "Import the dataset with a larger held-out split."});
  return out;
}

asio::awaitable<Result<RunParts>> check_run(Env& env, std::shared_ptr<model::RunSpec> spec,
                                            std::shared_ptr<model::HyperParams> guess) {
  RunParts parts;
  parts.evaluate = spec->evaluate;
  parts.start_snapshot = !spec->start_snapshot.is_zero();
  const model::Board* board = env.registry->find(spec->board_uid);
  if (board == nullptr)
    co_return refuse(absl::NotFoundError("board " + spec->board_uid.hex() + " is not known"),
                     "BOARD_NOT_FOUND", "List the boards: odtctl board list.");
  parts.board = *board;
  const Hash model_hash = spec->model_hash;
  auto model = co_await find_model(env, model_hash);
  if (!model.ok()) {
    if (!absl::IsNotFound(model.status())) co_return model.status();
    co_return refuse(absl::NotFoundError("model " + model_hash.hex() + " is not known"),
                     "MODEL_NOT_FOUND", "List the models: odtctl model list.");
  }
  parts.model = std::move(*model);
  // What its image takes, where nobody says otherwise.
  if (spec->hyper.rule_set == model::RuleSet::kUnspecified && parts.model.arithmetic == 1)
    spec->hyper.rule_set = model::RuleSet::kDfp16;
  if (spec->captured) {
    auto captured = co_await check_captured(env, spec, parts.board, parts.model);
    if (!captured.ok()) co_return captured.status();
    parts.dataset = std::move(*captured);
  } else {
    auto dataset = co_await find_dataset(env, spec->dataset_id);
    if (!dataset.ok()) co_return dataset.status();
    parts.dataset = std::move(*dataset);
  }
  Status ok = check_shapes(parts.model, parts.dataset, spec->evaluate);
  if (!ok.ok()) co_return ok;
  if (!spec->start_snapshot.is_zero()) {
    ok = co_await check_snapshot(env, spec, parts.board);
    if (!ok.ok()) co_return ok;
  }
  if (spec->name.size() > 64)
    co_return absl::InvalidArgumentError("name: at most 64 characters are allowed");
  ok = check_settings(parts, spec->hyper, guess.get());
  if (!ok.ok()) co_return ok;
  co_return parts;
}

}  // namespace odt::training
