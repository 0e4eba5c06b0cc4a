#pragma once

#include <memory>
#include <string>

#include "app/config.h"

namespace odt::app {

// The whole daemon: the only place that knows every room.
//
// start() either starts everything or nothing: it binds the ports first, then opens the stores,
// then lets boards and callers in. stop() goes the other way; see README.md.
class Daemon {
 public:
  // Errors: one line with the remedy as payload (ALREADY_EXISTS: a port or the data directory is in
  // use; FAILED_PRECONDITION: the database is newer; NOT_FOUND: odt-worker; ...).
  static Result<std::unique_ptr<Daemon>> start(Config config);
  ~Daemon();  // stop()

  // From the main thread; takes at most some seconds. Idempotent.
  void stop();

 private:
  struct Impl;
  explicit Daemon(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace odt::app
