#pragma once

#include "training/env.h"

// Weights that exist nowhere but on a board: kept before they are overwritten.
namespace odt::training {

// Puts what the board holds into the store as a snapshot where nobody has kept it and it is not
// what a model begins with. why: what comes next ("a restore"). state: with hashes. Zero: nothing
// to keep. Errors: those of the link and the store.
asio::awaitable<Result<Hash>> keep_unsaved(Env& env, Session session, model::DeviceState state,
                                           std::string why);

// The board holds a model's own weights: they need no keeping. Once a model and daemon.
asio::awaitable<void> note_initial_weights(Env& env, Session session, Hash model);

}  // namespace odt::training
