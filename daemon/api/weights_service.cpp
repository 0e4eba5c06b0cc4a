#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstring>

#include "api/infer_file.h"
#include "api/weights_parts.h"
#include "training/retention.h"

namespace odt::api {
namespace {

constexpr std::size_t kMaxAliases = 32, kMaxAliasBytes = 64, kMaxNoteBytes = 4096;
constexpr std::size_t kWeightsHeader = 44;
constexpr std::uint32_t kMaxInfer = 64;

Result<std::string> alias_field(const std::string& raw, std::string_view field, bool required) {
  ODT_ASSIGN(auto alias, text_field(raw, field, kMaxAliasBytes, required));
  if (alias.find_first_of(" ,=") != std::string::npos)
    return bad_field(field, "'" + alias + "': an alias has no blank, ',' or '='");
  return alias;
}

Result<std::string> split_field(const std::string& raw) {
  if (raw.empty()) return std::string("test");
  if (raw == "train" || raw == "heldout" || raw == "test") return raw;
  return bad_field("split", "'" + clean_text(raw) + "'", "splits: train, heldout, test");
}

void add_reads(ApiService& service, Deps& deps) {
  service.unary<v1::ListSnapshotsRequest, v1::ListSnapshotsResponse>(
      "ListSnapshots", [&deps](const Call&, const v1::ListSnapshotsRequest& request,
                               Reply<v1::ListSnapshotsResponse> reply) {
        ODT_FIELD(auto params, params_of<v1::Snapshot>(request));
        answer_from_store(
            deps.control, reply,
            [params](store::ControlStore& store) -> Result<v1::ListSnapshotsResponse> {
              ODT_ASSIGN(auto page,
                         (list_from<v1::Snapshot, model::Snapshot>(
                             params, [&](const auto& query) { return store.snapshots(query); },
                             [](const auto& snapshot) { return to_proto(snapshot); })));
              v1::ListSnapshotsResponse response;
              for (auto& item : page.items) *response.add_snapshots() = std::move(item);
              response.set_next_page_token(page.next_token);
              return response;
            });
      });
  service.unary<v1::GetSnapshotRequest, v1::GetSnapshotResponse>(
      "GetSnapshot", [&deps](const Call&, const v1::GetSnapshotRequest& request,
                             Reply<v1::GetSnapshotResponse> reply) {
        ODT_FIELD(const Hash hash, hash_field(request.hash(), "hash"));
        answer_from_store(deps.control, reply,
                          [hash](store::ControlStore& store) -> Result<v1::GetSnapshotResponse> {
                            const auto snapshot = store.snapshot(hash);
                            if (!snapshot.ok())
                              return not_found(snapshot.status(), "snapshot", hash.hex());
                            v1::GetSnapshotResponse response;
                            *response.mutable_snapshot() = to_proto(*snapshot);
                            ODT_ASSIGN(const auto why, training::reasons_to_keep(store, *snapshot));
                            for (const auto& reason : why) response.add_used_by(clean_text(reason));
                            return response;
                          });
      });
  service.unary<v1::GetEvaluationRequest, v1::GetEvaluationResponse>(
      "GetEvaluation", [&deps](const Call&, const v1::GetEvaluationRequest& request,
                               Reply<v1::GetEvaluationResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.id(), "id"));
        answer_from_store(deps.control, reply,
                          [id](store::ControlStore& store) -> Result<v1::GetEvaluationResponse> {
                            const auto found = store.evaluation(id);
                            if (!found.ok())
                              return not_found(found.status(), "evaluation", id.hex());
                            v1::GetEvaluationResponse response;
                            *response.mutable_evaluation() = to_proto(*found);
                            return response;
                          });
      });
}

struct SnapshotEdit {
  Hash hash;
  std::vector<std::string> add, remove;
  std::optional<std::string> note;
  std::optional<bool> pinned;
};

Result<SnapshotEdit> read_edit(const v1::UpdateSnapshotRequest& request) {
  SnapshotEdit edit;
  ODT_ASSIGN(edit.hash, hash_field(request.hash(), "hash"));
  for (const auto& raw : request.add_aliases()) {
    ODT_ASSIGN(auto alias, alias_field(raw, "add_aliases", true));
    edit.add.push_back(std::move(alias));
  }
  edit.remove.assign(request.remove_aliases().begin(), request.remove_aliases().end());
  if (request.has_note()) {
    if (request.note().size() > kMaxNoteBytes)
      return bad_field("note", std::to_string(request.note().size()) + " bytes; limit 4096");
    edit.note = clean_text(request.note());
  }
  if (request.has_pinned()) edit.pinned = request.pinned();
  return edit;
}

Result<model::Snapshot> apply_edit(store::ControlStore& store, const Call& call,
                                   const SnapshotEdit& edit) {
  Result<model::Snapshot> snapshot = store.snapshot(edit.hash);
  if (!snapshot.ok()) return not_found(snapshot.status(), "snapshot", edit.hash.hex());
  auto& aliases = snapshot->aliases;
  for (const auto& alias : edit.remove)
    aliases.erase(std::remove(aliases.begin(), aliases.end(), alias), aliases.end());
  for (const auto& alias : edit.add)
    if (std::find(aliases.begin(), aliases.end(), alias) == aliases.end()) aliases.push_back(alias);
  if (aliases.size() > kMaxAliases)
    return bad_field("add_aliases", std::to_string(aliases.size()) + " aliases; limit 32");
  if (edit.note) snapshot->note = *edit.note;
  if (edit.pinned) snapshot->pinned = *edit.pinned;
  ODT_TRY(store.commit(batch_of(call, store::PutSnapshot{*snapshot})));
  return store.snapshot(edit.hash);
}

// odt_weights v1 (proto/README.md): what its header says.
Result<model::Snapshot> read_weights(const std::string& bytes, const Hash& hash) {
  if (bytes.size() < kWeightsHeader || bytes.compare(0, 4, "ODTW") != 0)
    return bad_field("blob", "not odt_weights: no ODTW header",
                     "upload what odtctl weights pull wrote");
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned version = byte(4) | static_cast<unsigned>(byte(5)) << 8;
  if (version != 1)
    return bad_field("blob", "odt_weights version " + std::to_string(version) + "; known: 1");
  model::Snapshot snapshot;
  snapshot.hash = hash;
  ODT_ASSIGN(snapshot.model_hash, Hash::from_bytes(bytes.substr(12, 32)));
  snapshot.bytes = bytes.size();
  snapshot.origin = "upload";
  return snapshot;
}

Result<model::Snapshot> add_snapshot(store::ControlStore& store, const Call& call,
                                     model::Snapshot snapshot, const std::string& alias,
                                     std::int64_t now_us) {
  if (const auto model = store.model(snapshot.model_hash); !model.ok())
    return with_reason(
        absl::FailedPreconditionError("these weights are of the model " +
                                      snapshot.model_hash.hex() + ", which is not here"),
        "MODEL_UNKNOWN", "add the model first", "blob");
  if (auto known = store.snapshot(snapshot.hash); known.ok()) snapshot = std::move(*known);
  if (snapshot.meta.create_time_us == 0) {
    snapshot.meta.gateway_id = store.identity().gateway_id;
    snapshot.meta.created_by = call.ctx.actor;
    snapshot.meta.create_time_us = now_us;
  }
  auto& aliases = snapshot.aliases;
  if (!alias.empty() && std::find(aliases.begin(), aliases.end(), alias) == aliases.end())
    aliases.push_back(alias);
  const Hash hash = snapshot.hash;
  ODT_TRY(store.commit(batch_of(call, store::PutSnapshot{std::move(snapshot)})));
  return store.snapshot(hash);
}

void add_changes(ApiService& service, Deps& deps) {
  service.unary<v1::UpdateSnapshotRequest, v1::UpdateSnapshotResponse>(
      "UpdateSnapshot", [&deps](const Call& call, const v1::UpdateSnapshotRequest& request,
                                Reply<v1::UpdateSnapshotResponse> reply) {
        ODT_FIELD(auto edit, read_edit(request));
        const auto answer = answer_with<v1::UpdateSnapshotResponse, model::Snapshot>(
            reply, &v1::UpdateSnapshotResponse::mutable_snapshot);
        deps.control.post([answer, call, edit](store::ControlStore& store) {
          answer(apply_edit(store, call, edit));
        });
      });
  service.unary<v1::AddSnapshotRequest, v1::AddSnapshotResponse>(
      "AddSnapshot", [&deps](const Call& call, const v1::AddSnapshotRequest& request,
                             Reply<v1::AddSnapshotResponse> reply) {
        ODT_FIELD(const Hash hash, hash_field(request.blob(), "blob"));
        ODT_FIELD(const auto alias, alias_field(request.alias(), "alias", false));
        const auto answer = answer_with<v1::AddSnapshotResponse, model::Snapshot>(
            reply, &v1::AddSnapshotResponse::mutable_snapshot);
        deps.control.post([&deps, answer, call, hash, alias](store::ControlStore& store) {
          const auto bytes = deps.blobs.get(hash);
          if (!bytes.ok()) return answer(not_found(bytes.status(), "blob", hash.hex()));
          auto snapshot = read_weights(*bytes, hash);
          if (!snapshot.ok()) return answer(snapshot.status());
          answer(add_snapshot(store, call, std::move(*snapshot), alias, deps.clock.now_us()));
        });
      });
}

// One sample out of a file, for the model that the board holds.
void infer_file(Deps& deps, const Call& call, const BoardUid& uid, const v1::InferRequest& request,
                Reply<v1::InferResponse> reply) {
  if (!request.dataset_id().empty() || request.values_size() != 0)
    return reply(bad_field("file", "given beside dataset_id or values", "give one of them"));
  Hash held;
  const auto view = deps.fleet.view();
  for (const auto& board : view->boards)
    if (board.uid == uid) held = board.model_hash;
  deps.control.post([&deps, ctx = call.ctx, uid, held, file = request.file(),
                     reply = std::move(reply)](store::ControlStore& store) {
    const auto model = store.model(held);
    if (!model.ok())
      return reply(
          with_reason(absl::FailedPreconditionError("the board holds no model that odtd knows"),
                      "NO_MODEL", "Restore a snapshot, or train first."));
    auto values = values_of_file(file, model->input_shape);
    if (!values.ok()) return reply(values.status());
    deps.fleet.infer_values(ctx, uid, std::move(*values), [reply](Result<model::Inference> result) {
      if (!result.ok()) return reply(result.status());
      reply(to_proto(*result));
    });
  });
}

void add_board_work(ApiService& service, Deps& deps) {
  service.unary<v1::PullWeightsRequest, v1::PullWeightsResponse>(
      "PullWeights", [&deps](const Call& call, const v1::PullWeightsRequest& request,
                             Reply<v1::PullWeightsResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.board_uid(), "board_uid"));
        ODT_FIELD(const auto alias, alias_field(request.alias(), "alias", false));
        deps.fleet.pull_weights(call.ctx, uid, alias,
                                answer_with<v1::PullWeightsResponse, model::Snapshot>(
                                    reply, &v1::PullWeightsResponse::mutable_snapshot));
      });
  service.unary<v1::ExportOnnxRequest, v1::ExportOnnxResponse>(
      "ExportOnnx", [&deps](const Call& call, const v1::ExportOnnxRequest& request,
                            Reply<v1::ExportOnnxResponse> reply) {
        ODT_FIELD(const Hash snapshot, hash_field(request.snapshot(), "snapshot"));
        deps.jobs.export_onnx(call.ctx, snapshot, request.exact(),
                              answer_with<v1::ExportOnnxResponse, model::Job>(
                                  reply, &v1::ExportOnnxResponse::mutable_job));
      });
  service.unary<v1::EvaluateRequest, v1::EvaluateResponse>(
      "Evaluate", [&deps](const Call& call, const v1::EvaluateRequest& request,
                          Reply<v1::EvaluateResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.board_uid(), "board_uid"));
        ODT_FIELD(const Hash snapshot, optional_hash_field(request.snapshot(), "snapshot"));
        ODT_FIELD(const Uuid dataset, uuid_field(request.dataset_id(), "dataset_id"));
        ODT_FIELD(const std::string split, split_field(request.split()));
        const auto answer = answer_with<v1::EvaluateResponse, model::Job>(
            reply, &v1::EvaluateResponse::mutable_job);
        if (request.samples())
          deps.fleet.evaluate_samples(call.ctx, uid, snapshot, dataset, split, answer);
        else
          deps.fleet.evaluate(call.ctx, uid, snapshot, dataset, split, answer);
      });
  service.unary<v1::InferRequest, v1::InferResponse>(
      "Infer",
      [&deps](const Call& call, const v1::InferRequest& request, Reply<v1::InferResponse> reply) {
        ODT_FIELD(const BoardUid uid, uid_field(request.board_uid(), "board_uid"));
        if (!request.file().empty()) return infer_file(deps, call, uid, request, std::move(reply));
        if (request.values_size() != 0) {
          if (!request.dataset_id().empty())
            return reply(bad_field("values", "given beside dataset_id", "give one of them"));
          std::vector<float> values(request.values().begin(), request.values().end());
          return deps.fleet.infer_values(call.ctx, uid, std::move(values),
                                         [reply](Result<model::Inference> result) {
                                           if (!result.ok()) return reply(result.status());
                                           reply(to_proto(*result));
                                         });
        }
        ODT_FIELD(const Uuid dataset, uuid_field(request.dataset_id(), "dataset_id"));
        ODT_FIELD(const std::string split, split_field(request.split()));
        if (request.count() > kMaxInfer)
          return reply(
              bad_field("count", absl::StrCat(request.count()), absl::StrCat("1 to ", kMaxInfer)));
        deps.fleet.infer(call.ctx, uid, dataset, split, request.first(),
                         std::max(request.count(), 1u), [reply](Result<model::Inference> result) {
                           if (!result.ok()) return reply(result.status());
                           reply(to_proto(*result));
                         });
      });
}

}  // namespace

ServicePtr make_weights_service(Deps& deps) {
  auto service = std::make_unique<ApiService>(
      deps.gate, *v1::EvaluateRequest::descriptor()->file()->FindServiceByName("WeightsService"));
  add_reads(*service, deps);
  add_changes(*service, deps);
  add_board_work(*service, deps);
  add_snapshot_methods(*service, deps);
  add_restore_methods(*service, deps);
  return service;
}

}  // namespace odt::api
