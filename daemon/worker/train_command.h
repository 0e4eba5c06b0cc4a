#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace odt::worker {

// "odt-worker train DATASET.odtd --arch A -o model.onnx": train_pc without a daemon. args: what
// stands behind "train". terminal: `log` is one, so progress is a bar there, else a line an epoch.
// Results go to `out`. Exit code: 0, 1 (failed; one line in `log`), 2 (usage).
int train_command(const std::vector<std::string>& args, std::ostream& out, std::ostream& log,
                  bool terminal);

}  // namespace odt::worker
