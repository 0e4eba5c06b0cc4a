#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace odt::api::v1 {
class Board;
class Campaign;
class Dataset;
class Model;
class Run;
class Snapshot;
}  // namespace odt::api::v1

namespace odt::cli {

class Context;

// Things by name, alias or prefix (resolve.h), through the lists.
Result<api::v1::Board> find_board(Context& context, const std::string& word);
// What a name means that several have: the newest, with a note; or it is refused (INVALID_ARGUMENT
// with all of them), where taking the wrong one would hurt.
enum class Several : std::uint8_t { kNewest, kRefuse };
Result<api::v1::Model> find_model(Context& context, const std::string& word,
                                  Several several = Several::kNewest);
Result<api::v1::Dataset> find_dataset(Context& context, const std::string& word,
                                      Several several = Several::kNewest);
Result<api::v1::Campaign> find_campaign(Context& context, const std::string& word);
Result<api::v1::Run> find_run(Context& context, const std::string& word);
Result<api::v1::Snapshot> find_snapshot(Context& context, const std::string& word);

// Names of things by raw key, for tables: the name, else the beginning of the key.
class Names {
 public:
  // Reads boards, models and datasets. Errors: those of the lists.
  static Result<Names> read(Context& context);
  std::string board(const std::string& uid) const;
  std::string model(const std::string& hash) const;
  std::string dataset(const std::string& id) const;

 private:
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  Pairs boards_, models_, datasets_;
};

}  // namespace odt::cli
