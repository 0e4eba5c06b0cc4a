#include "link/serial_link.h"

namespace odt::link {
namespace {

using boost::system::error_code;

// A single end of file without hang-up is a passing state of some drivers; more are the end.
constexpr int kMaxTransientEof = 3;
constexpr std::chrono::milliseconds kEofPause{50};

}  // namespace

Result<std::shared_ptr<SerialLink>> SerialLink::open(asio::io_context& io, const std::string& path,
                                                     const SerialConfig& config,
                                                     SerialSystem& system) {
  ODT_ASSIGN(const int fd, open_serial(path, config, system));
  return std::make_shared<SerialLink>(io, fd, path, system);
}

SerialLink::SerialLink(asio::io_context& io, int fd, std::string path, SerialSystem& system)
    : stream_(io, fd), pause_(io), path_(std::move(path)), system_(system) {}

SerialLink::~SerialLink() { close(); }

Status SerialLink::set_baud(std::uint32_t baud) {
  if (!stream_.is_open()) return absl::UnavailableError(path_ + ": closed");
  return set_serial_baud(stream_.native_handle(), path_, baud, system_);
}

asio::awaitable<Result<std::size_t>> SerialLink::read(asio::mutable_buffer buffer) {
  for (int eofs = 0;;) {
    error_code ec;
    const std::size_t n =
        co_await stream_.async_read_some(buffer, asio::redirect_error(asio::use_awaitable, ec));
    if (!ec && n > 0) co_return n;
    if (!stream_.is_open()) co_return absl::UnavailableError(path_ + ": closed");
    if (ec && ec != asio::error::eof) {
      co_return absl::UnavailableError(path_ + ": " + ec.message());
    }
    ++eofs;
    if (serial_hung_up(stream_.native_handle()) || eofs > kMaxTransientEof) {
      co_return absl::UnavailableError(path_ + ": hung up (unplugged?)");
    }
    pause_.expires_after(kEofPause);
    co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, ec));
  }
}

asio::awaitable<Status> SerialLink::write(asio::const_buffer buffer) {
  error_code ec;
  co_await asio::async_write(stream_, asio::const_buffers_1(buffer),
                             asio::redirect_error(asio::use_awaitable, ec));
  if (ec) co_return absl::UnavailableError(path_ + ": " + ec.message());
  co_return absl::OkStatus();
}

void SerialLink::close() {
  error_code ignored;
  pause_.cancel(ignored);
  stream_.close(ignored);
}

}  // namespace odt::link
