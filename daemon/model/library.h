#pragma once

#include "model/common.h"

namespace odt::model {

struct LayerInfo {
  std::string name, kind;
  std::vector<std::uint32_t> weight_shape, output_shape;
  std::uint32_t weights = 0, k_out_min = 0, k_out_max = 0;
  std::uint64_t macs = 0;
  bool trainable = false;
};

// What a trainer takes of a board's memory, in bytes as firmware/odt lays it out. Zeros: unknown
// (compiled before these figures were kept).
struct RamPlan {
  std::uint32_t weights_k8 = 0, weights_k16 = 0;  // one copy; the guard keeps a second
  // Activations and gradients: at batches 1, 2, 4 and 8, then for each further 8; exact at these.
  std::uint32_t work_1 = 0, work_2 = 0, work_4 = 0, work_8 = 0, work_per_8 = 0;
  std::uint64_t work_bytes(std::uint32_t batch) const {
    if (batch <= 1) return work_1;
    if (batch <= 2) return work_2;
    if (batch <= 4) return work_4;
    return work_8 + ((batch + 7ull) / 8 - 1) * work_per_8;
  }
  bool operator==(const RamPlan&) const = default;
};

// The trainable part of a model alone: an image for boards that cannot hold the whole, and the
// frozen outputs that it takes in place of samples. Zero image: there is none.
struct TailPlan {
  Hash image;
  std::uint64_t image_bytes = 0;
  std::uint32_t sample_bytes = 0;  // frozen outputs of one sample
  RamPlan ram;
  bool operator==(const TailPlan&) const = default;
};

// Predicted by the kernels' instructions and the clock of a type of board; nanoseconds, at batches
// of 1 and 8.
struct StepTime {
  std::string board;
  std::uint64_t infer_ns = 0, k8_b1_ns = 0, k8_b8_ns = 0, k15_b1_ns = 0, k15_b8_ns = 0;
  bool operator==(const StepTime&) const = default;
};

struct Model {
  Hash hash;
  std::string name;
  std::uint64_t image_bytes = 0;
  Hash onnx_hash;
  std::uint32_t trainable_layers = 0, n_classes = 0;
  std::vector<std::uint32_t> input_shape;
  Accuracy source_accuracy;
  bool has_ce_scale = false;
  std::uint32_t arithmetic = 0;         // of the image: 0 8-bit integers, 1 DFP16
  std::uint32_t input_value_bytes = 0;  // of a value that a board receives; 0: 1
  Outputs outputs;                      // scales: of its manifest
  std::vector<LayerInfo> layers;
  std::uint32_t ram_k8_bytes = 0, ram_k16_bytes = 0;
  RamPlan ram;
  TailPlan tail;
  std::vector<StepTime> times;  // by board type; empty: compiled before there were any
  Meta meta;
};

struct Dataset {
  Uuid id;
  Hash content_hash;  // = blob hash of the dataset file
  std::string name, dtype;
  std::vector<std::uint32_t> shape;
  std::uint32_t train = 0, heldout = 0, test = 0, n_classes = 0;
  std::vector<std::string> class_names;
  std::vector<std::uint32_t> class_counts;
  std::string source;
  std::uint64_t bytes = 0;
  std::uint32_t outputs = 0;  // regression targets per sample
  std::vector<std::string> warnings;
  Hash report_hash;  // blob: report and preview, JSON (data/report.h); zero: none
  Meta meta;
};

// Derived cache: a dataset's splits as ODTS blobs for one model.
struct DerivedSamples {
  Hash content_hash, model_hash;  // key
  Hash train, heldout, test;      // blob hashes; zero: empty split
  Hash sample_set_hash;           // SHA-256(train hash || held-out hash or zeros)
  Outputs outputs;                // with the scales that the targets were made with
  // Frozen outputs of the same splits; zero: not made yet, or an empty split.
  Hash frozen_train, frozen_heldout, frozen_test;
};

struct Snapshot {
  Hash hash;
  Hash model_hash;
  BoardUid board_uid;
  Uuid run_id;
  std::uint32_t attempt = 0, step = 0;
  Hash parent;
  std::vector<std::string> aliases;
  Accuracy heldout;
  Loss heldout_loss;
  std::uint64_t bytes = 0;
  std::string note;
  std::vector<Hash> parents;  // of an average
  Uuid campaign_id;           // that made it
  // Link of the hash chain (model/provenance.h) and that of its parent when it was made; set by the
  // store with the first put. Zero: before there were chains.
  Hash chain, parent_chain;
  std::string origin;  // "run", "pull", "upload", "automatic: before ..."
  bool pinned = false;
  Meta meta;
};

// Squared errors of the samples of an evaluation without classes, each summed over its outputs.
struct Scores {
  std::uint64_t min = 0, median = 0, p95 = 0, max = 0;  // smallest score with that rank
  Hash blob;  // u64 little-endian for each sample, in the order of the split
  bool operator==(const Scores&) const = default;
};

struct Evaluation {
  Uuid id;
  BoardUid board_uid;
  Hash model_hash, snapshot;
  Uuid dataset_id;
  std::string split;
  Accuracy accuracy;
  std::vector<std::uint32_t> confusion;
  Loss loss;
  Outputs outputs;
  Scores scores;
  Hash wrong;  // blob: of each wrong sample its index, label and what was said, u32 each
  std::vector<std::uint32_t> class_totals, class_correct;
  Meta meta;
};

// What a board says of a few samples.
struct Inference {
  struct Sample {
    std::uint32_t index = 0;           // in its split
    std::vector<std::int8_t> outputs;  // logits
    std::uint32_t predicted = 0;       // class
    std::vector<std::int8_t> wanted;   // its label; targets; values of an autoencoder's input
  };
  Outputs outputs;
  std::uint32_t there = 0;  // samples in the split
  std::vector<Sample> samples;
};

struct Job {
  enum class Kind : std::uint8_t {
    kUnspecified = 0,
    kCompile = 1,
    kImport = 2,
    kTrainPc = 3,
    kReplay = 4,
    kEvaluate = 5,
    kDerive = 6,
    kExport = 7,
  };
  enum class State : std::uint8_t {
    kUnspecified = 0,
    kQueued = 1,
    kRunning = 2,
    kSucceeded = 3,
    kFailed = 4,
    kCancelled = 5,
  };
  Uuid id;
  Kind kind = Kind::kUnspecified;
  State state = State::kQueued;
  std::uint32_t progress_permille = 0;
  std::string message;
  Reason reason;
  Bytes result_key;
  std::string result_json;
  std::string request_json;  // what was asked; enough to run it again
  Meta meta;
};

struct Upload {
  Uuid id;
  std::string name;
  std::uint64_t size = 0;
  Hash sha256;
  std::uint64_t received = 0;
  Meta meta;
};

}  // namespace odt::model
