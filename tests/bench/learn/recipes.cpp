#include "recipes.h"

#include <sstream>
#include <stdexcept>

#include "training/policy.h"

namespace odt::learn {

odt_run_spec_t int8_run(const IntNet& net, const Set& train, int epochs) {
  const odt_model_t& m = net.model();
  const bool mild = training::judge_drift({net.correct(train), train.count},
                                          {m.src_correct, m.src_total}) == training::Drift::kMild;
  odt_run_spec_t s = mild ? plain_run(8, {1, 0, -2}) : plain_run(8, {3, 2, -1});
  s.rounding = ODT_ROUND_SR;
  s.sr_seed = 1;
  s.mu_offset = -3;
  s.dead_zone = 4;
  s.epochs = static_cast<std::uint16_t>(epochs);
  return s;
}

odt_run_spec_t literal_run(int mu, int epochs) {
  odt_run_spec_t s = plain_run(8, {mu, mu, mu});
  s.rule_set = ODT_RULE_NITI_LITERAL;
  s.epochs = static_cast<std::uint16_t>(epochs);
  return s;
}

odt_run_spec_t auto_run(const IntNet& net, const Set& train, const Set& heldout, bool small) {
  const odt_model_t& m = net.model();
  model::Accuracy start = {net.correct(heldout), heldout.count};
  if (heldout.count < training::kFewHeldout) {
    start.correct += net.correct(train);
    start.total += train.count;
  }
  const training::Drift drift = training::judge_drift(start, {m.src_correct, m.src_total});
  training::Placement place;
  place.k = small ? 8 : 15;
  place.batch = training::policy_batch({}, drift);
  const model::HyperParams got = training::resolve({}, drift, place, m.ce_scale != 0, true);
  odt_run_spec_t s = plain_run(static_cast<int>(place.k), {0, 0, 0});
  for (std::size_t i = 0; i < 3; ++i) s.mu_weight[i] = static_cast<std::int8_t>(got.mu_weight[i]);
  s.rounding = static_cast<std::uint8_t>(got.rounding);  // the same numbers
  s.sr_seed = *got.sr_seed;
  s.loss = got.loss == model::LossKind::kCe ? ODT_LOSS_CE : ODT_LOSS_MSE;
  s.mu_offset = static_cast<std::int8_t>(*got.mu_offset);
  s.dead_zone = static_cast<std::uint8_t>(*got.dead_zone);
  s.batch = static_cast<std::uint16_t>(*got.batch);
  s.epochs = static_cast<std::uint16_t>(*got.epochs);
  s.guard = *got.guard;
  return s;
}

odt_run_spec_t parse_run(const std::string& text) {
  odt_run_spec_t s = plain_run(8, {1, 1, 1});
  std::istringstream words(text);
  std::string word;
  const auto number = [&](std::size_t skip) { return std::stoi(word.substr(skip)); };
  while (words >> word) {
    if (word == "ce" || word == "mse")
      s.loss = word == "ce" ? ODT_LOSS_CE : ODT_LOSS_MSE;
    else if (word == "psto")
      s.rounding = ODT_ROUND_PSTO;
    else if (word == "sr")
      s.rounding = ODT_ROUND_SR;
    else if (word == "up")
      s.rounding = ODT_ROUND_HALF_UP;
    else if (word == "stale")
      s.shift_source = ODT_SHIFT_STALE;
    else if (word == "literal")
      s.rule_set = ODT_RULE_NITI_LITERAL;
    else if (word.starts_with("apt"))
      s.apt.t_min_q8 = static_cast<std::uint16_t>(number(3)), s.apt.mode = ODT_APT_QUARTERS,
      s.apt.k_max = 16;
    else if (word.starts_with("max"))
      s.apt.k_max = static_cast<std::uint8_t>(number(3));
    else if (word == "guard")
      s.guard = true;
    else if (word.starts_with("mu")) {
      int a, b, c;
      if (std::sscanf(word.c_str(), "mu%d,%d,%d", &a, &b, &c) != 3)
        throw std::runtime_error(word + ": want muA,B,C");
      s.mu_weight[0] = static_cast<std::int8_t>(a);
      s.mu_weight[1] = static_cast<std::int8_t>(b);
      s.mu_weight[2] = static_cast<std::int8_t>(c);
    } else if (word.starts_with("mo"))
      s.mu_offset = static_cast<std::int8_t>(number(2));
    else if (word.starts_with("dz"))
      s.dead_zone = static_cast<std::uint8_t>(number(2));
    else if (word.starts_with("k"))
      s.k = static_cast<std::uint8_t>(number(1));
    else if (word.starts_with("b"))
      s.batch = static_cast<std::uint16_t>(number(1));
    else if (word.starts_with("e"))
      s.epochs = static_cast<std::uint16_t>(number(1));
    else
      throw std::runtime_error("unknown word '" + word + "' of a recipe");
  }
  return s;
}

}  // namespace odt::learn
