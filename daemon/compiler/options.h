#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/compile.h"

// What several commands of odtc have.
namespace odt::compiler {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{256} << 20;

// Exit codes (daemon/README.md) of errors, which they print.
inline int fail(const Status& status) {
  std::cerr << "odtc: " << status.message() << "\n";
  return 1;
}
inline int usage(const std::string& what) {
  std::cerr << "odtc: " << what << " (odtc --help)\n";
  return 2;
}

inline std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// One of a few words.
template <typename T>
void add_choice(CLI::App* to, const std::string& flag, std::optional<T>& value,
                const std::map<std::string, T>& choices, const std::string& text) {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : choices) words.push_back(word);
  to->add_option_function<std::string>(
        flag, [&value, choices](const std::string& word) { value = choices.at(word); }, text)
      ->check(CLI::IsMember(words));
}

// What a model is for.
inline void add_task(CLI::App* to, std::optional<Task>& task) {
  add_choice<Task>(to, "--task", task,
                   {{"classify", Task::kClassify},
                    {"regress", Task::kRegress},
                    {"autoencode", Task::kAutoencode}},
                   "what the model is for; default: metadata odt.task, else by the shapes");
}

// Which arithmetic, and what the input of a float32 file is.
inline void add_arithmetic(CLI::App* to, CompileOptions& options) {
  add_choice<Arithmetic>(to, "--arith", options.arithmetic,
                         {{"int8", Arithmetic::kInteger}, {"dfp16", Arithmetic::kDfp16}},
                         "arithmetic; default: int8 of QAT files, dfp16 of float32 files");
  to->add_option("--input-exponent", options.input.exponent,
                 "float32 files: value = integer * 2^E, E in -15..7; default -12 (u8: -8, i8: -7)");
  add_choice<Storage>(to, "--input-dtype", options.input.dtype,
                      {{"u8", Storage::kU8}, {"i8", Storage::kS8}, {"s16", Storage::kS16}},
                      "float32 files: s16 (default), or u8 or i8: samples are taken as they are");
}

}  // namespace odt::compiler
