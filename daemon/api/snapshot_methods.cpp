#include <absl/strings/str_cat.h>

#include "api/weights_parts.h"
#include "data/weight_diff.h"
#include "data/weight_files.h"
#include "model/provenance.h"
#include "training/retention.h"

namespace odt::api {
namespace {

using Log = v1::ListSnapshotLogResponse;

constexpr std::uint32_t kDefaultLog = 100, kMaxLog = 1000;

// ---- provenance
// ----------------------------------------------------------------------------------

Log::Link judge_link(const Deps& deps, const model::Snapshot& s, const model::Snapshot* parent) {
  const auto content = deps.blobs.get(s.hash);
  if (!content.ok() || sha256(*content) != s.hash) return Log::LINK_CONTENT_LOST;
  if (s.chain.is_zero()) return Log::LINK_UNSPECIFIED;
  const bool whole = model::chain_link(s, s.parent_chain) == s.chain &&
                     (parent == nullptr || parent->chain == s.parent_chain);
  return whole ? Log::LINK_OK : Log::LINK_BROKEN;
}

Result<Log> read_log(const Deps& deps, store::ControlStore& store, const Hash& first,
                     std::uint32_t limit) {
  Log log;
  Result<model::Snapshot> at = store.snapshot(first);
  if (!at.ok()) return not_found(at.status(), "snapshot", first.hex());
  while (true) {
    Result<model::Snapshot> parent = absl::NotFoundError("");
    if (!at->parent.is_zero()) parent = store.snapshot(at->parent);
    if (!parent.ok() && !absl::IsNotFound(parent.status())) return parent.status();
    auto* entry = log.add_entries();
    *entry->mutable_snapshot() = to_proto(*at);
    entry->set_link(judge_link(deps, *at, parent.ok() ? &*parent : nullptr));
    if (!parent.ok()) {
      // A run that began without a snapshot began with the model's own weights.
      const bool of_run = at->parent.is_zero() && store.run(at->run_id).ok();
      log.set_end(!at->parent.is_zero() ? Log::END_DELETED
                  : of_run              ? Log::END_MODEL
                                        : Log::END_UNKNOWN);
      log.set_missing(at->parent.is_zero() ? std::string() : at->parent.str());
      return log;
    }
    if (static_cast<std::uint32_t>(log.entries_size()) >= limit) return log;
    at = std::move(parent);
  }
}

// ---- differences and files
// ------------------------------------------------------------------------

Result<data::StoredWeights> read_weights(const Deps& deps, store::ControlStore& store,
                                         const Hash& hash) {
  const auto snapshot = store.snapshot(hash);
  if (!snapshot.ok()) return not_found(snapshot.status(), "snapshot", hash.hex());
  ODT_ASSIGN(const std::string bytes, deps.blobs.get(hash));
  return data::parse_weights(bytes, "snapshot " + hash.hex().substr(0, 12));
}

// Names of the trained layers, which the weights' layers follow.
std::vector<std::string> layer_names(store::ControlStore& store, const Hash& model) {
  std::vector<std::string> names;
  const auto found = store.model(model);
  if (!found.ok()) return names;
  for (const auto& layer : found->layers)
    if (layer.trainable) names.push_back(layer.name);
  return names;
}

void set_diff(const data::WeightDiff& diff, v1::WeightDiff* out) {
  out->set_values(diff.values);
  out->set_changed(diff.changed);
  out->set_l1(diff.l1);
  out->set_linf(diff.linf);
  out->set_hamming_bits(diff.hamming_bits);
}

Result<v1::DiffSnapshotsResponse> diff(const Deps& deps, store::ControlStore& store, const Hash& a,
                                       const Hash& b, bool channels) {
  ODT_ASSIGN(const auto x, read_weights(deps, store, a));
  ODT_ASSIGN(const auto y, read_weights(deps, store, b));
  ODT_ASSIGN(const auto layers, data::diff_weights(x, y));
  const auto names = layer_names(store, x.model_hash);
  v1::DiffSnapshotsResponse out;
  data::WeightDiff all;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto& layer = layers[i];
    auto* item = out.add_layers();
    item->set_layer(static_cast<std::uint32_t>(i));
    if (i < names.size()) item->set_name(clean_text(names[i]));
    item->mutable_shape()->Add(layer.shape.begin(), layer.shape.end());
    item->set_k_a(layer.k_a);
    item->set_k_b(layer.k_b);
    item->set_same_form(layer.same_form);
    set_diff(layer.weights, item->mutable_weights());
    set_diff(layer.offsets, item->mutable_offsets());
    all.add(layer.weights);
    all.add(layer.offsets);
    for (const auto& channel : layer.channels)
      if (channels) set_diff(channel, item->add_channels());
  }
  set_diff(all, out.mutable_all());
  return out;
}

Result<v1::ExportSnapshotResponse> make_file(const Deps& deps, store::ControlStore& store,
                                             const Hash& hash, v1::WeightsFormat format) {
  ODT_ASSIGN(const auto weights, read_weights(deps, store, hash));
  data::WeightsTitle title;
  title.hash = hash;
  title.layer_names = layer_names(store, weights.model_hash);
  if (const auto model = store.model(weights.model_hash); model.ok()) title.model = model->name;
  v1::ExportSnapshotResponse out;
  std::string file;
  switch (format) {
    case v1::WEIGHTS_FORMAT_NPZ:
      file = data::weights_npz(weights, title);
      break;
    case v1::WEIGHTS_FORMAT_C:
      file = data::weights_c(weights, title);
      break;
    case v1::WEIGHTS_FORMAT_JSON:
      file = data::weights_json(weights, title);
      break;
    default:
      file = data::weights_bytes(weights);
  }
  ODT_ASSIGN(const Hash blob, deps.blobs.put(file));
  out.set_blob(blob.str());
  out.set_bytes(file.size());
  return out;
}

Result<v1::PruneSnapshotsResponse> prune(const Deps& deps, store::ControlStore& store,
                                         const Call& call, training::RetentionRules rules,
                                         bool dry_run) {
  ODT_ASSIGN(const auto pruned,
             training::prune_snapshots(store, rules, call.ctx, deps.clock.now_us(), dry_run));
  v1::PruneSnapshotsResponse out;
  for (const auto& snapshot : pruned.snapshots) *out.add_pruned() = to_proto(snapshot);
  out.set_bytes(pruned.bytes);
  out.set_kept(pruned.kept);
  return out;
}

void add_reads(ApiService& service, Deps& deps) {
  service.unary<v1::ListSnapshotLogRequest, Log>(
      "ListSnapshotLog",
      [&deps](const Call&, const v1::ListSnapshotLogRequest& request, Reply<Log> reply) {
        ODT_FIELD(const Hash hash, hash_field(request.hash(), "hash"));
        if (request.limit() > kMaxLog)
          return reply(bad_field("limit", absl::StrCat(request.limit()), "1 to 1000"));
        const std::uint32_t limit = request.limit() == 0 ? kDefaultLog : request.limit();
        answer_from_store(deps.control, reply, [&deps, hash, limit](store::ControlStore& store) {
          return read_log(deps, store, hash, limit);
        });
      });
  service.unary<v1::DiffSnapshotsRequest, v1::DiffSnapshotsResponse>(
      "DiffSnapshots", [&deps](const Call&, const v1::DiffSnapshotsRequest& request,
                               Reply<v1::DiffSnapshotsResponse> reply) {
        ODT_FIELD(const Hash a, hash_field(request.a(), "a"));
        ODT_FIELD(const Hash b, hash_field(request.b(), "b"));
        answer_from_store(deps.control, reply,
                          [&deps, a, b, channels = request.channels()](store::ControlStore& store) {
                            return diff(deps, store, a, b, channels);
                          });
      });
}

void add_changes(ApiService& service, Deps& deps) {
  service.unary<v1::ExportSnapshotRequest, v1::ExportSnapshotResponse>(
      "ExportSnapshot", [&deps](const Call&, const v1::ExportSnapshotRequest& request,
                                Reply<v1::ExportSnapshotResponse> reply) {
        ODT_FIELD(const Hash hash, hash_field(request.snapshot(), "snapshot"));
        if (!v1::WeightsFormat_IsValid(request.format()))
          return reply(bad_field("format", absl::StrCat(static_cast<int>(request.format()))));
        answer_from_store(deps.control, reply,
                          [&deps, hash, format = request.format()](store::ControlStore& store) {
                            return make_file(deps, store, hash, format);
                          });
      });
  service.unary<v1::DeleteSnapshotRequest, v1::DeleteSnapshotResponse>(
      "DeleteSnapshot", [&deps](const Call& call, const v1::DeleteSnapshotRequest& request,
                                Reply<v1::DeleteSnapshotResponse> reply) {
        ODT_FIELD(const Hash hash, hash_field(request.hash(), "hash"));
        answer_from_store(
            deps.control, reply,
            [call, hash](store::ControlStore& store) -> Result<v1::DeleteSnapshotResponse> {
              const Status done = training::trash_snapshot(store, call.ctx, hash);
              if (!done.ok()) return not_found(done, "snapshot", hash.hex());
              return v1::DeleteSnapshotResponse();
            });
      });
  service.unary<v1::PruneSnapshotsRequest, v1::PruneSnapshotsResponse>(
      "PruneSnapshots", [&deps](const Call& call, const v1::PruneSnapshotsRequest& request,
                                Reply<v1::PruneSnapshotsResponse> reply) {
        training::RetentionRules rules = deps.retention;
        if (request.has_keep()) rules.keep = request.keep();
        if (request.has_older_than_s()) rules.older_than_s = request.older_than_s();
        answer_from_store(
            deps.control, reply,
            [&deps, call, rules, dry_run = request.dry_run()](store::ControlStore& store) {
              return prune(deps, store, call, rules, dry_run);
            });
      });
}

}  // namespace

void add_snapshot_methods(ApiService& service, Deps& deps) {
  add_reads(service, deps);
  add_changes(service, deps);
}

}  // namespace odt::api
