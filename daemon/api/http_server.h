#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/gate.h"
#include "auth/server_tls.h"
#include "base/asio.h"
#include "store/store.h"

namespace grpc {
class Channel;
}

namespace odt::api {

struct HttpOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 8080;  // 0: any free one
  std::string web_dir;
  std::string python_dir;  // the Python package for pip, under /python/
  std::vector<std::string> allowed_hosts, allowed_origins;
  std::size_t max_connections = 512;
  std::size_t kept_for_local = 32;           // of those: peers on other machines cannot take them
  std::size_t max_of_address = 128;          // of one other machine
  std::size_t max_message_bytes = 4u << 20;  // of one gRPC-Web request
  // Then the connection is closed: without a request, in the middle of a header (and of the TLS
  // handshake), of a body, of an answer that is not taken.
  std::chrono::seconds idle{75}, header{10}, body{60}, write{30};
  std::shared_ptr<const auth::ServerTls> tls;  // null: clear text
};

// What answers behind the port.
struct HttpBackend {
  std::shared_ptr<grpc::Channel> channel;  // to the gRPC server in this process
  store::BlobStore* blobs = nullptr;
  Gate* gate = nullptr;
  std::function<std::string()> metrics;  // Prometheus text
  std::function<bool()> ready;
};

// The HTTP/1.1 port: gRPC-Web calls, unary calls as JSON, /v1/blobs/<sha256> with Range, the
// dashboard's files, /python/ for pip, /healthz, /readyz, /metrics.
//
// Concurrency: everything runs on `front` (one thread); the functions are called from there, or
// before it runs. A coroutine per connection.
class HttpServer {
 public:
  // Binds and listens, accepts nothing yet. ALREADY_EXISTS: the port is in use.
  static Result<std::unique_ptr<HttpServer>> bind(asio::io_context& front, HttpOptions options);
  ~HttpServer();  // after `front` has stopped

  void serve(HttpBackend backend);
  void stop_accepting();
  // Closes what is still open; calls under way are cancelled.
  void close_all();
  std::uint16_t port() const;
  std::size_t connections() const;

 private:
  struct Impl;
  explicit HttpServer(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace odt::api
