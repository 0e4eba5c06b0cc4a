#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/services.h"
#include "auth/server_tls.h"

namespace grpc {
class Channel;
class Server;
}  // namespace grpc

namespace odt::api {

struct GrpcOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;   // 0: any free one
  std::string socket_path;  // empty: no unix socket; 0660, group odt where there is one
  std::shared_ptr<const auth::ServerTls> tls = nullptr;  // of the port; null: clear text
  bool reflection = true;
};

// The gRPC port: all services, health and reflection.
class GrpcServer {
 public:
  // Whether the addresses are free, before anything is started. Errors: ALREADY_EXISTS (port or
  // socket in use), INVALID_ARGUMENT.
  static Status check(const GrpcOptions& options);
  // With TLS nothing but 1.3 is spoken, if tls_13_only() was called before gRPC's first use.
  static void tls_13_only();
  // Errors as check().
  static Result<std::unique_ptr<GrpcServer>> start(const GrpcOptions& options,
                                                   std::vector<ServicePtr> services);
  ~GrpcServer();  // shutdown(0)

  std::uint16_t port() const { return port_; }
  std::shared_ptr<grpc::Channel> channel() const;  // within this process
  // Health says NOT_SERVING, new calls are refused, open ones are cancelled after `grace`. Returns
  // when all are over.
  void shutdown(std::chrono::milliseconds grace);

 private:
  GrpcServer(std::vector<ServicePtr> services, std::string socket_path);
  std::vector<ServicePtr> services_;  // outlive the server
  std::unique_ptr<grpc::Server> server_;
  std::string socket_path_;
  std::uint16_t port_ = 0;
};

}  // namespace odt::api
