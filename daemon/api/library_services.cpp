#include <google/protobuf/util/json_util.h>

#include "api/service_helpers.h"
#include "data/dataset.h"

// ModelService and DatasetService.
namespace odt::api {
namespace {

Status blob_is_here(store::BlobStore& blobs, const Hash& hash, std::string_view field) {
  if (hash.is_zero() || blobs.has(hash)) return absl::OkStatus();
  return with_reason(absl::NotFoundError(std::string(field) + ": no blob " + hash.hex()),
                     "BLOB_UNKNOWN", "upload the file first and finish the upload", field);
}

void add_model_reads(ApiService& service, Deps& deps) {
  service.unary<v1::ListModelsRequest, v1::ListModelsResponse>(
      "ListModels", [&deps](const Call&, const v1::ListModelsRequest& request,
                            Reply<v1::ListModelsResponse> reply) {
        ODT_FIELD(auto params, params_of<v1::Model>(request));
        answer_from_store(deps.control, reply,
                          [params](store::ControlStore& store) -> Result<v1::ListModelsResponse> {
                            ODT_ASSIGN(
                                auto page,
                                (list_from<v1::Model, model::Model>(
                                    params, [&](const auto& query) { return store.models(query); },
                                    [](const auto& model) { return to_proto(model); })));
                            v1::ListModelsResponse response;
                            for (auto& model : page.items)
                              *response.add_models() = std::move(model);
                            response.set_next_page_token(page.next_token);
                            return response;
                          });
      });
  service.unary<v1::GetModelRequest, v1::GetModelResponse>(
      "GetModel",
      [&deps](const Call&, const v1::GetModelRequest& request, Reply<v1::GetModelResponse> reply) {
        ODT_FIELD(const Hash hash, hash_field(request.hash(), "hash"));
        answer_from_store(deps.control, reply,
                          [hash](store::ControlStore& store) -> Result<v1::GetModelResponse> {
                            const auto model = store.model(hash);
                            if (!model.ok()) return not_found(model.status(), "model", hash.hex());
                            v1::GetModelResponse response;
                            *response.mutable_model() = to_proto(*model);
                            return response;
                          });
      });
}

Result<jobs::CompileChoice> compile_choice(const v1::AddModelRequest& request) {
  static const char* const kArithmetic[] = {"", "int8", "dfp16"};
  static const char* const kInput[] = {"", "u8", "i8", "s16"};
  const int arithmetic = request.arithmetic(), input = request.input();
  if (arithmetic < 0 || arithmetic > 2)
    return bad_field("arithmetic", std::to_string(arithmetic) + "; expected INT8 or DFP16");
  if (input < 0 || input > 3)
    return bad_field("input", std::to_string(input) + "; expected U8, S8 or S16");
  jobs::CompileChoice choice{kArithmetic[arithmetic], kInput[input], std::nullopt};
  if (request.has_input_exponent()) {
    choice.input_exponent = request.input_exponent();
    if (*choice.input_exponent < -15 || *choice.input_exponent > 7)
      return bad_field("input_exponent",
                       std::to_string(*choice.input_exponent) + "; expected -15 to 7");
  }
  return choice;
}

void add_model_changes(ApiService& service, Deps& deps) {
  service.unary<v1::AddModelRequest, v1::AddModelResponse>(
      "AddModel", [&deps](const Call& call, const v1::AddModelRequest& request,
                          Reply<v1::AddModelResponse> reply) {
        ODT_FIELD(const Hash blob, hash_field(request.onnx_blob(), "onnx_blob"));
        ODT_FIELD(const auto name, text_field(request.name(), "name", 64, true));
        if (request.trainable_layers() > 16)
          return reply(bad_field("trainable_layers",
                                 std::to_string(request.trainable_layers()) + "; limit 16"));
        if (const Status there = blob_is_here(deps.blobs, blob, "onnx_blob"); !there.ok())
          return reply(there);
        jobs::CompileChoice choice;
        ODT_FIELD(choice, compile_choice(request));
        deps.jobs.add_model(call.ctx, blob, name, request.trainable_layers(), choice,
                            answer_with<v1::AddModelResponse, model::Job>(
                                reply, &v1::AddModelResponse::mutable_job));
      });
  service.unary<v1::DeleteModelRequest, v1::DeleteModelResponse>(
      "DeleteModel", [&deps](const Call& call, const v1::DeleteModelRequest& request,
                             Reply<v1::DeleteModelResponse> reply) {
        ODT_FIELD(const Hash hash, hash_field(request.hash(), "hash"));
        deps.control.commit(batch_of(call, store::Trash{"model", hash.str()}),
                            [reply, hash](const auto& committed) {
                              if (!committed.ok())
                                return reply(not_found(committed.status(), "model", hash.hex()));
                              reply(v1::DeleteModelResponse());
                            });
      });
}

void add_import(ApiService& service, Deps& deps) {
  service.unary<v1::ImportDatasetRequest, v1::ImportDatasetResponse>(
      "ImportDataset", [&deps](const Call& call, const v1::ImportDatasetRequest& request,
                               Reply<v1::ImportDatasetResponse> reply) {
        ODT_FIELD(auto options, from_proto(request.options()));
        jobs::ImportBlobs blobs;
        ODT_FIELD(blobs.data, hash_field(request.data_blob(), "data_blob"));
        ODT_FIELD(blobs.labels, optional_hash_field(request.label_blob(), "label_blob"));
        ODT_FIELD(blobs.test_data, optional_hash_field(request.test_data_blob(), "test_data_blob"));
        ODT_FIELD(blobs.test_labels,
                  optional_hash_field(request.test_label_blob(), "test_label_blob"));
        for (const auto& [hash, field] :
             {std::pair(blobs.data, "data_blob"), std::pair(blobs.labels, "label_blob"),
              std::pair(blobs.test_data, "test_data_blob"),
              std::pair(blobs.test_labels, "test_label_blob")})
          if (const Status there = blob_is_here(deps.blobs, hash, field); !there.ok())
            return reply(there);
        if (options.format == "idx" && blobs.labels.is_zero())
          return reply(bad_field("label_blob", "absent", "IDX images need their label file"));
        if (options.format == "idx" && blobs.test_data.is_zero() != blobs.test_labels.is_zero())
          return reply(bad_field("test_label_blob", "a test set has both images and labels"));
        deps.jobs.import_dataset(call.ctx, std::move(options), blobs,
                                 answer_with<v1::ImportDatasetResponse, model::Job>(
                                     reply, &v1::ImportDatasetResponse::mutable_job));
      });
}

// The names of the stored JSON are those of the messages. Replaces what the response held.
void add_report(store::BlobStore& blobs, const Hash& hash, v1::GetDatasetResponse& response) {
  if (hash.is_zero()) return;
  const auto bytes = blobs.get(hash);
  if (!bytes.ok()) return;
  google::protobuf::util::JsonParseOptions lenient;
  lenient.ignore_unknown_fields = true;
  if (!google::protobuf::util::JsonStringToMessage(*bytes, &response, lenient).ok())
    response.Clear();
}

// The one sample asked for, in place of the preview's.
Status add_sample(store::BlobStore& blobs, const Hash& content, std::uint32_t number,
                  v1::GetDatasetResponse& response) {
  Result<data::Dataset> found = data::Dataset{};
  if (const auto path = blobs.path(content); path.ok()) {
    found = data::read_sample(*path, number);
  } else {
    ODT_ASSIGN(const std::string bytes, blobs.get(content));
    found = data::decode_sample(bytes, number);
  }
  if (absl::IsOutOfRange(found.status()))
    return with_reason(absl::NotFoundError(found.status().message()), "SAMPLE_UNKNOWN",
                       "number samples from 0, training first", "sample");
  if (!found.ok()) return found.status();
  const data::Dataset& d = *found;
  v1::DatasetPreview& preview = *response.mutable_preview();
  if (preview.kind().empty()) preview.set_kind(d.kind);
  preview.mutable_shape()->Assign(d.shape.begin(), d.shape.end());
  preview.clear_samples();
  v1::DatasetPreview::Sample& sample = *preview.add_samples();
  sample.set_index(number);
  sample.set_split(d.counts[0] != 0 ? "train" : d.counts[1] != 0 ? "heldout" : "test");
  if (!d.class_names.empty()) sample.set_label(d.class_names[d.labels[0]]);
  if (!d.groups.empty()) sample.set_group(d.group_names[d.groups[0]]);
  sample.mutable_targets()->Assign(d.targets.begin(), d.targets.end());
  for (std::uint32_t f = 0; f < d.sample_len(); ++f) sample.add_values(d.value(0, f));
  return absl::OkStatus();
}

void add_datasets(ApiService& service, Deps& deps) {
  service.unary<v1::ListDatasetsRequest, v1::ListDatasetsResponse>(
      "ListDatasets", [&deps](const Call&, const v1::ListDatasetsRequest& request,
                              Reply<v1::ListDatasetsResponse> reply) {
        ODT_FIELD(auto params, params_of<v1::Dataset>(request));
        answer_from_store(
            deps.control, reply,
            [params](store::ControlStore& store) -> Result<v1::ListDatasetsResponse> {
              ODT_ASSIGN(auto page,
                         (list_from<v1::Dataset, model::Dataset>(
                             params, [&](const auto& query) { return store.datasets(query); },
                             [](const auto& dataset) { return to_proto(dataset); })));
              v1::ListDatasetsResponse response;
              for (auto& item : page.items) *response.add_datasets() = std::move(item);
              response.set_next_page_token(page.next_token);
              return response;
            });
      });
  service.unary<v1::GetDatasetRequest, v1::GetDatasetResponse>(
      "GetDataset", [&deps](const Call&, const v1::GetDatasetRequest& request,
                            Reply<v1::GetDatasetResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.id(), "id"));
        std::optional<std::uint32_t> sample;
        if (request.has_sample()) sample = request.sample();
        answer_from_store(
            deps.control, reply,
            [id, sample, &deps](store::ControlStore& store) -> Result<v1::GetDatasetResponse> {
              const auto dataset = store.dataset(id);
              if (!dataset.ok()) return not_found(dataset.status(), "dataset", id.hex());
              v1::GetDatasetResponse response;
              add_report(deps.blobs, dataset->report_hash, response);
              if (sample) ODT_TRY(add_sample(deps.blobs, dataset->content_hash, *sample, response));
              *response.mutable_dataset() = to_proto(*dataset);
              return response;
            });
      });
  service.unary<v1::DeleteDatasetRequest, v1::DeleteDatasetResponse>(
      "DeleteDataset", [&deps](const Call& call, const v1::DeleteDatasetRequest& request,
                               Reply<v1::DeleteDatasetResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.id(), "id"));
        deps.control.commit(batch_of(call, store::Trash{"dataset", id.str()}),
                            [reply, id](const auto& committed) {
                              if (!committed.ok())
                                return reply(not_found(committed.status(), "dataset", id.hex()));
                              reply(v1::DeleteDatasetResponse());
                            });
      });
}

}  // namespace

ServicePtr make_model_service(Deps& deps) {
  auto service = std::make_unique<ApiService>(
      deps.gate, *v1::GetModelRequest::descriptor()->file()->FindServiceByName("ModelService"));
  add_model_reads(*service, deps);
  add_model_changes(*service, deps);
  return service;
}

ServicePtr make_dataset_service(Deps& deps) {
  auto service = std::make_unique<ApiService>(
      deps.gate, *v1::GetDatasetRequest::descriptor()->file()->FindServiceByName("DatasetService"));
  add_import(*service, deps);
  add_datasets(*service, deps);
  return service;
}

}  // namespace odt::api
