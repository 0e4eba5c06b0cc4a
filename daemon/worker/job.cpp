#include "worker/job.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compiler/compile.h"
#include "compiler/cost.h"
#include "compiler/export.h"
#include "data/derive.h"
#include "worker/freeze.h"
#include "worker/import_job.h"
#include "worker/replay.h"
#include "worker/train_pc.h"

namespace odt::worker {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxOnnxBytes = std::uint64_t{256} << 20;

struct Context {
  const json& job;
  const std::string& base;
  const data::Progress& progress;

  std::string path(const char* key) const { return job_path(job.value(key, ""), base); }
  std::string text(const char* key) const { return job.value(key, ""); }
  std::uint32_t number(const char* key) const { return job.value(key, 0u); }
  std::string file_name(const char* key) const {
    const std::string given = text("file"), p = path(key);
    return given.empty() ? p.substr(p.rfind('/') + 1) : given;
  }
};

Result<std::string> read_input(const Context& c, const char* key, std::uint64_t max_bytes) {
  if (c.path(key).empty())
    return absl::InvalidArgumentError(absl::StrCat("job: '", key, "' (a path) is missing"));
  return data::read_file(c.path(key), max_bytes);
}

Status write_output(const Context& c, const char* key, const std::string& content) {
  const std::string path = c.path(key);
  return path.empty() ? absl::OkStatus() : data::write_file(path, content);
}

Result<Hash> hash_field(const json& object, const char* key) {
  const std::string text = object.value(key, "");
  if (text.empty()) return Hash{};
  Bytes raw;
  ODT_ASSIGN(raw, from_hex(text));
  return Hash::from_bytes(std::string(raw.begin(), raw.end()));
}

Result<compiler::CompileOptions> compile_options(const Context& c) {
  compiler::CompileOptions o;
  o.name = c.text("name");
  o.trainable_layers = c.number("trainable_layers");
  const std::string arithmetic = c.text("arithmetic"), dtype = c.text("input_dtype");
  if (arithmetic == "int8") o.arithmetic = compiler::Arithmetic::kInteger;
  if (arithmetic == "dfp16") o.arithmetic = compiler::Arithmetic::kDfp16;
  if (!arithmetic.empty() && !o.arithmetic)
    return absl::InvalidArgumentError(
        absl::StrCat("job: arithmetic '", arithmetic, "'; expected int8 or dfp16"));
  if (dtype == "u8") o.input.dtype = compiler::Storage::kU8;
  if (dtype == "i8") o.input.dtype = compiler::Storage::kS8;
  if (dtype == "s16") o.input.dtype = compiler::Storage::kS16;
  if (!dtype.empty() && !o.input.dtype)
    return absl::InvalidArgumentError(
        absl::StrCat("job: input_dtype '", dtype, "'; expected u8, i8 or s16"));
  if (c.job.contains("input_exponent"))
    o.input.exponent = c.job.at("input_exponent").get<std::int32_t>();
  return o;
}

// What a step of the model takes on the boards that are known.
json times_of(const compiler::Network& net) {
  json out = json::array();
  for (const auto& t : compiler::board_times(net))
    out.push_back({{"board", t.board},
                   {"infer_ns", t.infer_ns},
                   {"k8_b1_ns", t.k8_b1_ns},
                   {"k8_b8_ns", t.k8_b8_ns},
                   {"k15_b1_ns", t.k15_b1_ns},
                   {"k15_b8_ns", t.k15_b8_ns}});
  return out;
}

Result<json> run_compile(const Context& c) {
  std::string onnx;
  ODT_ASSIGN(onnx, read_input(c, "onnx", kMaxOnnxBytes));
  c.progress(200, "compiling");
  compiler::Compiled compiled;
  compiler::CompileOptions options;
  ODT_ASSIGN(options, compile_options(c));
  ODT_ASSIGN(compiled, compiler::compile(onnx, c.file_name("onnx"), options));
  ODT_TRY(write_output(c, "manifest_out", compiled.manifest));
  ODT_TRY(write_output(c, "image_out", compiled.image));
  if (!compiled.tail.empty()) ODT_TRY(write_output(c, "tail_out", compiled.tail));
  return json{{"model_hash", sha256(compiled.image).hex()},
              {"manifest_hash", sha256(compiled.manifest).hex()},
              {"times", times_of(compiled.network)},
              {"warnings", compiled.network.warnings}};
}

// Trained weights back in the ONNX file.
Result<json> run_export(const Context& c) {
  std::string onnx, weights;
  compiler::ExportOptions options;
  ODT_ASSIGN(onnx, read_input(c, "onnx", kMaxOnnxBytes));
  ODT_ASSIGN(weights, read_input(c, "weights", kMaxOnnxBytes));
  ODT_ASSIGN(options.image, read_input(c, "image", kMaxOnnxBytes));
  options.exact = c.job.value("exact", false);
  c.progress(200, "writing weights into the ONNX file");
  compiler::Exported done;
  ODT_ASSIGN(done,
             compiler::export_onnx(onnx, c.file_name("onnx"), weights,
                                   c.job.value("weights_file", std::string("weights")), options));
  ODT_TRY(write_output(c, "onnx_out", done.onnx));
  return json{{"onnx_hash", sha256(done.onnx).hex()},
              {"changed_weights", done.changed_weights},
              {"changed_offsets", done.changed_offsets},
              {"warnings", done.warnings}};
}

Result<data::Dataset> read_dataset(const Context& c) {
  std::string bytes;
  ODT_ASSIGN(bytes, read_input(c, "dataset", 2 * data::kMaxDatasetBytes));
  return data::decode_dataset(bytes);
}

Result<json> run_derive(const Context& c) {
  data::Dataset d;
  ODT_ASSIGN(d, read_dataset(c));
  std::string manifest;
  ODT_ASSIGN(manifest, read_input(c, "manifest", kMaxOnnxBytes));
  data::InputStage stage;
  ODT_ASSIGN(stage, data::parse_input_stage(manifest));
  c.progress(300, "quantising");
  data::OutputStage output;
  ODT_ASSIGN(output, data::parse_output_stage(manifest, d));
  data::DerivedBlobs blobs;
  ODT_ASSIGN(blobs, data::derive_samples(d, stage, output));
  json result = {{"sample_set_hash", blobs.sample_set_hash.hex()},
                 {"task", static_cast<int>(output.task)},
                 {"outputs", output.outputs}};
  if (output.task == data::OutputStage::Task::kNothing) data::output_scales(stage, d.dtype, output);
  if (output.task != data::OutputStage::Task::kClasses) {
    result["target_offset"] = output.offset;
    result["target_scale"] = output.scale;
  }
  const std::pair<const char*, const std::string*> splits[] = {
      {"train", &blobs.train}, {"heldout", &blobs.heldout}, {"test", &blobs.test}};
  for (const auto& [name, blob] : splits) {
    result[name] = blob->empty() ? std::string() : sha256(*blob).hex();
    if (!blob->empty()) ODT_TRY(write_output(c, absl::StrCat(name, "_out").c_str(), *blob));
  }
  if (c.text("image").empty()) return result;
  std::string image;
  ODT_ASSIGN(image, read_input(c, "image", kMaxOnnxBytes));
  int at = 300;
  for (const auto& [name, blob] : splits) {
    c.progress(at += 200, absl::StrCat("frozen outputs: ", name));
    result[absl::StrCat("frozen_", name)] = "";
    if (blob->empty()) continue;
    std::string frozen;
    ODT_ASSIGN(frozen, freeze_samples(image, *blob));
    result[absl::StrCat("frozen_", name)] = sha256(frozen).hex();
    ODT_TRY(write_output(c, absl::StrCat("frozen_", name, "_out").c_str(), frozen));
  }
  return result;
}

Result<json> run_train_pc(const Context& c) {
  data::Dataset d;
  ODT_ASSIGN(d, read_dataset(c));
  TrainPcOptions options;
  options.hidden = c.job.value("hidden", std::vector<std::uint32_t>{32});
  options.arch = c.text("arch");
  options.augment = c.text("augment");
  options.rate = c.job.value("rate", 0.0f);
  options.decay = c.job.value("decay", -1.0f);
  options.validation = c.number("validation");
  options.epochs = c.number("epochs");
  options.seed = c.number("seed");
  options.name = c.text("name");
  options.autoencode = c.job.value("autoencode", false);
  compiler::Network net;
  TrainPcFigures figures;
  ODT_ASSIGN(net, train_pc(d, options, c.progress, &figures));
  TrainedFiles files;
  ODT_ASSIGN(files, package(net, c.job.value("dfp16", false)));
  ODT_TRY(write_output(c, "manifest_out", files.manifest));
  ODT_TRY(write_output(c, "image_out", files.image));
  if (!files.tail.empty()) ODT_TRY(write_output(c, "tail_out", files.tail));
  ODT_TRY(write_output(c, "onnx_out", files.onnx));
  const compiler::Calibration& cal = net.calibration;
  return json{{"onnx_hash", sha256(files.onnx).hex()},
              {"task", static_cast<int>(net.task)},
              {"mse", figures.mse},
              {"mse_in_units", figures.mse_in_units},
              {"correct", cal.src_correct},
              {"total", cal.src_total},
              {"ce_scale", cal.ce_scale},
              {"warnings", files.warnings},
              {"model_hash", sha256(files.image).hex()},
              {"manifest_hash", sha256(files.manifest).hex()},
              {"times", times_of(net)}};
}

odt_run_spec_t read_spec(const json& s) {
  odt_run_spec_t spec{};
  spec.rule_set = s.value("rule_set", std::uint8_t{ODT_RULE_NITI});
  spec.rounding = s.value("rounding", std::uint8_t{0});
  spec.loss = s.value("loss", std::uint8_t{ODT_LOSS_CE});
  spec.shift_source = s.value("shift_source", std::uint8_t{ODT_SHIFT_EXACT});
  const auto mu = s.value("mu_weight", std::vector<std::int8_t>{0, 0, 0});
  for (std::size_t n = 0; n < 3; ++n)
    spec.mu_weight[n] = mu.empty() ? std::int8_t{0} : mu[std::min(n, mu.size() - 1)];
  spec.mu_offset = s.value("mu_offset", std::int8_t{1});
  spec.dead_zone = s.value("dead_zone", std::uint8_t{0});
  spec.k = s.value("k", std::uint8_t{8});
  spec.batch = s.value("batch", std::uint16_t{8});
  spec.epochs = s.value("epochs", std::uint16_t{1});
  spec.train_samples = s.value("train_samples", 0u);
  spec.heldout_samples = s.value("heldout_samples", 0u);
  spec.order_seed = s.value("order_seed", 0u);
  spec.sr_seed = s.value("sr_seed", 0u);
  spec.guard = s.value("guard", false);
  const auto layer_k = s.value("layer_k", std::vector<std::uint8_t>{});
  for (std::size_t n = 0; n < layer_k.size() && n < ODT_MAX_LAYERS; ++n)
    spec.layer_k[n] = layer_k[n] == spec.k ? std::uint8_t{0} : layer_k[n];
  spec.apt.mode = s.value("apt_mode", std::uint8_t{0});
  spec.apt.k_max = s.value("apt_k_max", std::uint8_t{0});
  spec.apt.offsets = s.value("apt_offsets", false);
  spec.apt.t_min_q8 = s.value("apt_t_min_q8", std::uint16_t{0});
  spec.apt.t_max_q8 = s.value("apt_t_max_q8", std::uint16_t{0});
  const auto lr = s.value("lr_m", std::vector<std::uint16_t>{});
  for (std::size_t n = 0; n < 3; ++n)
    spec.lr_m[n] = lr.empty() ? std::uint16_t{0} : lr[std::min(n, lr.size() - 1)];
  spec.lr_s = s.value("lr_s", std::uint8_t{0});
  spec.blocked = s.value("blocked", false);
  if (spec.rule_set == ODT_RULE_DFP16) spec.k = 0;  // as boards read it: exponents stand there
  const auto cw = s.value("class_weights", std::vector<std::uint8_t>{});
  for (std::size_t n = 0; n < ODT_MAX_CLASSES; ++n)
    spec.class_weights[n] = n < cw.size() ? cw[n] : std::uint8_t{64};
  return spec;
}

json verdict_json(const ReplayVerdict& v) {
  json result = {{"equal", v.equal},
                 {"first_different_epoch", nullptr},
                 {"first_different_step", nullptr},
                 {"state_hash", v.state_hash.hex()},
                 {"weights_hash", v.weights_hash.hex()},
                 {"expected_state_hash", v.expected_state_hash.hex()},
                 {"epochs_compared", v.epochs_compared},
                 {"steps_compared", v.steps_compared},
                 {"rules_version", ODT_RULES_VERSION}};
  if (v.first_different_epoch) result["first_different_epoch"] = *v.first_different_epoch;
  if (v.first_different_step) result["first_different_step"] = *v.first_different_step;
  for (const auto& h : v.epoch_hashes) result["epoch_hashes"].push_back(h.hex());
  return result;
}

Result<json> run_replay(const Context& c) {
  ReplayRequest r;
  ODT_ASSIGN(r.image, read_input(c, "image", kMaxOnnxBytes));
  ODT_ASSIGN(r.train, read_input(c, "train", data::kMaxDatasetBytes));
  if (!c.text("heldout").empty()) {
    ODT_ASSIGN(r.heldout, read_input(c, "heldout", data::kMaxDatasetBytes));
  }
  if (!c.text("start_weights").empty()) {
    ODT_ASSIGN(r.start_weights, read_input(c, "start_weights", kMaxOnnxBytes));
  }
  r.spec = read_spec(c.job.value("spec", json::object()));
  r.rules_version = c.number("rules_version");
  Hash set_hash;
  ODT_ASSIGN(set_hash, hash_field(c.job, "sample_set_hash"));
  std::copy(set_hash.bytes.begin(), set_hash.bytes.end(), r.spec.sample_set_hash);
  ODT_ASSIGN(r.final_state_hash, hash_field(c.job, "final_state_hash"));
  ODT_ASSIGN(r.final_weights_hash, hash_field(c.job, "final_weights_hash"));
  for (const auto& e : c.job.value("epochs", json::array())) {
    ReplayRequest::Epoch epoch{e.value("epoch", 0u), e.value("step", 0u), {}};
    ODT_ASSIGN(epoch.state_hash, hash_field(e, "state_hash"));
    r.epochs.push_back(epoch);
  }
  for (const auto& s : c.job.value("steering", json::array()))
    r.steering.push_back(
        {s.value("step", 0u), s.value("layer", 0u), s.value("k", std::uint8_t{0})});
  for (const auto& s : c.job.value("steps", json::array()))
    r.steps.push_back(
        {s.value("step", 0u), s.value("loss", std::uint64_t{0}), s.value("correct", 0u)});
  ReplayVerdict v;
  ODT_ASSIGN(v, replay(r, c.progress));
  return verdict_json(v);
}

}  // namespace

std::string job_path(const std::string& path, const std::string& base) {
  return path.empty() || path[0] == '/' ? path : base + "/" + path;
}

Result<json> run_job(const json& job, const std::string& base, const data::Progress& progress) {
  try {
    const Context c{job, base, progress};
    const std::string kind = c.text("kind");
    if (kind == "compile") return run_compile(c);
    if (kind == "import") return run_import(job, base, progress);
    if (kind == "derive") return run_derive(c);
    if (kind == "train-pc") return run_train_pc(c);
    if (kind == "replay") return run_replay(c);
    if (kind == "export") return run_export(c);
    return absl::InvalidArgumentError(
        absl::StrCat("job: kind '", kind,
                     "' is not known; use compile, import, derive, train-pc, replay or export"));
  } catch (const json::exception& e) {
    return absl::InvalidArgumentError(absl::StrCat("job: ", e.what()));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the job needs more memory than its limit");
  }
}

}  // namespace odt::worker
