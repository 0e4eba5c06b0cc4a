#include "cli/upload.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>

#include <filesystem>
#include <fstream>

#include "base/ids.h"
#include "cli/context.h"
#include "cli/exit_code.h"
#include "cli/text.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace fs = std::filesystem;
namespace v1 = api::v1;

constexpr std::size_t kChunk = 512 * 1024;

Status send_chunks(Context& context, const std::string& path, const v1::Upload& upload) {
  std::ifstream in(path, std::ios::binary);
  std::uint64_t offset = upload.received();
  in.seekg(static_cast<std::streamoff>(offset));
  std::string chunk(kChunk, '\0');
  const std::string name = fs::path(path).filename().string();
  while (offset < upload.size()) {
    if (context.interrupt.seen())
      return with_exit(absl::CancelledError("interrupted; the same command goes on from here"),
                       kExitInterrupted);
    in.read(chunk.data(), static_cast<std::streamsize>(kChunk));
    if (in.gcount() <= 0) return absl::DataLossError(clean(path) + ": became shorter meanwhile");
    v1::WriteChunkRequest request;
    request.set_upload_id(upload.id());
    request.set_offset(offset);
    request.set_data(chunk.data(), static_cast<std::size_t>(in.gcount()));
    ODT_ASSIGN(const auto response, context.call<v1::WriteChunkResponse>(request));
    const auto sent = offset + static_cast<std::uint64_t>(in.gcount());
    offset = response.received();
    if (offset != sent) in.seekg(static_cast<std::streamoff>(offset));  // it had some of it before
    context.progress(
        absl::StrCat(name, ": ", percent(offset, upload.size()), " of ", size_text(upload.size())));
  }
  context.end_progress();
  return {};
}

Status with_text(const Status& status, const std::string& text) {
  Status out(status.code(), text);
  status.ForEachPayload(
      [&out](absl::string_view url, const absl::Cord& payload) { out.SetPayload(url, payload); });
  return out;
}

Result<std::string> send_file(Context& context, const std::string& path) {
  std::error_code ec;
  if (!fs::is_regular_file(path, ec))
    return absl::NotFoundError(clean(path) + ": no such file; check the path");
  ODT_ASSIGN(const Hash hash, sha256_file(path));
  v1::CreateUploadRequest create;
  create.set_name(fs::path(path).filename().string());
  create.set_size(fs::file_size(path, ec));
  create.set_sha256(hash.str());
  ODT_ASSIGN(const auto created, context.call<v1::CreateUploadResponse>(create));
  ODT_TRY(send_chunks(context, path, created.upload()));
  v1::FinishUploadRequest finish;
  finish.set_id(created.upload().id());
  ODT_ASSIGN(const auto finished, context.call<v1::FinishUploadResponse>(finish));
  return finished.blob();
}

}  // namespace

Result<std::string> upload_file(Context& context, const std::string& path) {
  auto blob = send_file(context, path);
  if (!blob.ok()) return name_file(blob.status(), path);
  return blob;
}

Status rename_file(const Status& status, const std::string& called, const std::string& path) {
  if (status.ok() || called.empty() || path.empty()) return status;
  return with_text(status, absl::StrReplaceAll(status.message(), {{called, clean(path)}}));
}

Status name_file(const Status& status, const std::string& path, const std::string& called) {
  // Neither Ctrl-C nor a daemon that is down has to do with the file.
  const int exit = exit_code_of(status);
  if (status.ok() || exit == kExitInterrupted || exit == kExitUnreachable) return status;
  Status out = rename_file(status, called, path);
  if (!absl::StrContains(out.message(), clean(path)))
    out = with_text(out, absl::StrCat(clean(path), ": ", out.message()));
  return out;
}

std::string imported_name(const std::string& role, const std::string& blob) {
  return absl::StrCat(role, " (", hex(blob).substr(0, 8), ")");
}

}  // namespace odt::cli
