#pragma once

#include <deque>
#include <memory>
#include <utility>

#include "link/byte_link.h"

namespace odt::test {

// Two ends of a pipe in memory. What one writes the other reads.
class MemoryLink final : public link::ByteLink {
 public:
  static std::pair<std::shared_ptr<MemoryLink>, std::shared_ptr<MemoryLink>> make_pair(
      asio::io_context& io, bool lossy = true);

  MemoryLink(asio::io_context& io, bool lossy);

  asio::awaitable<Result<std::size_t>> read(asio::mutable_buffer buffer) override;
  asio::awaitable<Status> write(asio::const_buffer buffer) override;
  void close() override;
  bool lossy() const override { return lossy_; }
  const std::string& name() const override { return name_; }
  bool closed() const { return closed_; }

 private:
  asio::steady_timer readable_;
  std::deque<char> inbox_;
  std::weak_ptr<MemoryLink> peer_;
  bool lossy_;
  bool closed_ = false;
  std::string name_ = "memory";
};

}  // namespace odt::test
