#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/call.h"
#include "model/library.h"
#include "model/run.h"

// Jobs that odt-worker carries out as a child process (rlimits, deadline, progress). Implemented by
// jobs::JobRunner; every method may be called from any thread. `done` comes when the job is queued
// (durable), on any thread; its end is a job event.
namespace odt::jobs {

struct ImportOptions {  // odt.api.v1.ImportOptions
  std::string name, format;
  std::vector<std::uint32_t> resize;
  std::string transform;
  std::uint32_t train = 0, heldout = 0, test = 0, seed = 0;
  std::string label_column;
  std::uint32_t skip = 0;
  std::vector<std::uint32_t> split;
  bool stratify = false;
  std::string missing;
  std::vector<std::string> target_columns, drop_columns;
  std::string group_column, x_key, y_key;
  double window_s = 0, stride_s = 0, sample_rate = 0;
  std::uint32_t window_steps = 0, stride_steps = 0, channels = 0;
  std::string features, short_recordings, series, pattern, only;
};
struct ImportBlobs {
  Hash data, labels, test_data, test_labels;
};
struct TrainOnPcOptions {
  Uuid dataset_id;
  std::vector<std::uint32_t> hidden;
  bool dfp16 = false;  // an image for DFP16 instead of one for 8-bit integers
  std::uint32_t epochs = 0, seed = 0;
  std::string name;
  std::string arch = {};     // instead of hidden: layers as daemon/worker/README.md has them
  std::string augment = {};  // "shift2,flip"
  bool autoencode = false;   // learn the samples themselves; always where there is nothing else
};

// How an ONNX file becomes a model; empty: as the file says.
struct CompileChoice {
  std::string arithmetic;   // "int8", "dfp16"
  std::string input_dtype;  // "u8", "i8", "s16"
  std::optional<std::int32_t> input_exponent;
};

class JobControl {
 public:
  virtual ~JobControl() = default;
  virtual void add_model(CallContext ctx, Hash onnx_blob, std::string name,
                         std::uint32_t trainable_layers, CompileChoice choice,
                         Done<model::Job> done) = 0;
  virtual void import_dataset(CallContext ctx, ImportOptions options, ImportBlobs blobs,
                              Done<model::Job> done) = 0;
  virtual void train_on_pc(CallContext ctx, TrainOnPcOptions options, Done<model::Job> done) = 0;
  virtual void replay(CallContext ctx, Uuid run, Done<model::Job> done) = 0;
  // The snapshot's weights in the ONNX file of its model (an EXPORT job; its result_key is the hash
  // of the new file). exact: refuse weights finer than 8 bits.
  virtual void export_onnx(CallContext ctx, Hash snapshot, bool exact, Done<model::Job> done) = 0;
  virtual void cancel(CallContext ctx, Uuid job, Done<model::Job> done) = 0;
  // Samples of a dataset for a model, from the cache or made now (a DERIVE job). `done` when they
  // are there.
  virtual void derive(CallContext ctx, Uuid dataset, Hash model,
                      Done<model::DerivedSamples> done) = 0;
  // The same with the frozen outputs of every split, for a model that has a tail.
  virtual void freeze(CallContext ctx, Uuid dataset, Hash model,
                      Done<model::DerivedSamples> done) = 0;
};

}  // namespace odt::jobs
