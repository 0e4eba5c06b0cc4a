#include "api/service_helpers.h"

namespace odt::api {
namespace {

void add_create(ApiService& service, Deps& deps) {
  service.unary<v1::CreateUploadRequest, v1::CreateUploadResponse>(
      "CreateUpload", [&deps](const Call& call, const v1::CreateUploadRequest& request,
                              Reply<v1::CreateUploadResponse> reply) {
        ODT_FIELD(const auto name, text_field(request.name(), "name", 255, true));
        ODT_FIELD(const Hash hash, hash_field(request.sha256(), "sha256"));
        deps.uploads.create(call.ctx, name, request.size(), hash,
                            answer_with<v1::CreateUploadResponse, model::Upload>(
                                reply, &v1::CreateUploadResponse::mutable_upload));
      });
}

void add_write(ApiService& service, Deps& deps) {
  service.unary<v1::WriteChunkRequest, v1::WriteChunkResponse>(
      "WriteChunk", [&deps](const Call&, const v1::WriteChunkRequest& request,
                            Reply<v1::WriteChunkResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.upload_id(), "upload_id"));
        if (request.data().empty() || request.data().size() > kMaxChunkBytes)
          return reply(bad_field("data", std::to_string(request.data().size()) +
                                             " bytes; allowed 1 to " +
                                             std::to_string(kMaxChunkBytes)));
        deps.uploads.write(id, request.offset(), request.data(),
                           [reply](Result<std::uint64_t> received) {
                             if (!received.ok()) return reply(received.status());
                             v1::WriteChunkResponse response;
                             response.set_received(*received);
                             reply(std::move(response));
                           });
      });
}

void add_get_and_finish(ApiService& service, Deps& deps) {
  service.unary<v1::GetUploadRequest, v1::GetUploadResponse>(
      "GetUpload", [&deps](const Call&, const v1::GetUploadRequest& request,
                           Reply<v1::GetUploadResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.id(), "id"));
        deps.uploads.get(id, answer_with<v1::GetUploadResponse, model::Upload>(
                                 reply, &v1::GetUploadResponse::mutable_upload));
      });
  service.unary<v1::FinishUploadRequest, v1::FinishUploadResponse>(
      "FinishUpload", [&deps](const Call& call, const v1::FinishUploadRequest& request,
                              Reply<v1::FinishUploadResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.id(), "id"));
        deps.uploads.finish(call.ctx, id, [reply](Result<Hash> blob) {
          if (!blob.ok()) return reply(blob.status());
          v1::FinishUploadResponse response;
          response.set_blob(blob->str());
          reply(std::move(response));
        });
      });
}

}  // namespace

ServicePtr make_upload_service(Deps& deps) {
  auto service = std::make_unique<ApiService>(
      deps.gate, *v1::GetUploadRequest::descriptor()->file()->FindServiceByName("UploadService"));
  add_create(*service, deps);
  add_write(*service, deps);
  add_get_and_finish(*service, deps);
  return service;
}

}  // namespace odt::api
