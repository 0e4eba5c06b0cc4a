#include "cli/upload.h"

#include <absl/strings/str_cat.h>

#include <filesystem>
#include <fstream>

#include "base/ids.h"
#include "cli/context.h"
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

}  // namespace

Result<std::string> upload_file(Context& context, const std::string& path) {
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

}  // namespace odt::cli
