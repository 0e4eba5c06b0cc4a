#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "data/import.h"
#include "data/report.h"

namespace odt::worker {

struct ImportOutputs {
  std::string dataset, report;  // paths; empty: not written
};
struct Imported {
  data::Dataset dataset;
  data::Report report;
  Hash content_hash;  // of the dataset file; zero: not written
};

// Import, report and files. A data or test_data path that is a tar archive is unpacked into
// `scratch` first. Errors: those of import_dataset and unpack_tar.
Result<Imported> import_files(data::ImportRequest request, const std::string& scratch,
                              const ImportOutputs& outputs, const data::Progress& progress);

// The job "import" (README.md).
Result<nlohmann::json> run_import(const nlohmann::json& job, const std::string& base,
                                  const data::Progress& progress);

}  // namespace odt::worker
