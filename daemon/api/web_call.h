#pragma once

#include <grpcpp/support/status.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace grpc {
class Channel;
}

namespace odt::api {

// One call of the browser, carried to the gRPC server in this process. Unary and server-streaming
// methods look the same here.
//
// Backpressure: with 64 KiB waiting, nothing more is read until take().
// Concurrency: any thread; `wake` is called on gRPC's threads whenever there may be something new.
class WebCall {
 public:
  struct Request {
    std::string path;                     // "/odt.api.v1.FleetService/ListBoards"
    std::string message;                  // serialised
    std::chrono::nanoseconds timeout{0};  // 0: none
    std::string peer;                     // of the browser, as gRPC prints it
    std::string bridge_token;             // AccessPolicy::bridge_token
    std::string cert_name;  // CN of the certificate that the browser has proven to have
    std::string authorization;
    std::string owner;  // whom it is for; empty: who calls
  };
  static std::shared_ptr<WebCall> start(const std::shared_ptr<grpc::Channel>& channel,
                                        Request request, std::function<void()> wake);
  ~WebCall();

  std::string take();  // message frames that have come since the last call
  // The trailer frame, once the call is over and everything is taken.
  std::optional<std::string> take_trailer();
  // How the call ended, once it is over and everything is taken.
  std::optional<grpc::Status> status() const;
  void cancel();

 private:
  class Reactor;
  explicit WebCall(std::shared_ptr<Reactor> reactor) : reactor_(std::move(reactor)) {}
  std::shared_ptr<Reactor> reactor_;
};

}  // namespace odt::api
