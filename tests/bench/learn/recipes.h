// Settings of the integer runs that the bench compares.
#pragma once

#include <string>

#include "int_net.h"

namespace odt::learn {

// Pure int8 for models with TARGET_MAG: k 8, SR, MSE with dead zone 4, mu_offset -3, batch 8;
// mu 3 -> 2 -> -1, or 1 -> 0 -> -2 where the model still does 5/6 of its own accuracy on the
// training samples.
odt_run_spec_t int8_run(const IntNet& net, const Set& train, int epochs);
// The seed's double shift (rule 1.11) with TI's loss.
odt_run_spec_t literal_run(int mu, int epochs);
// The product's automatic policy, resolved by its own code (daemon/training/policy) from the
// accuracy before training. small: as on a board where only k = 8 fits.
odt_run_spec_t auto_run(const IntNet& net, const Set& train, const Set& heldout, bool small);
// "k12 psto b8 ce dz4 mu1,0,-1 mo-3 stale e20 noguard": what is not said is as in plain_run.
odt_run_spec_t parse_run(const std::string& text);

}  // namespace odt::learn
