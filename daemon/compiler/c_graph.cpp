#include "compiler/c_graph.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

namespace odt::compiler {
namespace {

int readers(const Network& net, std::uint16_t tensor) {
  int n = 0;
  for (const Layer& l : net.layers) n += (l.in0 == tensor ? 1 : 0) + (l.in1 == tensor ? 1 : 0);
  return n;
}

// Tensors that layers from `first` on read and do not write.
std::set<std::uint16_t> crossing(const Network& net, std::size_t first) {
  std::set<std::uint16_t> out;
  for (std::size_t n = first; n < net.layers.size(); ++n)
    for (const std::uint16_t tensor : {net.layers[n].in0, net.layers[n].in1})
      if (tensor != kNoTensor && root_of(net, tensor) <= first) out.insert(root_of(net, tensor));
  return out;
}

std::string shown_tensor(const Network& net, std::uint16_t tensor) {
  return tensor == 0 ? "the input" : absl::StrCat("'", shown(net.layers[tensor - 1u].name), "'");
}

using Flags = std::vector<bool>;  // by layer

Flags trained_of(const Network& net) {
  Flags out;
  for (const Layer& l : net.layers) out.push_back(l.trainable);
  return out;
}

Flags last_trained(const Network& net, std::size_t n) {
  Flags out(net.layers.size(), false);
  for (std::size_t i = net.layers.size(); i-- > 0 && n > 0;)
    if (net.layers[i].is_compute()) {
      out[i] = true;
      --n;
    }
  return out;
}

struct Division {
  std::size_t first;
  std::uint16_t cut;
};

// Layers without weights in front of the first trained one may go to either side.
std::optional<Division> division(const Network& net, const Flags& trained) {
  const auto begin = std::find(trained.begin(), trained.end(), true);
  for (auto first = static_cast<std::size_t>(begin - trained.begin());; --first) {
    const auto tensors = crossing(net, first);
    if (tensors.size() == 1) return Division{first, *tensors.begin()};
    if (first == 0 || net.layers[first - 1].is_compute()) return std::nullopt;
  }
}

Status several(const Network& net, const std::string& file) {
  const Flags trained = trained_of(net);
  const auto n = std::count(trained.begin(), trained.end(), true);
  const auto first =
      static_cast<std::size_t>(std::find(trained.begin(), trained.end(), true) - trained.begin());
  std::vector<std::string> names;
  for (const auto tensor : crossing(net, first)) names.push_back(shown_tensor(net, tensor));
  std::vector<std::string> good;
  for (std::size_t other = 1; other <= 16; ++other) {
    const Flags t = last_trained(net, other);
    if (static_cast<std::size_t>(std::count(t.begin(), t.end(), true)) < other) break;
    if (division(net, t)) good.push_back(absl::StrCat(other));
  }
  return absl::UnimplementedError(absl::StrCat(
      file, ": ", n, " trainable layers leave ", names.size(),
      " tensors between the frozen and the trained part (outputs of ", absl::StrJoin(names, ", "),
      "); C files pass one: give --trainable ", absl::StrJoin(good, ", "),
      ", or use a model image (odtc compile), which takes any"));
}

// Layers of the trained part; a FLATTEN is one only where it has a delta of its own.
std::vector<CLayer> layers_of(const Network& net, const Division& d) {
  std::vector<CLayer> out;
  std::vector<int> number(net.layers.size() + 1, kFromFrozen);  // by tensor
  std::vector<bool> needed(net.layers.size() + 1, false);
  for (std::size_t n = d.first; n < net.layers.size(); ++n) {
    const Layer& l = net.layers[n];
    needed[n + 1] = l.is_compute() || needed[l.in0] || (l.in1 != kNoTensor && needed[l.in1]);
    const bool own = needed[n + 1] && readers(net, l.in0) > 1;
    if (l.kind == LayerKind::kFlatten && !own) {
      number[n + 1] = number[l.in0];
      continue;
    }
    CLayer c;
    c.layer = &l;
    c.storage = storage_of_tensor(net, static_cast<std::uint16_t>(n + 1));
    c.in0 = number[l.in0];
    if (l.in1 != kNoTensor) c.in1 = number[l.in1];
    number[n + 1] = static_cast<int>(out.size());
    out.push_back(c);
  }
  return out;
}

void set_lifetimes(std::vector<CLayer>& layers) {
  const int n = static_cast<int>(layers.size());
  std::vector<int> first_reader(layers.size(), n);
  for (int i = 0; i < n; ++i) layers[static_cast<std::size_t>(i)].last_reader = i;
  for (int i = 0; i < n; ++i)
    for (const int in :
         {layers[static_cast<std::size_t>(i)].in0, layers[static_cast<std::size_t>(i)].in1}) {
      if (in < 0) continue;
      layers[static_cast<std::size_t>(in)].last_reader = i;
      int& first = first_reader[static_cast<std::size_t>(in)];
      first = std::min(first, i);
    }
  // A delta is read when those of the layer's inputs are made: at their first readers.
  for (int i = 0; i < n; ++i) {
    CLayer& c = layers[static_cast<std::size_t>(i)];
    c.delta_until = i;
    for (const int in : {c.in0, c.in1})
      if (in >= 0)
        c.delta_until = std::min(c.delta_until, first_reader[static_cast<std::size_t>(in)]);
  }
}

bool collide(const CSpan& a, const CSpan& b) { return a.from <= b.to && b.from <= a.to; }

}  // namespace

std::uint64_t CModel::cut_count() const {
  if (cut > 0) return count_of(net->layers[cut - 1u].out_shape);
  return count_of(net->input_shape);
}

bool CModel::is_chain() const {
  for (std::size_t n = 0; n < layers.size(); ++n)
    if (layers[n].in1 != -1 || layers[n].in0 != (n == 0 ? kFromFrozen : static_cast<int>(n) - 1))
      return false;
  return true;
}

std::uint16_t root_of(const Network& net, std::uint16_t tensor) {
  while (tensor > 0 && net.layers[tensor - 1u].kind == LayerKind::kFlatten)
    tensor = net.layers[tensor - 1u].in0;
  return tensor;
}

Result<CModel> divide(const Network& net, const std::string& file) {
  const auto d = division(net, trained_of(net));
  if (!d) return several(net, file);
  CModel out;
  out.net = &net;
  out.first = d->first;
  out.cut = d->cut;
  out.layers = layers_of(net, *d);
  set_lifetimes(out.layers);
  return out;
}

std::uint64_t place(std::vector<CSpan>& spans) {
  std::vector<std::size_t> order(spans.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return spans[a].bytes > spans[b].bytes; });
  std::uint64_t extent = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    CSpan& s = spans[order[i]];
    const std::uint64_t bytes = (s.bytes + 3) / 4 * 4;
    s.offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t j = 0; j < i; ++j) {
        const CSpan& other = spans[order[j]];
        const std::uint64_t end = other.offset + (other.bytes + 3) / 4 * 4;
        if (!collide(s, other) || s.offset >= end || s.offset + bytes <= other.offset) continue;
        s.offset = end;
        moved = true;
      }
    }
    extent = std::max(extent, s.offset + bytes);
  }
  return extent;
}

}  // namespace odt::compiler
