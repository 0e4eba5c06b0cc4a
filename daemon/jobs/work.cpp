#include "jobs/work.h"

#include <absl/strings/str_cat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "jobs/job_runner.h"
#include "jobs/replay_job.h"

namespace odt::jobs {
namespace {

using nlohmann::json;
using Kind = model::Job::Kind;

constexpr char kImage[] = "model.odtm", kTail[] = "tail.odtm", kManifest[] = "model.json",
               kOnnx[] = "model.onnx";
constexpr char kDataset[] = "dataset.odtd", kReport[] = "report.json";
constexpr const char* kSplits[] = {"train", "heldout", "test"};

Result<Hash> hash_of(const json& object, const std::string& key) {
  Bytes raw;
  ODT_ASSIGN(raw, from_hex(object.value(key, "")));
  if (raw.empty()) return Hash{};
  return Hash::from_bytes(std::string(raw.begin(), raw.end()));
}

Result<Uuid> uuid_of(const json& object, const std::string& key) {
  Bytes raw;
  ODT_ASSIGN(raw, from_hex(object.value(key, "")));
  return Uuid::from_bytes(std::string(raw.begin(), raw.end()));
}

Result<json> prepare_compile(const WorkContext& c, const json& request) {
  Hash onnx;
  ODT_ASSIGN(onnx, hash_of(request, "onnx"));
  std::string path;
  ODT_ASSIGN(path, blob_file(c, onnx, "in.onnx"));
  const std::string name = request.value("name", "");
  json job = {{"kind", "compile"},
              {"onnx", path},
              {"file", (name.empty() ? "model" : name) + ".onnx"},
              {"name", name},
              {"trainable_layers", request.value("trainable_layers", 0u)},
              {"image_out", kImage},
              {"tail_out", kTail},
              {"manifest_out", kManifest}};
  for (const char* key : {"arithmetic", "input_dtype", "input_exponent"})
    if (request.contains(key)) job[key] = request[key];
  return job;
}

Result<json> prepare_import(const WorkContext& c, const json& request) {
  json job = request.value("options", json::object());
  job["kind"] = "import";
  job["dataset_out"] = kDataset;
  job["report_out"] = kReport;
  for (const char* key : {"data", "labels", "test_data", "test_labels"}) {
    Hash hash;
    ODT_ASSIGN(hash, hash_of(request, key));
    if (hash.is_zero()) continue;
    ODT_ASSIGN(job[key], blob_file(c, hash, absl::StrCat("in.", key)));
    job[absl::StrCat(key, "_name")] = absl::StrCat(key, " (", hash.hex().substr(0, 8), ")");
  }
  return job;
}

Result<std::string> dataset_file(const WorkContext& c, const json& request) {
  Uuid id;
  ODT_ASSIGN(id, uuid_of(request, "dataset"));
  model::Dataset dataset;
  ODT_ASSIGN(dataset, c.control.call_sync([id](store::ControlStore& s) { return s.dataset(id); }));
  return blob_file(c, dataset.content_hash, "in.odtd");
}

Result<json> prepare_train(const WorkContext& c, const json& request) {
  json job = {{"kind", "train-pc"},
              {"hidden", request.value("hidden", std::vector<std::uint32_t>{})},
              {"arch", request.value("arch", "")},
              {"augment", request.value("augment", "")},
              {"autoencode", request.value("autoencode", false)},
              {"dfp16", request.value("dfp16", false)},
              {"epochs", request.value("epochs", 0u)},
              {"seed", request.value("seed", 0u)},
              {"name", request.value("name", "")},
              {"onnx_out", kOnnx},
              {"image_out", kImage},
              {"tail_out", kTail},
              {"manifest_out", kManifest}};
  ODT_ASSIGN(job["dataset"], dataset_file(c, request));
  return job;
}

std::string frozen_file(const char* split) { return absl::StrCat("frozen-", split, ".odts"); }

Result<json> prepare_derive(const WorkContext& c, const json& request) {
  Hash hash;
  ODT_ASSIGN(hash, hash_of(request, "model"));
  std::string text;
  ODT_ASSIGN(text, c.control.call_sync([hash](store::ControlStore& s) {
    return s.setting(manifest_setting(hash));
  }));
  Bytes raw;
  ODT_ASSIGN(raw, from_hex(text));
  Hash manifest;
  ODT_ASSIGN(manifest, Hash::from_bytes(std::string(raw.begin(), raw.end())));
  json job = {{"kind", "derive"}};
  ODT_ASSIGN(job["manifest"], blob_file(c, manifest, "in.json"));
  ODT_ASSIGN(job["dataset"], dataset_file(c, request));
  const bool frozen = request.value("frozen", false);
  if (frozen) {
    ODT_ASSIGN(job["image"], blob_file(c, hash, "in.odtm"));
  }
  for (const char* split : kSplits) {
    job[absl::StrCat(split, "_out")] = absl::StrCat(split, ".odts");
    if (frozen) job[absl::StrCat("frozen_", split, "_out")] = frozen_file(split);
  }
  return job;
}

Result<json> prepare_export(const WorkContext& c, const json& request) {
  Hash hash;
  ODT_ASSIGN(hash, hash_of(request, "snapshot"));
  model::Model model;
  ODT_ASSIGN(model, c.control.call_sync([hash](store::ControlStore& s) -> Result<model::Model> {
    model::Snapshot snapshot;
    ODT_ASSIGN(snapshot, s.snapshot(hash));
    return s.model(snapshot.model_hash);
  }));
  json job = {{"kind", "export"},
              {"file", model.name + ".onnx"},
              {"weights_file", "snapshot " + hash.hex().substr(0, 12)},
              {"exact", request.value("exact", false)},
              {"onnx_out", kOnnx}};
  ODT_ASSIGN(job["onnx"], blob_file(c, model.onnx_hash, "in.onnx"));
  ODT_ASSIGN(job["weights"], blob_file(c, hash, "in.odtw"));
  ODT_ASSIGN(job["image"], blob_file(c, model.hash, "in.odtm"));
  return job;
}

Status adopt(const WorkContext& c, const char* file, const Hash& hash) {
  return c.blobs.has(hash) ? absl::OkStatus() : c.blobs.adopt(c.folder + "/" + file, hash);
}

Result<json> read_json(const std::string& path) {
  std::ifstream in(path);
  json j = json::parse(in, nullptr, false);
  if (!j.is_object()) return absl::InternalError(path + ": not a JSON object");
  return j;
}

model::Outputs outputs_of(std::uint32_t task, std::uint32_t count) {
  model::Outputs out;
  out.task = task <= 2 ? static_cast<model::Task>(task) : model::Task::kClassify;
  out.count = count;
  return out;
}

model::RamPlan ram_plan(const json& ram) {
  return {ram.at("weights_k8").get<std::uint32_t>(), ram.at("weights_k15").get<std::uint32_t>(),
          ram.at("work_1").get<std::uint32_t>(),     ram.at("work_2").get<std::uint32_t>(),
          ram.at("work_4").get<std::uint32_t>(),     ram.at("work_8").get<std::uint32_t>(),
          ram.at("work_per_8").get<std::uint32_t>()};
}

Result<model::TailPlan> tail_of(const json& t) {
  model::TailPlan tail;
  ODT_ASSIGN(tail.image, hash_of(t, "image_hash"));
  tail.image_bytes = t.at("image_bytes").get<std::uint64_t>();
  tail.sample_bytes = t.at("sample_bytes").get<std::uint32_t>();
  tail.ram = ram_plan(t.at("ram"));
  return tail;
}

model::Model model_of(const json& m) {
  model::Model model;
  model.name = m.at("name").get<std::string>();
  model.image_bytes = m.at("image_bytes").get<std::uint64_t>();
  model.trainable_layers = m.at("trainable_layers").get<std::uint32_t>();
  model.n_classes = m.at("n_classes").get<std::uint32_t>();
  model.input_shape = m.at("input").at("shape").get<std::vector<std::uint32_t>>();
  model.source_accuracy = {m.at("source_accuracy").at("correct").get<std::uint32_t>(),
                           m.at("source_accuracy").at("total").get<std::uint32_t>()};
  model.has_ce_scale = m.at("ce_scale").get<std::uint32_t>() > 0;
  model.arithmetic = m.value("arithmetic", 0u);
  model.input_value_bytes = m.at("input").value("dtype", "") == "i16" ? 2 : 1;
  model.outputs = outputs_of(m.value("task", 0u), model.n_classes);
  if (m.contains("targets")) {
    model.outputs.offset = m.at("targets").at("offset").get<std::vector<float>>();
    model.outputs.scale = m.at("targets").at("scale").get<std::vector<float>>();
  }
  model.ram_k8_bytes = m.at("ram_k8").at("total_bytes").get<std::uint32_t>();
  model.ram_k16_bytes = m.at("ram_k15").at("total_bytes").get<std::uint32_t>();
  model.ram = ram_plan(m.at("ram"));
  for (const auto& l : m.at("layers")) {
    model::LayerInfo info;
    info.name = l.value("name", "");
    info.kind = l.value("kind", "");
    info.weight_shape = l.at("weight_shape").get<std::vector<std::uint32_t>>();
    info.output_shape = l.at("output_shape").get<std::vector<std::uint32_t>>();
    info.weights = l.value("weights", 0u);
    info.k_out_min = l.value("k_out_min", 0u);
    info.k_out_max = l.value("k_out_max", 0u);
    info.macs = l.value("macs", std::uint64_t{0});
    info.trainable = l.value("trainable", false);
    model.layers.push_back(std::move(info));
  }
  return model;
}

// Image and manifest in the job's folder become blobs and a model.
Status register_model(const WorkContext& c, const json& result, const Hash& onnx,
                      std::vector<store::Change>& changes) {
  Hash image, manifest;
  ODT_ASSIGN(image, hash_of(result, "model_hash"));
  ODT_ASSIGN(manifest, hash_of(result, "manifest_hash"));
  json m;
  ODT_ASSIGN(m, read_json(c.folder + "/" + kManifest));
  ODT_TRY(adopt(c, kImage, image));
  ODT_TRY(adopt(c, kManifest, manifest));
  model::Model model = model_of(m);
  if (m.contains("tail")) {
    ODT_ASSIGN(model.tail, tail_of(m.at("tail")));
    ODT_TRY(adopt(c, kTail, model.tail.image));
  }
  for (const auto& t : result.value("times", json::array()))
    model.times.push_back(
        {t.at("board").get<std::string>(), t.value("infer_ns", std::uint64_t{0}),
         t.value("k8_b1_ns", std::uint64_t{0}), t.value("k8_b8_ns", std::uint64_t{0}),
         t.value("k15_b1_ns", std::uint64_t{0}), t.value("k15_b8_ns", std::uint64_t{0})});
  model.hash = image;
  model.onnx_hash = onnx;
  model.meta.create_time_us = c.clock.now_us();  // added again: newest again
  changes.push_back(store::PutModel{std::move(model)});
  changes.push_back(store::PutSetting{manifest_setting(image), manifest.hex()});
  return absl::OkStatus();
}

Result<std::vector<store::Change>> register_compile(const WorkContext& c, const json& request,
                                                    const json& result, model::Job& job) {
  std::vector<store::Change> changes;
  Hash onnx, image;
  ODT_ASSIGN(onnx, hash_of(request, "onnx"));
  ODT_ASSIGN(image, hash_of(result, "model_hash"));
  ODT_TRY(register_model(c, result, onnx, changes));
  job.result_key.assign(image.bytes.begin(), image.bytes.end());
  return changes;
}

Result<std::vector<store::Change>> register_train(const WorkContext& c, const json& request,
                                                  const json& result, model::Job& job) {
  std::vector<store::Change> changes;
  Hash onnx, key;
  ODT_ASSIGN(onnx, hash_of(result, "onnx_hash"));
  ODT_TRY(adopt(c, kOnnx, onnx));
  key = onnx;
  if (!request.value("name", "").empty()) {
    ODT_TRY(register_model(c, result, onnx, changes));
    ODT_ASSIGN(key, hash_of(result, "model_hash"));
  }
  job.result_key.assign(key.bytes.begin(), key.bytes.end());
  return changes;
}

Result<std::vector<store::Change>> register_import(const WorkContext& c, const json& request,
                                                   const json& result, model::Job& job) {
  model::Dataset d;
  d.id = new_uuid();
  ODT_ASSIGN(d.content_hash, hash_of(result, "content_hash"));
  ODT_TRY(adopt(c, kDataset, d.content_hash));
  d.name = request.value("options", json::object()).value("name", "");
  if (d.name.empty()) d.name = "dataset-" + d.content_hash.hex().substr(0, 6);
  d.dtype = result.at("dtype").get<std::string>();
  d.shape = result.at("shape").get<std::vector<std::uint32_t>>();
  d.train = result.at("train").get<std::uint32_t>();
  d.heldout = result.at("heldout").get<std::uint32_t>();
  d.test = result.at("test").get<std::uint32_t>();
  d.class_names = result.at("class_names").get<std::vector<std::string>>();
  d.n_classes = static_cast<std::uint32_t>(d.class_names.size());
  d.class_counts = result.at("class_counts").get<std::vector<std::uint32_t>>();
  d.source = result.at("source").get<std::string>();
  d.bytes = result.at("bytes").get<std::uint64_t>();
  d.outputs = result.value("outputs", 0u);
  d.warnings = result.value("warnings", std::vector<std::string>{});
  ODT_ASSIGN(d.report_hash, hash_of(result, "report_hash"));
  if (!d.report_hash.is_zero()) ODT_TRY(adopt(c, kReport, d.report_hash));
  job.result_key.assign(d.id.bytes.begin(), d.id.bytes.end());
  return std::vector<store::Change>{store::PutDataset{std::move(d)}};
}

Result<std::vector<store::Change>> register_export(const WorkContext& c, const json& result,
                                                   model::Job& job) {
  Hash onnx;
  ODT_ASSIGN(onnx, hash_of(result, "onnx_hash"));
  ODT_TRY(adopt(c, kOnnx, onnx));
  job.result_key.assign(onnx.bytes.begin(), onnx.bytes.end());
  return std::vector<store::Change>{};
}

Result<std::vector<store::Change>> register_derive(const WorkContext& c, const json& request,
                                                   const json& result, model::Job& job) {
  model::DerivedSamples d;
  Uuid id;
  ODT_ASSIGN(id, uuid_of(request, "dataset"));
  model::Dataset dataset;
  ODT_ASSIGN(dataset, c.control.call_sync([id](store::ControlStore& s) { return s.dataset(id); }));
  d.content_hash = dataset.content_hash;
  ODT_ASSIGN(d.model_hash, hash_of(request, "model"));
  ODT_ASSIGN(d.sample_set_hash, hash_of(result, "sample_set_hash"));
  d.outputs = outputs_of(result.value("task", 0u), result.value("outputs", 0u));
  d.outputs.offset = result.value("target_offset", std::vector<float>{});
  d.outputs.scale = result.value("target_scale", std::vector<float>{});
  Hash* const to[] = {&d.train, &d.heldout, &d.test};
  for (std::size_t n = 0; n < 3; ++n) {
    ODT_ASSIGN(*to[n], hash_of(result, kSplits[n]));
    if (!to[n]->is_zero()) ODT_TRY(adopt(c, absl::StrCat(kSplits[n], ".odts").c_str(), *to[n]));
  }
  if (request.value("frozen", false)) {
    Hash* const frozen[] = {&d.frozen_train, &d.frozen_heldout, &d.frozen_test};
    for (std::size_t n = 0; n < 3; ++n) {
      ODT_ASSIGN(*frozen[n], hash_of(result, absl::StrCat("frozen_", kSplits[n])));
      if (!frozen[n]->is_zero()) ODT_TRY(adopt(c, frozen_file(kSplits[n]).c_str(), *frozen[n]));
    }
  }
  job.result_key.assign(d.content_hash.bytes.begin(), d.content_hash.bytes.end());
  return std::vector<store::Change>{store::PutDerived{d}};
}

}  // namespace

std::string manifest_setting(const Hash& model) { return "model.manifest." + model.hex(); }

Result<std::string> blob_file(const WorkContext& c, const Hash& hash, const std::string& name) {
  auto path = c.blobs.path(hash);
  if (path.ok()) return std::filesystem::absolute(*path).string();
  if (path.status().code() != absl::StatusCode::kUnimplemented) return path.status();
  std::string bytes;
  ODT_ASSIGN(bytes, c.blobs.get(hash));
  std::ofstream out(c.folder + "/" + name, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) return absl::ResourceExhaustedError("cannot write " + c.folder + "/" + name);
  return name;
}

Result<json> prepare_work(const WorkContext& c, const model::Job& job) {
  const json request = json::parse(job.request_json, nullptr, false);
  if (!request.is_object()) return absl::InternalError("the job's request is damaged");
  switch (job.kind) {
    case Kind::kCompile:
      return prepare_compile(c, request);
    case Kind::kImport:
      return prepare_import(c, request);
    case Kind::kTrainPc:
      return prepare_train(c, request);
    case Kind::kDerive:
      return prepare_derive(c, request);
    case Kind::kExport:
      return prepare_export(c, request);
    case Kind::kReplay: {
      Uuid run;
      ODT_ASSIGN(run, uuid_of(request, "run"));
      return prepare_replay(c, run);
    }
    default:
      return absl::UnimplementedError("this job is not one of the worker's");
  }
}

Result<std::vector<store::Change>> register_work(const WorkContext& c, const json& result,
                                                 model::Job& job) {
  try {
    const json request = json::parse(job.request_json);
    json shown = result;
    if (shown.is_object()) shown.erase("times");  // for the model's row
    job.result_json = shown.dump(-1, ' ', false, json::error_handler_t::replace);
    switch (job.kind) {
      case Kind::kCompile:
        return register_compile(c, request, result, job);
      case Kind::kImport:
        return register_import(c, request, result, job);
      case Kind::kTrainPc:
        return register_train(c, request, result, job);
      case Kind::kDerive:
        return register_derive(c, request, result, job);
      case Kind::kExport:
        return register_export(c, result, job);
      default: {
        Uuid run;
        ODT_ASSIGN(run, uuid_of(request, "run"));
        job.result_key.assign(run.bytes.begin(), run.bytes.end());
        return std::vector<store::Change>{};
      }
    }
  } catch (const json::exception& e) {
    return absl::InternalError(absl::StrCat("the worker's result is not understood: ", e.what()));
  }
}

void keep_frozen(store::ControlStore& store, std::vector<store::Change>& changes) {
  for (store::Change& change : changes) {
    auto* put = std::get_if<store::PutDerived>(&change);
    if (put == nullptr) continue;
    model::DerivedSamples& d = put->value;
    const auto known = store.derived(d.content_hash, d.model_hash);
    if (!known.ok() || known->sample_set_hash != d.sample_set_hash || known->test != d.test)
      continue;
    if (d.frozen_train.is_zero()) d.frozen_train = known->frozen_train;
    if (d.frozen_heldout.is_zero()) d.frozen_heldout = known->frozen_heldout;
    if (d.frozen_test.is_zero()) d.frozen_test = known->frozen_test;
  }
}

Result<store::Change> verdict_change(store::ControlStore& store, const model::Job& job) {
  Uuid id;
  ODT_ASSIGN(id, Uuid::from_bytes(std::string(job.result_key.begin(), job.result_key.end())));
  model::Run run;
  ODT_ASSIGN(run, store.run(id));
  const json result = json::parse(job.result_json, nullptr, false);
  run.replay = result.is_object() && result.value("equal", false)
                   ? model::ReplayVerdict::kEqual
                   : model::ReplayVerdict::kDifferent;
  return store::Change(store::UpdateRun{std::move(run)});
}

}  // namespace odt::jobs
