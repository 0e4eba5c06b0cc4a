#include "support/memory_link.h"

#include <algorithm>

namespace odt::test {

std::pair<std::shared_ptr<MemoryLink>, std::shared_ptr<MemoryLink>> MemoryLink::make_pair(
    asio::io_context& io, bool lossy) {
  auto a = std::make_shared<MemoryLink>(io, lossy);
  auto b = std::make_shared<MemoryLink>(io, lossy);
  a->peer_ = b;
  b->peer_ = a;
  return {a, b};
}

MemoryLink::MemoryLink(asio::io_context& io, bool lossy) : readable_(io), lossy_(lossy) {}

asio::awaitable<Result<std::size_t>> MemoryLink::read(asio::mutable_buffer buffer) {
  while (inbox_.empty() && !closed_) {
    readable_.expires_at(std::chrono::steady_clock::time_point::max());
    boost::system::error_code ignored;
    co_await readable_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  if (inbox_.empty()) co_return absl::UnavailableError("memory: closed");
  const std::size_t n = std::min(buffer.size(), inbox_.size());
  std::copy_n(inbox_.begin(), n, static_cast<char*>(buffer.data()));
  inbox_.erase(inbox_.begin(), inbox_.begin() + static_cast<std::ptrdiff_t>(n));
  co_return n;
}

asio::awaitable<Status> MemoryLink::write(asio::const_buffer buffer) {
  const auto peer = peer_.lock();
  if (closed_ || !peer || peer->closed_) co_return absl::UnavailableError("memory: closed");
  const auto* data = static_cast<const char*>(buffer.data());
  peer->inbox_.insert(peer->inbox_.end(), data, data + buffer.size());
  peer->readable_.cancel();
  co_return absl::OkStatus();
}

void MemoryLink::close() {
  if (closed_) return;
  closed_ = true;
  readable_.cancel();
  if (const auto peer = peer_.lock()) peer->close();
}

}  // namespace odt::test
