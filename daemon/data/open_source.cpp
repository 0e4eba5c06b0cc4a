#include <absl/strings/str_cat.h>

#include "data/import.h"

namespace odt::data {
namespace {

using Open = Result<std::unique_ptr<Source>> (*)(const ImportRequest&);

// A line for each format that is read row by row; a reader adds its own.
struct Format {
  const char* name;
  Open open;
};
constexpr Format kFormats[] = {
    {nullptr, nullptr},
};

}  // namespace

Result<std::unique_ptr<Source>> open_source(const ImportRequest& request) {
  std::string known = "idx, csv";
  for (const auto& format : kFormats) {
    if (format.name == nullptr) break;
    if (request.format == format.name) return format.open(request);
    absl::StrAppend(&known, ", ", format.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("format '", request.format, "' is not known; use ", known));
}

}  // namespace odt::data
