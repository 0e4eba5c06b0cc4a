#pragma once

#include <string>

#include "store/store.h"

// Raw telemetry as text: CSV or JSON lines.
namespace odt::api {

class ExportText {
 public:
  // thinned: records of the run that only rollups are left of; the header says so.
  ExportText(const Uuid& run, bool csv, std::uint64_t thinned)
      : run_(run), csv_(csv), thinned_(thinned) {}
  // The header comes with the first part.
  std::string part(const std::vector<model::TelemetryFrame>& frames);

 private:
  std::string header(const std::vector<model::TelemetryFrame>& frames) const;
  Uuid run_;
  bool csv_;
  std::uint64_t thinned_;
  bool begun_ = false;
};

}  // namespace odt::api
