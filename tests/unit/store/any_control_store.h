#pragma once

#include "store/memory_store.h"
#include "store/sqlite_store.h"
#include "store_fixture.h"

namespace odt::store {

// A ControlStore, in SQLite where the parameter is true, else in memory.
class AnyControlStore : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { open(); }
  // Again: SQLite reads its file anew, memory stays as it is.
  void open() {
    if (!GetParam()) {
      if (!store_) store_ = std::make_unique<MemoryControlStore>(clock_);
      return;
    }
    store_.reset();
    auto opened = SqliteControlStore::open(dir_.file("control.db"), clock_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = std::move(*opened);
  }

  TempDir dir_;
  FakeClock clock_;
  std::unique_ptr<ControlStore> store_;
};

}  // namespace odt::store
