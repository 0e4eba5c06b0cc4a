#pragma once

#include <optional>
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

// One run's records as a file, piece by piece, while the run goes on.
class Export {
 public:
  Export(const store::TelemetryStore::Range& range, bool csv)
      : range_(range), csv_(csv), next_step_(range.first_step) {}
  // About range.max_frames records; nothing: the end. On the telemetry thread. Errors: ABORTED
  // TELEMETRY_THINNED and NOT_FOUND where the run was thinned or purged since the first piece: what
  // was given is not the whole; those of TelemetryStore.
  Result<std::optional<std::string>> next(store::TelemetryStore& telemetry);

 private:
  Status overtaken(store::TelemetryStore& telemetry) const;
  store::TelemetryStore::Range range_;
  bool csv_;
  std::uint64_t next_step_;
  std::uint64_t cuts_ = 0;  // at the first piece
  std::optional<ExportText> text_;
};

}  // namespace odt::api
