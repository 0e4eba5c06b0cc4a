#include "api/uploads.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "api/errors.h"
#include "base/asio.h"
#include "base/fd.h"

namespace odt::api {
namespace {

namespace fs = std::filesystem;

Status file_error(const std::string& what) {
  const int code = errno;
  const std::string text = what + ": " + std::generic_category().message(code);
  if (code == ENOSPC || code == EDQUOT)
    return with_reason(absl::ResourceExhaustedError(text), "DISK_FULL",
                       "free space in the data directory, then send the chunk again");
  return with_reason(absl::InternalError(text), "UPLOAD_IO", "look at odtd's log and its disk");
}

Status write_all(int fd, std::string_view data, std::uint64_t offset) {
  while (!data.empty()) {
    const ssize_t n = ::pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return file_error("upload not written");
    data.remove_prefix(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace

struct Uploads::Impl {
  store::ControlThread& control;
  store::BlobStore& blobs;
  const Clock& clock;
  const UploadOptions options;
  asio::thread_pool thread{1};

  std::string part(const Uuid& id) const { return options.folder + "/" + id.hex() + ".part"; }

  // As it is now: received is the length of the part, or all of it where the blob is there.
  Result<model::Upload> load(const Uuid& id) {
    Result<model::Upload> found =
        control.call_sync([&](store::ControlStore& s) { return s.upload(id); });
    if (absl::IsNotFound(found.status()))
      return with_reason(absl::NotFoundError("no upload " + id.hex()), "UPLOAD_UNKNOWN",
                         "create it anew: uploads are forgotten after 7 days", "id");
    ODT_TRY(found);
    if (blobs.has(found->sha256)) {
      found->received = found->size;
      return found;
    }
    std::error_code error;
    const auto length = fs::file_size(part(id), error);
    found->received = error ? 0 : length;
    return found;
  }

  // Removes parts that nobody touched for forget_after; how many are left.
  Result<std::size_t> forget_old() {
    std::size_t left = 0;
    std::error_code error;
    const std::int64_t oldest = clock.now_us() - options.forget_after_us;
    for (const auto& entry : fs::directory_iterator(options.folder, error)) {
      struct stat info {};
      if (entry.path().extension() != ".part") continue;
      if (::stat(entry.path().c_str(), &info) != 0) continue;
      if (std::int64_t{info.st_mtim.tv_sec} * 1'000'000 > oldest) {
        ++left;
        continue;
      }
      const auto raw = from_hex(entry.path().stem().string());
      std::error_code ignored;
      fs::remove(entry.path(), ignored);
      if (!raw.ok() || raw->size() != Uuid::kSize) continue;
      const auto id = Uuid::from_bytes({reinterpret_cast<const char*>(raw->data()), raw->size()});
      if (id.ok()) forget(*id);
    }
    if (error) return absl::InternalError(options.folder + ": " + error.message());
    return left;
  }

  Status room_for(std::uint64_t size) const {
    if (size == 0 || size > options.max_bytes)
      return bad_field(
          "size",
          std::to_string(size) + " bytes; allowed 1 to " + std::to_string(options.max_bytes),
          "uploads.max_mb in odtd.toml is the limit");
    struct statvfs disk {};
    if (::statvfs(options.folder.c_str(), &disk) != 0) return file_error(options.folder);
    const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
    if (free >= size + options.keep_free_bytes) return absl::OkStatus();
    return with_reason(
        absl::ResourceExhaustedError("upload of " + std::to_string(size) + " bytes; " +
                                     std::to_string(free) + " bytes are free, of which " +
                                     std::to_string(options.keep_free_bytes) + " stay free"),
        "DISK_FULL", "free space in the data directory");
  }

  Result<model::Upload> create(const CallContext& ctx, const std::string& name, std::uint64_t size,
                               const Hash& sha256) {
    ODT_TRY(room_for(size));
    ODT_ASSIGN(const std::size_t open, forget_old());
    if (open >= options.max_open)
      return with_reason(
          absl::ResourceExhaustedError(std::to_string(open) + " uploads are open; limit " +
                                       std::to_string(options.max_open)),
          "TOO_MANY_UPLOADS", "finish one of them; an untouched one is forgotten after 7 days");
    model::Upload upload;
    upload.id = new_uuid();
    upload.name = name;
    upload.size = size;
    upload.sha256 = sha256;
    upload.received = blobs.has(sha256) ? size : 0;
    upload.meta.gateway_id = control.identity().gateway_id;
    upload.meta.created_by = ctx.actor;
    upload.meta.create_time_us = clock.now_us();
    store::Batch batch;
    batch.actor = ctx.actor;
    batch.command_id = ctx.command_id;
    batch.changes.push_back(store::PutUpload{upload});
    ODT_TRY(control.call_sync([&](store::ControlStore& s) { return s.commit(std::move(batch)); }));
    if (upload.received == 0) {  // its part counts as open from now on
      const Fd file(::open(part(upload.id).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0640));
      if (file.get() < 0) return file_error("upload " + upload.id.hex());
    }
    return upload;
  }

  Result<std::uint64_t> write(const Uuid& id, std::uint64_t offset, std::string_view data) {
    ODT_ASSIGN(const auto upload, load(id));
    if (offset > upload.size || data.size() > upload.size - offset)
      return with_reason(
          absl::OutOfRangeError("chunk ends at " + std::to_string(offset + data.size()) +
                                "; the upload has " + std::to_string(upload.size) + " bytes"),
          "PAST_THE_END", "create the upload with its true size", "data");
    if (offset > upload.received)
      return with_reason(absl::OutOfRangeError("offset " + std::to_string(offset) + "; expected " +
                                               std::to_string(upload.received)),
                         "UPLOAD_GAP",
                         "send from offset " + std::to_string(upload.received) + " on", "offset");
    const std::uint64_t held = upload.received - offset;
    if (held >= data.size()) return upload.received;
    data.remove_prefix(held);
    const Fd file(::open(part(id).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0640));
    if (file.get() < 0) return file_error("upload " + id.hex());
    if (const Status written = write_all(file.get(), data, upload.received); !written.ok()) {
      // Nothing half-written counts as received.
      if (::ftruncate(file.get(), static_cast<off_t>(upload.received)) != 0)
        return file_error("upload " + id.hex());
      return written;
    }
    return upload.received + data.size();
  }

  Result<Hash> finish(const CallContext& ctx, const Uuid& id) {
    ODT_ASSIGN(auto upload, load(id));
    if (blobs.has(upload.sha256)) {
      std::error_code ignored;
      fs::remove(part(id), ignored);
      return upload.sha256;
    }
    if (upload.received != upload.size)
      return with_reason(
          absl::FailedPreconditionError("received " + std::to_string(upload.received) + " of " +
                                        std::to_string(upload.size) + " bytes"),
          "UPLOAD_INCOMPLETE", "send from offset " + std::to_string(upload.received) + " on");
    ODT_ASSIGN(const Hash got, sha256_file(part(id)));
    if (got != upload.sha256) {
      std::error_code ignored;
      fs::remove(part(id), ignored);
      return with_reason(
          absl::DataLossError("SHA-256 is " + got.hex() + "; announced was " + upload.sha256.hex()),
          "HASH_MISMATCH", "send the file again from offset 0");
    }
    ODT_TRY(blobs.adopt(part(id), upload.sha256));
    upload.received = upload.size;
    store::Batch batch;
    batch.actor = ctx.actor;
    batch.command_id = ctx.command_id;
    batch.changes.push_back(store::PutUpload{upload});
    ODT_TRY(control.call_sync([&](store::ControlStore& s) { return s.commit(std::move(batch)); }));
    return upload.sha256;
  }

  void forget(const Uuid& id) {
    control.commit({{store::Delete{"upload", id.str()}}, "odtd", {}, {}, {}}, [](const auto&) {});
  }
};

Uploads::Uploads(store::ControlThread& control, store::BlobStore& blobs, const Clock& clock,
                 UploadOptions options)
    : impl_(new Impl{control, blobs, clock, std::move(options)}) {}

Uploads::~Uploads() { stop(); }

Status Uploads::start() {
  std::error_code error;
  fs::create_directories(impl_->options.folder, error);
  if (error) return absl::InternalError(impl_->options.folder + ": " + error.message());
  return impl_->forget_old().status();
}

void Uploads::stop() { impl_->thread.join(); }

void Uploads::create(CallContext ctx, std::string name, std::uint64_t size, Hash sha256,
                     Done<model::Upload> done) {
  asio::post(impl_->thread,
             [i = impl_.get(), ctx = std::move(ctx), name = std::move(name), size, sha256,
              done = std::move(done)] { done(i->create(ctx, name, size, sha256)); });
}

void Uploads::write(Uuid id, std::uint64_t offset, std::string data, Done<std::uint64_t> done) {
  asio::post(impl_->thread, [i = impl_.get(), id, offset, data = std::move(data),
                             done = std::move(done)] { done(i->write(id, offset, data)); });
}

void Uploads::get(Uuid id, Done<model::Upload> done) {
  asio::post(impl_->thread, [i = impl_.get(), id, done = std::move(done)] { done(i->load(id)); });
}

void Uploads::finish(CallContext ctx, Uuid id, Done<Hash> done) {
  asio::post(impl_->thread, [i = impl_.get(), ctx = std::move(ctx), id, done = std::move(done)] {
    done(i->finish(ctx, id));
  });
}

}  // namespace odt::api
