#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace odt::test {

// A raw HTTP/1.1 client on a blocking socket: what a browser sends, byte for byte.
class HttpClient {
 public:
  explicit HttpClient(std::uint16_t port);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  struct Response {
    int status = 0;                              // 0: the connection ended
    std::map<std::string, std::string> headers;  // names in lower case
    std::string body;
  };
  using Headers = std::map<std::string, std::string>;

  void send(const std::string& bytes);
  Response request(const std::string& method, const std::string& target, Headers headers = {},
                   const std::string& body = {});
  // One gRPC-Web call; the whole answer.
  Response call(const std::string& path, const std::string& message, Headers headers = {});
  void begin_call(const std::string& path, const std::string& message, Headers headers = {});
  Response read_head();
  std::string read_chunk();  // empty: the last one, or the end
  Response read(bool head_only = false);

 private:
  std::string line();
  std::string bytes(std::size_t count);
  bool fill();
  int fd_ = -1;
  std::string buffer_;
};

struct WebFrame {
  unsigned flag = 0;
  std::string payload;
};
std::vector<WebFrame> frames_of(const std::string& body);
std::string trailer_of(const std::string& body, const std::string& key);

}  // namespace odt::test
