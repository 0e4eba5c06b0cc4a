#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace odt::api {

struct StaticFile {
  std::string content, content_type, etag;
  bool gzip = false;       // content is gzip-compressed
  bool immutable = false;  // its name holds its hash: cache for ever
};

// The dashboard's files under one folder. "/" and paths without a dot that are no file are
// index.html: the dashboard routes them itself. A file "x.gz" beside "x" goes out for x where the
// client takes gzip. Nothing outside of the folder is ever read, through links neither.
class StaticFiles {
 public:
  explicit StaticFiles(std::string folder) : folder_(std::move(folder)) {}
  // path: decoded, begins with '/'. nullopt: not there.
  std::optional<StaticFile> find(std::string_view path, bool gzip_accepted) const;
  bool present() const;  // there is an index.html
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

// What "/" says where no dashboard is built.
std::string page_without_dashboard(const std::string& folder);

}  // namespace odt::api
