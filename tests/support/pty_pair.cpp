#include "support/pty_pair.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>

namespace odt::test {
namespace {

class FdLink final : public link::ByteLink {
 public:
  FdLink(asio::io_context& io, int fd, std::string name)
      : stream_(io, fd), name_(std::move(name)) {}
  asio::awaitable<Result<std::size_t>> read(asio::mutable_buffer buffer) override {
    boost::system::error_code ec;
    // EIO: the other end is not open (yet).
    do {
      const std::size_t n =
          co_await stream_.async_read_some(buffer, asio::redirect_error(asio::use_awaitable, ec));
      if (!ec) co_return n;
      asio::steady_timer pause(stream_.get_executor(), std::chrono::milliseconds(10));
      boost::system::error_code ignored;
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    } while (stream_.is_open() && ec.value() == EIO);
    co_return absl::UnavailableError(ec.message());
  }
  asio::awaitable<Status> write(asio::const_buffer buffer) override {
    boost::system::error_code ec;
    co_await asio::async_write(stream_, asio::const_buffers_1(buffer),
                               asio::redirect_error(asio::use_awaitable, ec));
    if (ec) co_return absl::UnavailableError(ec.message());
    co_return absl::OkStatus();
  }
  void close() override {
    boost::system::error_code ignored;
    stream_.close(ignored);
  }
  bool lossy() const override { return true; }
  const std::string& name() const override { return name_; }

 private:
  asio::posix::stream_descriptor stream_;
  std::string name_;
};

}  // namespace

PtyPair::PtyPair(asio::io_context& io) : io_(io) {
  master_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  std::array<char, 128> name{};
  if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0 ||
      ::ptsname_r(master_, name.data(), name.size()) != 0) {
    ADD_FAILURE() << "no pty";
    return;
  }
  path_ = name.data();
}

PtyPair::~PtyPair() { hang_up(); }

std::shared_ptr<link::ByteLink> PtyPair::board_end() {
  if (!end_) end_ = std::make_shared<FdLink>(io_, master_, "pty master");
  return end_;
}

void PtyPair::hang_up() {
  if (end_) {
    end_->close();
  } else if (master_ >= 0) {
    ::close(master_);
  }
  end_.reset();
  master_ = -1;
}

}  // namespace odt::test
