#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "store/store.h"

namespace odt::training {

// Blobs that somebody holds, once in memory however many hold them: a fleet trains on one sample
// set. Any thread.
class BlobShare {
 public:
  using Content = std::shared_ptr<const std::string>;

  Content held(const Hash& hash) {
    const std::lock_guard lock(mutex_);
    const auto it = held_.find(hash);
    return it == held_.end() ? nullptr : it->second.lock();
  }

  // On the thread that may read files. Errors: those of the store.
  Result<Content> get(store::BlobStore& blobs, const Hash& hash) {
    if (Content here = held(hash)) return here;
    auto read = blobs.get(hash);
    if (!read.ok()) return read.status();
    Content content = std::make_shared<const std::string>(std::move(*read));
    const std::lock_guard lock(mutex_);
    if (held_.size() >= kMany)
      std::erase_if(held_, [](const auto& h) { return h.second.expired(); });
    held_[hash] = content;
    return content;
  }

 private:
  static constexpr std::size_t kMany = 64;

  std::mutex mutex_;
  std::map<Hash, std::weak_ptr<const std::string>> held_;
};

}  // namespace odt::training
