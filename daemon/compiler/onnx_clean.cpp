#include <absl/strings/str_cat.h>

#include <algorithm>
#include <queue>
#include <set>

#include "compiler/infer.h"
#include "compiler/onnx_graph.h"

// The file's nodes, in any order and with noise, made into a sorted graph without it.
namespace odt::compiler {
namespace {

class Cleaner {
 public:
  Cleaner(std::vector<Node> nodes, Graph& graph) : nodes_(std::move(nodes)), graph_(graph) {}

  Status run() {
    ODT_TRY(find_makers());
    find_live();
    std::vector<std::size_t> order;
    ODT_TRY(sort(order));
    graph_.dims[graph_.input] = graph_.input_dims;
    for (std::size_t n : order) ODT_TRY(take(nodes_[n]));
    if (graph_.nodes.size() > kMaxNodes)
      return absl::OutOfRangeError(absl::StrCat(
          graph_.file, ": ", graph_.nodes.size(), " nodes depend on the input; at most ", kMaxNodes,
          " (a model image holds 64 operators): shorten the model"));
    if (const auto it = alias_.find(graph_.output); it != alias_.end()) graph_.output = it->second;
    if (graph_.output == graph_.input || graph_.constant(graph_.output) != nullptr)
      return absl::InvalidArgumentError(absl::StrCat(
          graph_.file, ": output '", shown(graph_.output), "' does not depend on the input"));
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      const std::set<std::string> inputs(node.inputs.begin(), node.inputs.end());
      for (const auto& in : inputs)
        if (!in.empty()) graph_.readers[in].push_back(n);
    }
    return absl::OkStatus();
  }

 private:
  Status fail(const Node& node, const std::string& what) const {
    return absl::InvalidArgumentError(where(graph_, node) + what);
  }
  bool given(const std::string& tensor) const {
    return tensor == graph_.input || graph_.constants.contains(tensor);
  }

  Status find_makers() {
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const Node& node = nodes_[n];
      if (node.outputs.empty()) return fail(node, "it has no output");
      for (const auto& out : node.outputs) {
        if (out.empty()) continue;
        if (given(out) || maker_.contains(out))
          return fail(node, absl::StrCat("it writes '", shown(out),
                                         "', which is an input, a constant or the output of "
                                         "another node already; expected a name of its own"));
        maker_[out] = n;
      }
    }
    if (!maker_.contains(graph_.output))
      return absl::InvalidArgumentError(absl::StrCat(graph_.file, ": output '",
                                                     shown(graph_.output),
                                                     "' does not depend on the input: no node "
                                                     "writes it"));
    return absl::OkStatus();
  }

  void find_live() {
    live_.assign(nodes_.size(), false);
    std::vector<std::size_t> open = {maker_.at(graph_.output)};
    live_[open[0]] = true;
    while (!open.empty()) {
      const Node& node = nodes_[open.back()];
      open.pop_back();
      for (const auto& in : node.inputs) {
        const auto it = maker_.find(in);
        if (it == maker_.end() || live_[it->second]) continue;
        live_[it->second] = true;
        open.push_back(it->second);
      }
    }
  }

  // Producers first, among several the one that the file has first.
  Status sort(std::vector<std::size_t>& order) const {
    std::vector<std::size_t> waits(nodes_.size(), 0);
    std::map<std::size_t, std::vector<std::size_t>> next;
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    std::size_t live = 0;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (!live_[n]) continue;
      ++live;
      for (const auto& in : nodes_[n].inputs) {
        if (in.empty() || given(in)) continue;
        const auto it = maker_.find(in);
        if (it == maker_.end())
          return fail(nodes_[n], absl::StrCat("it reads '", shown(in), "', which nothing makes"));
        next[it->second].push_back(n);
        ++waits[n];
      }
      if (waits[n] == 0) ready.push(n);
    }
    while (!ready.empty()) {
      const std::size_t n = ready.top();
      ready.pop();
      order.push_back(n);
      for (std::size_t after : next[n])
        if (--waits[after] == 0) ready.push(after);
    }
    if (order.size() == live) return absl::OkStatus();
    std::size_t n = 0;
    while (!live_[n] || waits[n] == 0) ++n;
    return fail(nodes_[n], "it waits for its own output: the graph has a cycle");
  }

  // Noise goes into constants or aliases, the rest into the graph.
  Status take(Node& node) {
    std::vector<const Tensor*> constants;
    bool all = true;
    for (auto& in : node.inputs) {
      if (const auto it = alias_.find(in); it != alias_.end()) in = it->second;
      constants.push_back(graph_.constant(in));
      all = all && (in.empty() || constants.back() != nullptr);
    }
    const bool casts_data = node.op == "Cast" && !all && node.integer("to", 1) == 1;
    if ((node.op == "Identity" || node.op == "Dropout" || casts_data) && !node.inputs.empty()) {
      alias_[node.outputs[0]] = node.inputs[0];
      return absl::OkStatus();
    }
    if ((node.op == "Shape" || node.op == "Size") && !node.inputs.empty()) return measure(node);
    if (all) return fold_into(node, constants);
    const auto shapes = infer_dims(graph_, node);
    for (std::size_t n = 0; n < std::min(shapes.size(), node.outputs.size()); ++n)
      graph_.dims[node.outputs[n]] = shapes[n];
    graph_.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  Status measure(const Node& node) {
    const std::vector<std::int64_t>* dims = nullptr;
    if (const Tensor* t = graph_.constant(node.inputs[0])) dims = &t->dims;
    if (const auto it = graph_.dims.find(node.inputs[0]); it != graph_.dims.end())
      dims = &it->second;
    if (dims == nullptr)
      return absl::UnimplementedError(
          absl::StrCat(where(graph_, node), "the shape of '", shown(node.inputs[0]),
                       "' is not known in advance (an operator in front of it is not supported)"));
    Tensor t;
    t.integer = true;
    const auto rank = static_cast<std::int64_t>(dims->size());
    const auto place = [rank](std::int64_t v) {
      return std::clamp<std::int64_t>(v < 0 ? v + rank : v, 0, rank);
    };
    const std::int64_t begin = place(node.integer("start", 0)),
                       end = place(node.integer("end", rank));
    if (node.op == "Size") {
      t.i = {1};
      for (auto d : *dims) t.i[0] *= d;
    } else {
      for (std::int64_t n = begin; n < end; ++n)
        t.i.push_back((*dims)[static_cast<std::size_t>(n)]);
      t.dims = {static_cast<std::int64_t>(t.i.size())};
    }
    graph_.constants[node.outputs[0]] = std::move(t);
    return absl::OkStatus();
  }

  Status fold_into(const Node& node, const std::vector<const Tensor*>& constants) {
    auto value = fold(node, constants);
    if (!value.ok())
      return Status(value.status().code(),
                    absl::StrCat(where(graph_, node), value.status().message()));
    folded_ += value->size();
    if (folded_ > static_cast<std::size_t>(kMaxElements))
      return fail(node, absl::StrCat("the file computes more than ", kMaxElements,
                                     " constant values; simplify it (onnxsim)"));
    for (std::size_t n = 1; n < node.outputs.size(); ++n)
      if (!node.outputs[n].empty())
        return absl::UnimplementedError(where(graph_, node) +
                                        "it computes constants with several outputs; simplify the "
                                        "file (onnxsim)");
    graph_.constants[node.outputs[0]] = *std::move(value);
    return absl::OkStatus();
  }

  std::vector<Node> nodes_;
  Graph& graph_;
  std::map<std::string, std::size_t> maker_;
  std::vector<bool> live_;
  std::map<std::string, std::string> alias_;
  std::size_t folded_ = 0;
};

}  // namespace

Status clean_graph(std::vector<Node> nodes, Graph& graph) {
  return Cleaner(std::move(nodes), graph).run();
}

}  // namespace odt::compiler
