#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/call.h"
#include "base/clock.h"
#include "model/library.h"
#include "store/store_thread.h"

namespace odt::api {

struct UploadOptions {
  std::string folder;                                // <data_dir>/uploads
  std::uint64_t max_bytes = std::uint64_t{4} << 30;  // of one upload
  std::uint64_t keep_free_bytes = std::uint64_t{256} << 20;
  std::size_t max_open = 64;  // uploads begun and not finished
  std::int64_t forget_after_us = std::int64_t{7} * 86'400'000'000;
};

constexpr std::size_t kMaxChunkBytes = 512u << 10;

// Files on their way in: <folder>/<id>.part, appended chunk by chunk, moved into the blob store
// when size and hash are right. What is received survives a restart: it is the file's length.
//
// Concurrency: any thread; one thread of its own does the file work, and `done` comes there.
class Uploads {
 public:
  Uploads(store::ControlThread& control, store::BlobStore& blobs, const Clock& clock,
          UploadOptions options);
  ~Uploads();  // stop()

  // Makes the folder, forgets parts older than forget_after. Errors: those of the file system.
  Status start();
  void stop();

  // Errors: INVALID_ARGUMENT (size), RESOURCE_EXHAUSTED (disk, or max_open are open; those that
  // nobody touched for forget_after are forgotten first).
  void create(CallContext ctx, std::string name, std::uint64_t size, Hash sha256,
              Done<model::Upload> done);
  // Bytes held from the start. A repeated chunk has no effect. Errors: NOT_FOUND; OUT_OF_RANGE
  // (names the offset expected, or the size that is passed); RESOURCE_EXHAUSTED (disk full).
  void write(Uuid id, std::uint64_t offset, std::string data, Done<std::uint64_t> done);
  void get(Uuid id, Done<model::Upload> done);
  // The blob's hash. Errors: NOT_FOUND; FAILED_PRECONDITION (bytes missing); DATA_LOSS (hash
  // differs: what was received is dropped, begin again at offset 0).
  void finish(CallContext ctx, Uuid id, Done<Hash> done);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace odt::api
