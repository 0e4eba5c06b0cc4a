#include "state_view.h"

#include <cstring>

namespace odt::testing {
namespace {

class Reader {
 public:
  explicit Reader(const std::vector<uint8_t>& bytes) : bytes_(bytes) {}

  template <class T>
  T at(size_t where) const {
    T v{};
    if (where + sizeof v <= bytes_.size()) std::memcpy(&v, bytes_.data() + where, sizeof v);
    return v;
  }
  template <class T>
  T next() {
    T v = at<T>(pos_);
    pos_ += sizeof v;
    return v;
  }
  template <class T>
  Values many(uint32_t n) {
    Values out;
    for (uint32_t i = 0; i < n && pos_ < bytes_.size(); i++) out.push_back(next<T>());
    pos_ = (pos_ + 3) & ~size_t{3};
    return out;
  }
  void seek(size_t pos) { pos_ = pos; }
  size_t pos() const { return pos_; }

 private:
  const std::vector<uint8_t>& bytes_;
  size_t pos_ = 0;
};

}  // namespace

StateView read_state(const std::vector<uint8_t>& bytes) {
  Reader r(bytes);
  StateView s;
  s.rule_set = r.at<uint8_t>(72);
  s.rounding = r.at<uint8_t>(73);
  s.n_layers = r.at<uint8_t>(83);
  s.step = r.at<uint32_t>(104);
  s.epoch = r.at<uint16_t>(108);
  s.extension = r.at<uint16_t>(110);
  s.position = r.at<uint32_t>(112);
  s.epoch_loss = r.at<uint64_t>(160);
  s.epoch_correct = r.at<uint32_t>(168);
  r.seek(176 + s.extension);
  for (int i = 0; i < s.n_layers; i++) {
    LayerView l;
    l.k = r.next<int8_t>();
    l.dtype = r.next<uint8_t>();
    l.b_prev = r.next<uint8_t>();
    l.k_off = r.next<uint8_t>();
    auto n_weights = r.next<uint32_t>(), n_offsets = r.next<uint32_t>();
    l.a = r.next<uint64_t>();
    l.n = r.next<uint64_t>();
    if (l.k_off != 0) {
      l.a_off = r.next<uint64_t>();
      l.n_off = r.next<uint64_t>();
    }
    l.m = l.dtype == 1 ? r.many<int8_t>(n_weights) : r.many<int16_t>(n_weights);
    l.off = r.many<int32_t>(n_offsets);
    if (l.dtype == 5) l.exponents = r.many<int8_t>(n_offsets);
    s.layers.push_back(l);
  }
  s.whole = r.pos() == bytes.size();
  return s;
}

}  // namespace odt::testing
