#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "alerts/book.h"
#include "model/board.h"

namespace odt::alerts {

// Boards as the fleet sees them: offline, CRC rate, firmware skew. Pure; feeds a Book.
class BoardWatch {
 public:
  BoardWatch(Book& book, std::uint32_t rules_version)
      : book_(book), rules_version_(rules_version) {}

  // Each second or so. Boards that are not in the view any more are forgotten.
  void look(const std::vector<model::Board>& boards, std::int64_t now_us, std::int64_t mono_us);
  // The uid where it is not known.
  std::string name(const BoardUid& board) const;
  // Of it since start.
  void forget(const BoardUid& board) { boards_.erase(board); }

 private:
  struct Sample {
    std::int64_t mono_us;
    std::uint64_t frames, errors;
  };
  struct Watched {
    std::string name;
    std::int64_t away_since = -1;  // mono; -1: it is there
    std::deque<Sample> link;       // of the last minute
  };
  void judge_presence(const model::Board& board, Watched& w, std::int64_t now_us,
                      std::int64_t mono_us);
  void judge_link(const model::Board& board, Watched& w, std::int64_t now_us, std::int64_t mono_us);
  void judge_firmware(const std::vector<model::Board>& boards, std::int64_t now_us,
                      std::int64_t mono_us);

  Book& book_;
  std::uint32_t rules_version_;
  std::map<BoardUid, Watched> boards_;
};

}  // namespace odt::alerts
