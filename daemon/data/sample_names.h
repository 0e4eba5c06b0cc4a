#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/file_set.h"

namespace odt::data {

// How a file's path tells class, group and split.
struct NameOptions {
  // "{label}_{speaker}_{n}.wav": fields in braces take the text up to the next literal; '*' takes
  // any and keeps nothing. With a '/' it is matched against the end of the path ("{speaker}/{label}
  // -*.wav"), else against the file name; without a '.' the ending does not count. Empty: the class
  // is the folder that holds the file.
  std::string pattern;
  // Field whose samples stay in one split: of the pattern, "folder" (first below the top), or
  // "recording" (the file). Empty: the reader's own.
  std::string group;
  // "speaker=george,lucas" or "speaker!=george": other files are left out. Several: ';' between.
  std::string only;
};

struct SampleName {
  std::string label;      // printable, at most 64 bytes; empty where the path does not tell
  std::string group;      // empty: none wanted
  bool own_test = false;  // below a folder "test" or "testing", with a "train" or "training" beside
};

class SampleNames {
 public:
  // Errors: INVALID_ARGUMENT (pattern, fields that it does not have).
  static Result<SampleNames> create(const NameOptions& options, const FileSet& files);
  // nullopt: left out by `only`. Errors: INVALID_ARGUMENT (the path does not match the pattern).
  Result<std::optional<SampleName>> of(const FileSet& files, std::size_t i) const;
  bool has_pattern() const { return !pattern_.empty(); }

 private:
  struct Part {
    bool field = false;
    std::string text;  // literal, or the field's name ("*": unnamed)
  };
  struct Condition {
    std::string field;
    std::vector<std::string> values;
    bool equal = true;
  };
  using Fields = std::map<std::string, std::string, std::less<>>;

  Status parse_pattern(const std::string& text);
  Status parse_only(const std::string& text);
  bool knows(const std::string& field) const;
  bool match(std::string_view text, std::size_t part, Fields& fields) const;

  std::vector<Part> pattern_;
  std::string pattern_text_, group_;
  std::size_t slashes_ = 0;
  bool with_ending_ = false, own_test_ = false;
  std::vector<Condition> only_;
};

}  // namespace odt::data
