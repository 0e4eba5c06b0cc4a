#include "api/static_files.h"

#include <absl/strings/match.h>

#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/ids.h"

namespace odt::api {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMaxFileBytes = 32u << 20;

std::string content_type(const std::string& extension) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kTypes{{
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".mjs", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".json", "application/json"},
      {".map", "application/json"},
      {".webmanifest", "application/manifest+json"},
      {".svg", "image/svg+xml"},
      {".png", "image/png"},
      {".ico", "image/x-icon"},
      {".webp", "image/webp"},
      {".woff2", "font/woff2"},
      {".wasm", "application/wasm"},
      {".txt", "text/plain; charset=utf-8"},
      {".pdf", "application/pdf"},
  }};
  for (const auto& [known, type] : kTypes)
    if (known == extension) return std::string(type);
  return "application/octet-stream";
}

// "index-B3x9_kQ2.js": what the bundler names by content.
bool has_hashed_name(const fs::path& path) {
  const std::string stem = path.stem().string();
  const auto dash = stem.rfind('-');
  if (path.parent_path().filename() != "assets" || dash == std::string::npos) return false;
  return stem.size() - dash - 1 >= 8;
}

std::optional<std::string> read_file(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > kMaxFileBytes)
    return std::nullopt;
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  if (!in) return std::nullopt;
  return std::move(out).str();
}

std::optional<fs::path> inside(const fs::path& folder, std::string_view path) {
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error) return std::nullopt;
  const fs::path file = fs::weakly_canonical(root / fs::path(path.substr(1)), error);
  if (error) return std::nullopt;
  const std::string prefix = root.string() + "/";
  if (!absl::StartsWith(file.string(), prefix)) return std::nullopt;
  return file;
}

}  // namespace

std::optional<StaticFile> StaticFiles::find(std::string_view path, bool gzip_accepted) const {
  if (path.empty() || path == "/") path = "/index.html";
  auto file = inside(folder_, path);
  std::error_code error;
  if (file && !fs::is_regular_file(*file, error)) {
    if (path.substr(path.rfind('/')).find('.') != std::string_view::npos) return std::nullopt;
    file = inside(folder_, "/index.html");
  }
  if (!file) return std::nullopt;
  StaticFile found;
  std::optional<std::string> content;
  if (gzip_accepted) content = read_file(file->string() + ".gz");
  found.gzip = content.has_value();
  if (!content) content = read_file(*file);
  if (!content) return std::nullopt;
  found.content_type = content_type(file->extension().string());
  found.immutable = has_hashed_name(*file);
  found.etag = "\"" + sha256(*content).hex().substr(0, 24) + "\"";
  found.content = std::move(*content);
  return found;
}

bool StaticFiles::present() const {
  std::error_code error;
  return fs::is_regular_file(fs::path(folder_) / "index.html", error);
}

std::string page_without_dashboard(const std::string& folder) {
  std::string shown;
  for (const char c : folder) shown += (c == '<' || c == '>' || c == '&') ? '?' : c;
  return "<!doctype html><meta charset=utf-8><title>odt-fleet</title>"
         "<h1>odtd is running</h1><p>The dashboard is not built: there is no index.html in <code>" +
         shown +
         "</code>.</p><p>Build it with <code>npm ci &amp;&amp; npm run build</code> in "
         "<code>web/</code>, or point odtd to it with <code>--web DIR</code>. The command line and "
         "the API work without it.</p>\n";
}

}  // namespace odt::api
