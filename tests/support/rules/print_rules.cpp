// Writes the golden vectors of the rules to standard output, one run a line.
#include <iostream>

#include "rule_vectors.h"

int main() {
  nlohmann::json all = odt::testing::rule_vectors();
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
