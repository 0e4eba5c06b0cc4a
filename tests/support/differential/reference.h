// One face for both references, so that a run can be compared whatever the arithmetic.
#pragma once

#include <memory>
#include <vector>

#include "oracle.h"
#include "oracle_dfp.h"
#include "state_view.h"

namespace odt::testing {

struct LayerStep {
  int bits = 0, shift = 0, k = 0, e_d = 0;
};

class Reference {
 public:
  virtual ~Reference() = default;
  virtual void step(const std::vector<Values>& xs, const std::vector<int>& labels,
                    const std::vector<Values>& targets) = 0;
  virtual uint64_t loss() const = 0;
  virtual int correct() const = 0;
  virtual std::vector<LayerView> layers() const = 0;
  virtual std::vector<LayerStep> last_step() const = 0;
  // Logits of one sample; DFP16: and their exponent.
  virtual Values infer(const Values& x, int* exponent) const = 0;
  virtual int cut() const = 0;  // tensor number, -1: none
  virtual Values tensor(const Values& x, int number) const = 0;
  virtual uint64_t evaluate(const Values& x, int label, const Values& target,
                            int* correct) const = 0;
  // Telemetry of integer layers, since the last call of start_epoch; empty for DFP16.
  virtual std::vector<OracleLayer> telemetry() const { return {}; }
  virtual void start_epoch() {}
  virtual void set_k(size_t layer, int k) = 0;
  virtual void keep_best() = 0;
  virtual void roll_back() = 0;
};

std::unique_ptr<Reference> make_reference(const NetSpec& net, const OracleSettings& settings);
std::unique_ptr<Reference> make_reference(const NetSpec& net, const DfpSettings& settings);

}  // namespace odt::testing
