#include "api/grpc_server.h"

#include <grp.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/asio.h"

namespace odt::api {
namespace {

Status socket_in_use(const std::string& path) {
  return with_reason(absl::AlreadyExistsError("unix socket " + path + " is in use by another odtd"),
                     "SOCKET_IN_USE", "stop that odtd, or choose another with --socket");
}

// A socket file that nobody listens on is left over from a killed daemon.
Status check_socket(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path)
    return with_reason(
        absl::InvalidArgumentError("unix socket path of " + std::to_string(path.size()) +
                                   " characters; limit 107: " + path),
        "SOCKET_PATH_TOO_LONG", "choose a shorter one with --socket");
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode))
    return absl::AlreadyExistsError(path + " is there and is not a socket");
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int answer = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  ::close(fd);
  if (answer == 0) return socket_in_use(path);
  ::unlink(path.c_str());
  return absl::OkStatus();
}

Status check_port(const std::string& address, std::uint16_t port) {
  boost::system::error_code error;
  const auto ip = asio::ip::make_address(address, error);
  if (error)
    return absl::InvalidArgumentError("grpc: '" + address + "' is not an IP address to listen on");
  asio::io_context io;
  asio::ip::tcp::acceptor probe(io);
  const asio::ip::tcp::endpoint endpoint(ip, port);
  probe.open(endpoint.protocol(), error);
  if (!error) probe.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) probe.bind(endpoint, error);
  if (!error) probe.listen(1, error);
  const std::string where = address + ":" + std::to_string(port);
  if (error == asio::error::address_in_use)
    return with_reason(
        absl::AlreadyExistsError("grpc port " + where + " is in use"), "PORT_IN_USE",
        "stop what listens there (ss -ltnp shows it), or choose another with --grpc");
  if (error) return absl::UnavailableError("grpc port " + where + ": " + error.message());
  return absl::OkStatus();
}

void open_to_group(const std::string& path) {
  if (const group* odt = ::getgrnam("odt"); odt != nullptr)
    if (::chown(path.c_str(), static_cast<uid_t>(-1), odt->gr_gid) != 0)
      spdlog::warn("api: {} stays with its group: {}", path, std::strerror(errno));
  if (::chmod(path.c_str(), 0660) != 0)
    spdlog::warn("api: mode of {} not set: {}", path, std::strerror(errno));
}

std::shared_ptr<grpc::ServerCredentials> credentials_of(const auth::ServerTls* tls) {
  if (tls == nullptr) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(tls->client_ca_pem.empty()
                                                ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                                : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = tls->client_ca_pem;
  options.pem_key_cert_pairs.push_back({tls->key_pem, tls->cert_pem});
  return grpc::SslServerCredentials(options);
}

std::string listen_name(const GrpcOptions& options) {
  const bool v6 = options.address.find(':') != std::string::npos;
  return (v6 ? "[" + options.address + "]" : options.address) + ":" + std::to_string(options.port);
}

}  // namespace

// gRPC 1.51 has no option for it: with a list of TLS 1.2 suites that no certificate can serve,
// only 1.3 is left, whose suites are another list.
void GrpcServer::tls_13_only() { ::setenv("GRPC_SSL_CIPHER_SUITES", "PSK-AES256-GCM-SHA384", 1); }

Status GrpcServer::check(const GrpcOptions& options) {
  ODT_TRY(check_port(options.address, options.port));
  if (!options.socket_path.empty()) ODT_TRY(check_socket(options.socket_path));
  return absl::OkStatus();
}

GrpcServer::GrpcServer(std::vector<ServicePtr> services, std::string socket_path)
    : services_(std::move(services)), socket_path_(std::move(socket_path)) {}

Result<std::unique_ptr<GrpcServer>> GrpcServer::start(const GrpcOptions& options,
                                                      std::vector<ServicePtr> services) {
  ODT_TRY(check(options));
  static const bool plugins = [reflection = options.reflection] {
    grpc::EnableDefaultHealthCheckService(true);
    if (reflection) grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
  (void)plugins;
  std::unique_ptr<GrpcServer> self(new GrpcServer(std::move(services), options.socket_path));
  grpc::ServerBuilder builder;
  int port = 0;
  // Two daemons must not share a port unnoticed.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10'000);
  // Who connects and says nothing is let go; so is who has not called for long (its client
  // connects again by itself).
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 300'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 256);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 16 << 10);
  builder.AddListeningPort(listen_name(options), credentials_of(options.tls.get()), &port);
  if (!options.socket_path.empty())
    builder.AddListeningPort("unix:" + options.socket_path, grpc::InsecureServerCredentials());
  for (const auto& service : self->services_) builder.RegisterService(service.get());
  self->server_ = builder.BuildAndStart();
  if (self->server_ == nullptr || port == 0)
    return with_reason(
        absl::UnavailableError(
            "grpc: cannot listen on " + listen_name(options) +
            (options.socket_path.empty() ? std::string() : " and " + options.socket_path)),
        "LISTEN_FAILED", "see the lines above; choose with --grpc and --socket");
  self->port_ = static_cast<std::uint16_t>(port);
  if (!options.socket_path.empty()) open_to_group(options.socket_path);
  return self;
}

GrpcServer::~GrpcServer() {
  if (server_ != nullptr) shutdown(std::chrono::milliseconds(0));
}

std::shared_ptr<grpc::Channel> GrpcServer::channel() const {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return server_->InProcessChannel(arguments);
}

void GrpcServer::shutdown(std::chrono::milliseconds grace) {
  if (server_ == nullptr) return;
  if (auto* health = server_->GetHealthCheckService()) health->SetServingStatus(false);
  server_->Shutdown(std::chrono::system_clock::now() + grace);
  server_->Wait();
  server_.reset();
  if (!socket_path_.empty()) ::unlink(socket_path_.c_str());
}

}  // namespace odt::api
