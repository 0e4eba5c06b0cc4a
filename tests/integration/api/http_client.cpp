#include "http_client.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "api/web_frame.h"

namespace odt::test {

HttpClient::HttpClient(std::uint16_t port) {
  fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
  const timeval limit{5, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    std::abort();
}

HttpClient::~HttpClient() { ::close(fd_); }

void HttpClient::send(const std::string& data) {
  std::size_t sent = 0;
  while (sent < data.size()) {
    const auto n = ::send(fd_, data.data() + sent, data.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return;
    sent += static_cast<std::size_t>(n);
  }
}

bool HttpClient::fill() {
  char chunk[65536];
  const auto n = ::recv(fd_, chunk, sizeof chunk, 0);
  if (n <= 0) return false;
  buffer_.append(chunk, static_cast<std::size_t>(n));
  return true;
}

std::string HttpClient::line() {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n")) == std::string::npos)
    if (!fill()) return {};
  const std::string text = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return text;
}

std::string HttpClient::bytes(std::size_t count) {
  while (buffer_.size() < count)
    if (!fill()) break;
  const std::string data = buffer_.substr(0, count);
  buffer_.erase(0, count);
  return data;
}

HttpClient::Response HttpClient::read_head() {
  Response response;
  const std::string status = line();
  if (status.size() < 12) return response;
  response.status = std::atoi(status.c_str() + 9);
  for (std::string header = line(); !header.empty(); header = line()) {
    const auto colon = header.find(':');
    std::string name = header.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    response.headers[name] = header.substr(colon + 2);
  }
  return response;
}

std::string HttpClient::read_chunk() {
  const std::size_t size = std::strtoul(line().c_str(), nullptr, 16);
  const std::string data = bytes(size);
  line();
  return data;
}

HttpClient::Response HttpClient::read(bool head_only) {
  Response response = read_head();
  if (head_only || response.status == 0) return response;
  if (response.headers["transfer-encoding"] == "chunked") {
    for (std::string chunk = read_chunk(); !chunk.empty(); chunk = read_chunk())
      response.body += chunk;
  } else {
    response.body = bytes(std::strtoul(response.headers["content-length"].c_str(), nullptr, 10));
  }
  return response;
}

HttpClient::Response HttpClient::request(const std::string& method, const std::string& target,
                                         Headers headers, const std::string& body) {
  headers.insert({"Host", "127.0.0.1"});
  if (!body.empty() || method == "POST") headers["Content-Length"] = std::to_string(body.size());
  std::string text = method + " " + target + " HTTP/1.1\r\n";
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  send(text + "\r\n" + body);
  return read(method == "HEAD");
}

void HttpClient::begin_call(const std::string& path, const std::string& message, Headers headers) {
  headers.insert({"Host", "127.0.0.1"});
  headers.insert({"Content-Type", "application/grpc-web+proto"});
  std::string body;
  api::append_web_header(body, message.size());
  body += message;
  headers["Content-Length"] = std::to_string(body.size());
  std::string text = "POST " + path + " HTTP/1.1\r\n";
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  send(text + "\r\n" + body);
}

HttpClient::Response HttpClient::call(const std::string& path, const std::string& message,
                                      Headers headers) {
  begin_call(path, message, std::move(headers));
  return read();
}

std::vector<WebFrame> frames_of(const std::string& body) {
  std::vector<WebFrame> frames;
  for (std::size_t at = 0; at + api::kWebFrameHeader <= body.size();) {
    std::size_t length = 0;
    for (std::size_t i = 1; i < api::kWebFrameHeader; ++i)
      length = length << 8 | static_cast<unsigned char>(body[at + i]);
    frames.push_back(
        {static_cast<unsigned char>(body[at]), body.substr(at + api::kWebFrameHeader, length)});
    at += api::kWebFrameHeader + length;
  }
  return frames;
}

std::string trailer_of(const std::string& body, const std::string& key) {
  const auto frames = frames_of(body);
  if (frames.empty() || frames.back().flag != 0x80) return "no trailer";
  const std::string text = "\r\n" + frames.back().payload;
  const auto at = text.find("\r\n" + key + ": ");
  if (at == std::string::npos) return "";
  const auto begin = at + key.size() + 4;
  return text.substr(begin, text.find("\r\n", begin) - begin);
}

}  // namespace odt::test
