#pragma once

namespace odt {

// Points at which a test may end the process as kill -9 would, inside what must survive that:
//   ODT_FAILPOINT=control.commit:3 odtd ...
// exits with code 137 when it passes the point "control.commit" for the third time, without a
// destructor or a flush. Compiled in always: what is tested is the binary that ships, and without
// the variable a point costs one comparison. It gives nobody power that the right to start odtd
// does not give.
//
// Points: control.commit (rows written, not committed), control.committed (durable, nobody told),
// file.write (a temporary file, not yet named), blob.named (nothing refers to it yet),
// board.commit.ask and board.commit.done (of a board's NVM: before it is asked, after it has
// answered), migrate (tables changed, not committed), migrate.rows (telemetry moved, not
// committed).
void fail_here(const char* name);  // any thread

}  // namespace odt
