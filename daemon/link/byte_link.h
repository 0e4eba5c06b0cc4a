#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/asio.h"
#include "base/result.h"

namespace odt::link {

// A byte pipe to a board. One reader and one writer at a time, all on the links thread. Owned by a
// shared_ptr wherever an operation may be pending: the pending operation ends after close().
class ByteLink {
 public:
  virtual ~ByteLink() = default;

  // Reads 1 byte or more. Errors: UNAVAILABLE (end, hang-up, closed), with what happened.
  virtual asio::awaitable<Result<std::size_t>> read(asio::mutable_buffer buffer) = 0;
  // Writes all of it. Errors: UNAVAILABLE.
  virtual asio::awaitable<Status> write(asio::const_buffer buffer) = 0;
  // Idempotent. Pending operations end with UNAVAILABLE.
  virtual void close() = 0;
  // True where bytes can be lost or changed on the way (serial); a bad frame is then dropped.
  virtual bool lossy() const = 0;
  // For logs: "/dev/ttyACM0", "tcp:127.0.0.1:4000".
  virtual const std::string& name() const = 0;
};

}  // namespace odt::link
