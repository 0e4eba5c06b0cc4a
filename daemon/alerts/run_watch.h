#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "alerts/book.h"
#include "model/run.h"

namespace odt::alerts {

// Runs that train: stuck, accuracy drop, dead layer, saturation. Pure; feeds a Book.
class RunWatch {
 public:
  // name: of a board, for people.
  RunWatch(Book& book, std::function<std::string(const BoardUid&)> name);

  struct Now {
    std::int64_t us, mono_us;
  };
  // A run as it is, from its event or from the store at the start. True: it has just begun to
  // train, and its model's weights are wanted.
  bool on_run(const model::Run& run, Now now);
  // Weights of each trainable layer, first to last. An epoch that came before is judged now.
  void on_model(const Uuid& run, std::vector<std::uint32_t> weights, Now now);
  void on_epoch(const model::EpochResult& epoch, Now now);
  void on_progress(const std::vector<Uuid>& runs, Now now);  // telemetry came
  void forget_board(const BoardUid& board);
  void restart_board(const BoardUid& board, Now now);  // counts begin anew
  void tick(Now now);
  bool any() const { return !runs_.empty(); }

 private:
  struct Watched {
    BoardUid board;
    std::string name;
    bool running = false;
    std::int64_t progress = 0;  // mono
    std::uint32_t attempt = 0, steps = 0, epochs = 0, epoch_us = 0;
    model::Accuracy best;
    model::Loss best_loss;
    std::uint32_t best_step = 0, dead_in_a_row = 0;
    std::vector<std::uint32_t> weights;
    std::optional<model::EpochResult> unjudged;  // the newest one, while the weights are not known
  };
  Seen seen(model::AlertKind rule, const Uuid& id, const Watched& run) const;
  void end(const model::Run& run, Watched& watched, Now now);
  void judge_accuracy(const model::EpochResult& epoch, const Uuid& id, Watched& run, Now now);
  void judge_dead(const model::EpochResult& epoch, const Uuid& id, Watched& run, Now now);
  void judge_saturation(const model::EpochResult& epoch, const Uuid& id, Watched& run, Now now);

  Book& book_;
  std::function<std::string(const BoardUid&)> name_;
  std::map<Uuid, Watched> runs_;
};

}  // namespace odt::alerts
