#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "cli/credentials.h"

namespace google::protobuf {
class Message;
}
namespace odt::api::v1 {
class BackupResponse;
class ExportTelemetryRequest;
class ExportTelemetryResponse;
class WatchRequest;
class WatchResponse;
}  // namespace odt::api::v1

namespace odt::cli {

// "unix:/path" or "host:port". `given` (--address) before $ODT_ADDRESS before the usual sockets.
// INVALID_ARGUMENT: neither form.
Result<std::string> choose_address(const std::string& given);

// One connection to odtd. Concurrency: calls from one thread; cancel_watch() from any.
class Client {
 public:
  // owner: whom the calls are for; empty: who makes them.
  Client(const std::string& address, std::chrono::seconds timeout, Credentials credentials = {},
         std::string owner = {});
  ~Client();

  // The method whose request has this type. Fills request_id where the request has one, so that a
  // call that is repeated after a lost connection has one effect.
  // Errors: those of odtd, with reason and remedy; exit code 3 where nobody answers.
  template <typename Response, typename Request>
  Result<Response> call(const Request& request) {
    Request copy = request;
    Response response;
    const Status status = call_any(copy, response);
    if (!status.ok()) return status;
    return response;
  }
  // All pages of a list. `items` gives the repeated field of a response.
  template <typename Response, typename Request, typename Items>
  auto list(Request request, Items items) {
    using Repeated = std::decay_t<decltype(items(std::declval<Response&>()))>;
    Repeated all;
    request.set_page_size(1000);
    while (true) {
      Result<Response> page = call<Response>(request);
      if (!page.ok()) return Result<Repeated>(page.status());
      all.MergeFrom(items(*page));
      if (page->next_page_token().empty()) return Result<Repeated>(std::move(all));
      request.set_page_token(page->next_page_token());
    }
  }

  // Until the stream ends, fails, or `on_response` says false (OK then).
  Status watch(const api::v1::WatchRequest& request,
               const std::function<bool(const api::v1::WatchResponse&)>& on_response);
  void cancel_watch();
  // Until the end, or `on_part` says false (ABORTED then).
  Status backup(const std::function<bool(const api::v1::BackupResponse&)>& on_part);
  Status export_telemetry(
      const api::v1::ExportTelemetryRequest& request,
      const std::function<bool(const api::v1::ExportTelemetryResponse&)>& on_part);

  const std::string& address() const { return address_; }

 private:
  Status call_any(google::protobuf::Message& request, google::protobuf::Message& response);
  std::string address_, authorization_, owner_;
  std::chrono::seconds timeout_;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

bool unreachable(const Status& status);

}  // namespace odt::cli
