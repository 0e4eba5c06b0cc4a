#pragma once

#include <memory>
#include <string>

#include "link/byte_link.h"

namespace odt::test {

// A pseudo terminal: `path` is the port that the code under test opens, the board's end is ours.
class PtyPair {
 public:
  explicit PtyPair(asio::io_context& io);
  ~PtyPair();
  PtyPair(const PtyPair&) = delete;
  PtyPair& operator=(const PtyPair&) = delete;

  const std::string& path() const { return path_; }
  int master() const { return master_; }
  // The board's end as a link; owns the descriptor from here on.
  std::shared_ptr<link::ByteLink> board_end();
  void hang_up();  // closes the board's end

 private:
  asio::io_context& io_;
  int master_ = -1;
  std::string path_;
  std::shared_ptr<link::ByteLink> end_;
};

}  // namespace odt::test
