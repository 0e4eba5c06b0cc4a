#include "compiler/tail.h"

#include <cstring>
#include <vector>

#include "base/ids.h"
#include "odt/odt.h"

namespace odt::compiler {
namespace {

constexpr std::size_t kHeaderBytes = 64, kTailHeaderBytes = 96, kTensorBytes = 16, kOpBytes = 96;

class TailWriter {
 public:
  TailWriter(const std::string& image, const odt_model_t& model) : in_(image), m_(model) {}

  std::string run() {
    const std::size_t first = m_.first_trainable_op, n_ops = m_.n_ops - first,
                      n_tensors = n_ops + 1;
    const std::size_t tensors = kTailHeaderBytes, ops = tensors + n_tensors * kTensorBytes;
    out_.assign(in_, 0, kHeaderBytes);
    const Hash model = sha256(in_);
    out_.append(reinterpret_cast<const char*>(model.bytes.data()), model.bytes.size());
    out_.resize(ops + n_ops * kOpBytes);
    put16(6, kTailHeaderBytes);
    put16(12, n_tensors);
    put16(14, n_ops);
    put32(20, tensors);
    put32(24, ops);
    number_of_.assign(m_.n_tensors, 0);  // the cut is the tail's input, tensor 0
    copy(tensors, get32(20) + m_.cut * kTensorBytes, kTensorBytes);
    for (std::size_t n = 0; n < n_ops; ++n) {
      const odt_op_t& op = m_.ops[first + n];
      number_of_[op.out] = n + 1;
      copy(tensors + (n + 1) * kTensorBytes, get32(20) + op.out * kTensorBytes, kTensorBytes);
      put_op(ops + n * kOpBytes, get32(24) + (first + n) * kOpBytes, op);
    }
    put32(28, section(get32(28), m_.n_classes));
    put32(32, section(get32(32), m_.n_classes));
    put32(8, out_.size());
    return std::move(out_);
  }

 private:
  void put_op(std::size_t to, std::size_t from, const odt_op_t& op) {
    copy(to, from, kOpBytes);
    put16(to + 2, number_of_[op.in0]);
    if (op.in1 != ODT_NO_TENSOR) put16(to + 4, number_of_[op.in1]);
    put16(to + 6, number_of_[op.out]);
    put32(to + 16, section(get32(from + 16), op.n_weights));
    put32(to + 24, section(get32(from + 24), 4 * std::size_t{op.n_out}));
    put32(to + 32, section(get32(from + 32), op.n_out));
    put32(to + 36, section(get32(from + 36), op.n_out));
  }

  // Appends a section of the model's image, padded to 4; its offset. 0: absent there and here.
  std::size_t section(std::uint32_t from, std::size_t bytes) {
    if (from == 0) return 0;
    const std::size_t at = out_.size();
    out_.append(in_, from, bytes);
    out_.append((4 - out_.size() % 4) % 4, '\0');
    return at;
  }
  void copy(std::size_t to, std::size_t from, std::size_t n) {
    std::memcpy(out_.data() + to, in_.data() + from, n);
  }
  std::uint32_t get32(std::size_t at) const {
    std::uint32_t v;
    std::memcpy(&v, in_.data() + at, sizeof v);
    return v;
  }
  void put16(std::size_t at, std::size_t value) {
    const auto v = static_cast<std::uint16_t>(value);
    std::memcpy(out_.data() + at, &v, sizeof v);
  }
  void put32(std::size_t at, std::size_t value) {
    const auto v = static_cast<std::uint32_t>(value);
    std::memcpy(out_.data() + at, &v, sizeof v);
  }

  const std::string& in_;
  const odt_model_t& m_;
  std::vector<std::size_t> number_of_;
  std::string out_;
};

bool computes_in_front(const odt_model_t& m) {
  for (std::size_t i = 0; i < m.first_trainable_op; ++i)
    if (m.ops[i].kind != ODT_OP_FLATTEN) return true;
  return false;
}

}  // namespace

Result<Tail> cut_tail(const std::string& image, const std::string& file) {
  std::vector<std::uint32_t> words((image.size() + 3) / 4);
  std::memcpy(words.data(), image.data(), image.size());
  odt_model_t model{};
  odt_error_t error{};
  Tail tail;
  if (odt_model_open(&model, words.data(), static_cast<std::uint32_t>(image.size()), &error) !=
      ODT_OK)
    return plan_table(image, file).status();  // says why
  if (model.tail || model.arith != ODT_ARITH_INT8 || model.cut == ODT_NO_TENSOR ||
      !computes_in_front(model))
    return tail;
  const odt_tensor_t& cut = model.tensors[model.cut];
  tail.values = cut.count;
  tail.value_bytes = cut.dtype == ODT_S16 ? 2 : 1;
  tail.image = TailWriter(image, model).run();
  ODT_ASSIGN(tail.ram, plan_table(tail.image, file));
  return tail;
}

}  // namespace odt::compiler
