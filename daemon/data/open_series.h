#pragma once

#include <memory>

#include "data/import.h"

// The readers of wav, edge-impulse and png for an import request (path: a folder, a zip archive or
// one file; name: as shown), and windows for any table.
namespace odt::data {

// features empty: "spectrogram". window_s 0: each file is one sample.
Result<std::unique_ptr<Source>> open_wav_rows(const ImportRequest& request, const std::string& path,
                                              const std::string& name);
// features empty: "raw". window_s 0: 1 s.
Result<std::unique_ptr<Source>> open_edge_impulse_rows(const ImportRequest& request,
                                                       const std::string& path,
                                                       const std::string& name);
Result<std::unique_ptr<Source>> open_png_rows(const ImportRequest& request, const std::string& path,
                                              const std::string& name);

// The request asks for windows or features of a table (`series` set).
bool wants_windows(const ImportRequest& request);
// A table's rows behind the request's windows and features. series "steps": a row is a time step,
// its group the recording; "rows": a row is a recording of steps x channels.
Result<std::unique_ptr<Source>> windows_of(std::unique_ptr<Source> table,
                                           const ImportRequest& request);

}  // namespace odt::data
