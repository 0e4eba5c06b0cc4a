#pragma once

#include "training/env.h"
#include "training/policy.h"

// What must hold before a run is queued: everything that can be known without the board.
namespace odt::training {

struct RunParts {
  model::Board board;
  model::Model model;
  model::Dataset dataset;
  bool evaluate = false, start_snapshot = false;  // of the spec
};
// Reads model, dataset and start snapshot of the spec and checks them against each other and the
// board; completes spec.hyper.k from the snapshot. `guess`: settings where they are certain already
// (policy FIXED). Errors: NOT_FOUND, INVALID_ARGUMENT, FAILED_PRECONDITION, RESOURCE_EXHAUSTED.
asio::awaitable<Result<RunParts>> check_run(Env& env, std::shared_ptr<model::RunSpec> spec,
                                            std::shared_ptr<model::HyperParams> guess);

// What may make a run's result worth less: too few samples to learn from, or to judge by.
std::vector<model::Reason> sample_warnings(const RunParts& parts, const model::HyperParams& asked);

// A model of the store; where its row does not say what it learns, its image does. Errors:
// NOT_FOUND.
asio::awaitable<Result<model::Model>> find_model(Env& env, Hash hash);

// A run on captured samples (run_captured.cpp): asks the board, which has to be there. Pins what
// such a run can be in spec.hyper; the answer stands for its samples as a dataset would.
asio::awaitable<Result<model::Dataset>> check_captured(Env& env,
                                                       std::shared_ptr<model::RunSpec> spec,
                                                       model::Board board, model::Model model);
model::Dataset captured_dataset(const model::Model& model, std::uint32_t train,
                                std::uint32_t heldout);

// The parts that need no store.
Status check_shapes(const model::Model& model, const model::Dataset& dataset, bool evaluate);
Status check_settings(const RunParts& parts, const model::HyperParams& asked,
                      model::HyperParams* guess);

}  // namespace odt::training
