#include "worker/freeze.h"

#include <cstring>

#include "base/ids.h"
#include "worker/host_model.h"

namespace odt::worker {
namespace {

constexpr std::size_t kHeaderBytes = 16, kTargetTables = 28, kTask = 38;

void append(std::string& out, const void* data, std::size_t bytes) {
  out.append(static_cast<const char*>(data), bytes);
}

// A trainer that only infers; its loss has to be one that the model can have.
odt_run_spec_t plain_spec(const std::string& image) {
  odt_run_spec_t spec = HostTrainer::inference_spec();
  const bool classes = image.size() > kTask && image[kTask] == ODT_TASK_CLASSIFY;
  if (classes && image.compare(kTargetTables, 4, std::string(4, '\0')) == 0)
    spec.loss = ODT_LOSS_CE;
  return spec;
}

// What stands in front of the values: labels or targets as they are; an autoencoder's targets are
// its inputs.
std::string labels_of(const odt_samples_t& s, const odt_model_t& m) {
  std::string out;
  if (m.task == ODT_TASK_AUTOENCODE) {
    append(out, s.data, std::size_t{s.count} * s.sample_len);
    out.resize((out.size() + 3) / 4 * 4);
  } else {
    append(out, s.labels,
           static_cast<std::size_t>(s.data - reinterpret_cast<const std::uint8_t*>(s.labels)));
  }
  return out;
}

}  // namespace

Result<std::string> freeze_samples(const std::string& image, const std::string& samples) {
  std::unique_ptr<HostTrainer> host;
  ODT_ASSIGN(host, HostTrainer::create(image, plain_spec(image)));
  const odt_model_t& model = host->model();
  HostSamples raw;
  ODT_ASSIGN(raw, HostSamples::open(samples, model));
  const odt_samples_t& s = raw.get();
  if (odt_samples_frozen(&s))
    return absl::FailedPreconditionError("samples: they are frozen outputs already");
  if (model.arith == ODT_ARITH_DFP16)
    return absl::UnimplementedError("frozen outputs: of DFP16 models they depend on the batch");
  if (model.cut == ODT_NO_TENSOR)
    return absl::FailedPreconditionError(
        "frozen outputs: several tensors lead into the trainable layers");
  const odt_tensor_t& cut = model.tensors[model.cut];
  const bool targets = model.task != ODT_TASK_CLASSIFY;
  std::string out = samples.substr(0, kHeaderBytes);
  out[6] = static_cast<char>(cut.dtype);
  out[7] = static_cast<char>(ODT_SAMPLES_FROZEN | ODT_SAMPLES_SOURCE |
                             (targets ? ODT_SAMPLES_TARGETS : 0u));
  std::memcpy(out.data() + 12, &cut.count, sizeof cut.count);
  out += labels_of(s, model);
  const std::size_t raw_bytes = std::size_t{s.sample_len} * (s.dtype == ODT_S16 ? 2 : 1);
  std::string values(std::size_t{cut.count} * (cut.dtype == ODT_S16 ? 2 : 1), '\0');
  for (std::uint32_t i = 0; i < s.count; ++i) {
    odt_trainer_freeze(host->get(), s.data + i * raw_bytes,
                       reinterpret_cast<std::uint8_t*>(values.data()));
    out += values;
  }
  append(out, model.hash, 32);
  append(out, sha256(samples).bytes.data(), 32);
  return out;
}

}  // namespace odt::worker
