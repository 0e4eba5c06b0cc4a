#include "cli/client.h"

#include <absl/strings/str_cat.h>
#include <google/protobuf/descriptor.h>
#include <grpc/support/log.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "base/ids.h"
#include "cli/exit_code.h"
#include "cli/text.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "odt/api/v1/services.grpc.pb.h"
#include "odt/api/v1/storage.grpc.pb.h"

namespace odt::cli {
namespace {

namespace pb = google::protobuf;
namespace v1 = api::v1;

constexpr const char* kSystemSocket = "/run/odt-fleet/odtd.sock";

const pb::MethodDescriptor* method_of(const pb::Descriptor* request) {
  const pb::FileDescriptor* file = request->file();
  for (int s = 0; s < file->service_count(); ++s)
    for (int m = 0; m < file->service(s)->method_count(); ++m)
      if (file->service(s)->method(m)->input_type() == request) return file->service(s)->method(m);
  return nullptr;
}

void fill_request_id(pb::Message& request) {
  const pb::FieldDescriptor* field = request.GetDescriptor()->FindFieldByName("request_id");
  if (field != nullptr && request.GetReflection()->GetString(request, field).empty())
    request.GetReflection()->SetString(&request, field, new_uuid().hex());
}

Status from_grpc(const grpc::Status& status, const std::string& address) {
  if (status.ok()) return {};
  google::rpc::Status envelope;
  google::rpc::ErrorInfo info;
  bool from_odtd = false;
  if (envelope.ParseFromString(status.error_details()))
    for (const auto& detail : envelope.details())
      from_odtd |= detail.Is<google::rpc::ErrorInfo>() && detail.UnpackTo(&info);
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE && !from_odtd)
    return with_exit(
        with_reason(absl::UnavailableError("no odtd answers at " + clean(address) + " (" +
                                           clean(status.error_message()) + ")"),
                    "UNREACHABLE",
                    "start odtd (systemctl start odtd), or say where it is: --address or "
                    "$ODT_ADDRESS; 'odtctl doctor' looks for the cause"),
        kExitUnreachable);
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED && !from_odtd)
    return with_reason(
        absl::DeadlineExceededError("odtd at " + clean(address) + " did not answer in time"),
        "NO_ANSWER", "give it longer with --timeout; 'odtctl doctor' looks for the cause");
  Status out(static_cast<absl::StatusCode>(status.error_code()), clean(status.error_message()));
  const auto remedy = info.metadata().find("remedy");
  return with_reason(std::move(out), clean(info.reason()),
                     remedy == info.metadata().end() ? std::string() : clean(remedy->second));
}

std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const Credentials& own) {
  if (own.ca_pem.empty()) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({own.ca_pem, own.key_pem, own.cert_pem});
}

std::shared_ptr<grpc::Channel> open_channel(const std::string& address, const Credentials& own) {
  gpr_set_log_function([](gpr_log_func_args*) {});  // errors reach the user as a status
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(64 << 20);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  return grpc::CreateCustomChannel(address, channel_credentials(own), arguments);
}

void authorize(grpc::ClientContext& context, const std::string& authorization) {
  if (!authorization.empty()) context.AddMetadata("authorization", authorization);
}

Result<grpc::ByteBuffer> to_buffer(const pb::Message& message) {
  grpc::ByteBuffer buffer;
  bool own = false;
  const grpc::Status status =
      grpc::GenericSerialize<grpc::ProtoBufferWriter, pb::Message>(message, &buffer, &own);
  if (!status.ok()) return absl::InternalError("request cannot be serialised");
  return buffer;
}

}  // namespace

struct Client::Impl {
  std::shared_ptr<grpc::Channel> channel;
  std::mutex mutex;
  grpc::ClientContext* watching = nullptr;
  bool cancelled = false;
};

Result<std::string> choose_address(const std::string& given) {
  const auto env = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::string address = given.empty() ? env("ODT_ADDRESS") : given;
  if (address.empty()) {
    const std::string runtime = env("XDG_RUNTIME_DIR");
    const std::string own = runtime + "/odt-fleet.sock";
    const bool use_own = !runtime.empty() && ::access(own.c_str(), F_OK) == 0;
    return std::string("unix:") + (use_own ? own : kSystemSocket);
  }
  if (address.starts_with("unix:") && address.size() > 5) return address;
  const std::size_t colon = address.rfind(':');
  const bool port = colon != std::string::npos && colon > 0 && colon + 1 < address.size() &&
                    address.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  if (port && address.find('/') == std::string::npos) return address;
  return absl::InvalidArgumentError("address '" + clean(address) +
                                    "' is neither host:port nor unix:/path");
}

Client::Client(const std::string& address, std::chrono::seconds timeout, Credentials credentials,
               std::string owner)
    : address_(address),
      authorization_(credentials.token.empty() ? "" : "Bearer " + credentials.token),
      owner_(std::move(owner)),
      timeout_(timeout),
      impl_(new Impl) {
  impl_->channel = open_channel(address, credentials);
}

Client::~Client() = default;

Status Client::call_any(pb::Message& request, pb::Message& response) {
  const pb::MethodDescriptor* method = method_of(request.GetDescriptor());
  if (method == nullptr || method->output_type() != response.GetDescriptor())
    return absl::InternalError("no method takes a " + request.GetTypeName());
  fill_request_id(request);
  ODT_ASSIGN(const grpc::ByteBuffer sent, to_buffer(request));
  grpc::ClientContext context;
  authorize(context, authorization_);
  context.set_deadline(std::chrono::system_clock::now() + timeout_);
  if (!owner_.empty()) context.AddMetadata("x-odt-owner", owner_);
  grpc::GenericStub stub(impl_->channel);
  grpc::CompletionQueue queue;
  const std::string path = absl::StrCat("/", method->service()->full_name(), "/", method->name());
  const auto call = stub.PrepareUnaryCall(&context, path, sent, &queue);
  call->StartCall();
  grpc::ByteBuffer received;
  grpc::Status status;
  call->Finish(&received, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {}
  if (!status.ok()) return from_grpc(status, address_);
  status = grpc::GenericDeserialize<grpc::ProtoBufferReader, pb::Message>(&received, &response);
  return from_grpc(status, address_);
}

Status Client::watch(const v1::WatchRequest& request,
                     const std::function<bool(const v1::WatchResponse&)>& on_response) {
  grpc::ClientContext context;
  authorize(context, authorization_);
  {
    std::lock_guard lock(impl_->mutex);
    if (impl_->cancelled) return {};
    impl_->watching = &context;
  }
  const auto stub = v1::WatchService::NewStub(impl_->channel);
  const auto reader = stub->Watch(&context, request);
  v1::WatchResponse response;
  bool stopped = false;
  while (!stopped && reader->Read(&response)) stopped = !on_response(response);
  if (stopped) context.TryCancel();
  const grpc::Status status = reader->Finish();
  std::lock_guard lock(impl_->mutex);
  impl_->watching = nullptr;
  return stopped || impl_->cancelled ? Status() : from_grpc(status, address_);
}

namespace {

template <typename Response, typename Reader, typename F>
Status read_parts(grpc::ClientContext& context, Reader& reader, const F& on_part,
                  const std::string& address) {
  Response response;
  bool stopped = false;
  while (!stopped && reader.Read(&response)) stopped = !on_part(response);
  if (stopped) context.TryCancel();
  const grpc::Status status = reader.Finish();
  return stopped ? absl::AbortedError("what came could not be written")
                 : from_grpc(status, address);
}

}  // namespace

Status Client::backup(const std::function<bool(const v1::BackupResponse&)>& on_part) {
  grpc::ClientContext context;
  authorize(context, authorization_);
  const auto reader = v1::StorageService::NewStub(impl_->channel)->Backup(&context, {});
  return read_parts<v1::BackupResponse>(context, *reader, on_part, address_);
}

Status Client::export_telemetry(
    const v1::ExportTelemetryRequest& request,
    const std::function<bool(const v1::ExportTelemetryResponse&)>& on_part) {
  grpc::ClientContext context;
  authorize(context, authorization_);
  const auto reader =
      v1::StorageService::NewStub(impl_->channel)->ExportTelemetry(&context, request);
  return read_parts<v1::ExportTelemetryResponse>(context, *reader, on_part, address_);
}

void Client::cancel_watch() {
  std::lock_guard lock(impl_->mutex);
  impl_->cancelled = true;
  if (impl_->watching != nullptr) impl_->watching->TryCancel();
}

bool unreachable(const Status& status) { return exit_code_of(status) == kExitUnreachable; }

}  // namespace odt::cli
