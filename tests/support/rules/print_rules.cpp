// Writes the golden vectors of the rules to standard output, one run a line: rules.json; with an
// argument wide.json.
#include <iostream>

#include "rule_vectors.h"

int main(int argc, char**) {
  nlohmann::json all = argc > 1 ? odt::testing::wide_vectors() : odt::testing::rule_vectors();
  std::cout << "{\n";
  const char* comma = "";
  for (auto& [name, value] : all.items()) {
    std::cout << comma << nlohmann::json(name) << ": ";
    comma = ",\n";
    if (!value.is_array()) {
      std::cout << value;
      continue;
    }
    std::cout << "[";
    for (size_t i = 0; i < value.size(); i++) std::cout << (i ? ",\n" : "\n") << value[i];
    std::cout << "\n]";
  }
  std::cout << "\n}\n";
}
