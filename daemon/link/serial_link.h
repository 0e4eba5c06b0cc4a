#pragma once

#include <memory>

#include "link/byte_link.h"
#include "link/serial_open.h"

namespace odt::link {

// A serial port of our own opening. A hang-up ends read() once; it never spins (a pty or an
// unplugged adapter reports end of file for ever).
class SerialLink : public ByteLink {
 public:
  // Errors: those of open_serial().
  static Result<std::shared_ptr<SerialLink>> open(asio::io_context& io, const std::string& path,
                                                  const SerialConfig& config,
                                                  SerialSystem& system = real_serial_system());

  SerialLink(asio::io_context& io, int fd, std::string path, SerialSystem& system);
  ~SerialLink() override;

  Status set_baud(std::uint32_t baud);

  asio::awaitable<Result<std::size_t>> read(asio::mutable_buffer buffer) override;
  asio::awaitable<Status> write(asio::const_buffer buffer) override;
  void close() override;
  bool lossy() const override { return true; }
  const std::string& name() const override { return path_; }

 private:
  asio::posix::stream_descriptor stream_;
  asio::steady_timer pause_;
  std::string path_;
  SerialSystem& system_;
};

}  // namespace odt::link
