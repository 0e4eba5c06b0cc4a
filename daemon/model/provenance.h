#pragma once

#include "model/library.h"

namespace odt::model {

// Link of a snapshot's hash chain (proto/README.md, Hash chain of snapshots): SHA-256 over its
// hash, model, board, run, attempt, step, parent and its parent's link (zero: none, or not known).
// What people may change, aliases, note and pin, is not in it.
Hash chain_link(const Snapshot& snapshot, const Hash& parent_chain);

}  // namespace odt::model
