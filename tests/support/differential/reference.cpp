#include "reference.h"

namespace odt::testing {
namespace {

class Integers final : public Reference {
 public:
  Integers(const NetSpec& net, const OracleSettings& settings) : oracle_(net, settings) {}

  void step(const std::vector<Values>& xs, const std::vector<int>& labels,
            const std::vector<Values>& targets) override {
    oracle_.step(xs, labels, targets);
  }
  uint64_t loss() const override { return oracle_.loss(); }
  int correct() const override { return oracle_.correct(); }
  std::vector<LayerView> layers() const override {
    std::vector<LayerView> out;
    for (const OracleLayer& l : oracle_.layers()) {
      LayerView v;
      v.k = l.k;
      v.dtype = l.k <= 8 ? 1 : 3;
      v.b_prev = l.b_prev;
      v.k_off = l.k_off;
      v.a = l.u.a;
      v.n = l.u.n;
      v.a_off = l.u_off.a;
      v.n_off = l.u_off.n;
      v.m = l.m;
      v.off = l.off;
      out.push_back(v);
    }
    return out;
  }
  std::vector<LayerStep> last_step() const override {
    std::vector<LayerStep> out;
    for (const OracleLayer& l : oracle_.layers()) out.push_back({l.bits, l.ws, l.k_used, l.e_d});
    return out;
  }
  Values infer(const Values& x, int*) const override { return oracle_.infer(x); }
  int cut() const override { return oracle_.graph().cut(); }
  Values tensor(const Values& x, int number) const override {
    return oracle_.forward(x)[static_cast<size_t>(number)];
  }
  uint64_t evaluate(const Values& x, int label, const Values& target, int* hit) const override {
    return oracle_.evaluate(x, label, target, hit);
  }
  std::vector<OracleLayer> telemetry() const override { return oracle_.layers(); }
  void start_epoch() override { oracle_.start_epoch(); }
  void set_k(size_t layer, int k) override { oracle_.set_k(layer, k); }
  void keep_best() override { oracle_.keep_best(); }
  void roll_back() override { oracle_.roll_back(); }

 private:
  Oracle oracle_;
};

class Dfp16 final : public Reference {
 public:
  Dfp16(const NetSpec& net, const DfpSettings& settings)
      : oracle_(net, settings), blocked_(settings.blocked) {}

  void step(const std::vector<Values>& xs, const std::vector<int>& labels,
            const std::vector<Values>& targets) override {
    oracle_.step(xs, labels, targets);
  }
  uint64_t loss() const override { return oracle_.loss(); }
  int correct() const override { return oracle_.correct(); }
  std::vector<LayerView> layers() const override {
    std::vector<LayerView> out;
    for (const DfpLayer& l : oracle_.layers()) {
      LayerView v;
      v.k = blocked_ ? 0 : l.e_w[0];
      v.dtype = blocked_ ? 5 : 4;
      v.m = l.w;
      v.off = l.off;
      if (blocked_) v.exponents.assign(l.e_w.begin(), l.e_w.end());
      out.push_back(v);
    }
    return out;
  }
  std::vector<LayerStep> last_step() const override {
    std::vector<LayerStep> out;
    for (const DfpLayer& l : oracle_.layers()) out.push_back({l.bits, l.shift, 16, l.e_d});
    return out;
  }
  Values infer(const Values& x, int* exponent) const override {
    DfpTensor z = oracle_.infer(x);
    *exponent = z.e;
    return z.v[0];
  }
  int cut() const override { return oracle_.graph().cut(); }
  Values tensor(const Values& x, int number) const override {
    return oracle_.forward({x})[static_cast<size_t>(number)].v[0];
  }
  uint64_t evaluate(const Values& x, int label, const Values& target, int* hit) const override {
    return oracle_.evaluate(x, label, target, hit);
  }
  void set_k(size_t, int) override {}
  void keep_best() override { oracle_.keep_best(); }
  void roll_back() override { oracle_.roll_back(); }

 private:
  DfpOracle oracle_;
  bool blocked_;
};

}  // namespace

std::unique_ptr<Reference> make_reference(const NetSpec& net, const OracleSettings& settings) {
  return std::make_unique<Integers>(net, settings);
}
std::unique_ptr<Reference> make_reference(const NetSpec& net, const DfpSettings& settings) {
  return std::make_unique<Dfp16>(net, settings);
}

}  // namespace odt::testing
