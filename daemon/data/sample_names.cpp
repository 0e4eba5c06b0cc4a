#include "data/sample_names.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>

namespace odt::data {
namespace {

constexpr std::size_t kMaxLabelBytes = 64;

Status bad(const std::string& what) { return absl::InvalidArgumentError(what); }

std::vector<std::string> parts_of(const std::string& path) { return absl::StrSplit(path, '/'); }

bool is_test(std::string_view part) {
  const std::string s = absl::AsciiStrToLower(std::string(part));
  return s == "test" || s == "testing";
}
bool is_train(std::string_view part) {
  const std::string s = absl::AsciiStrToLower(std::string(part));
  return s == "train" || s == "training";
}

bool any_folder(const std::string& path, bool (*wanted)(std::string_view)) {
  const auto parts = parts_of(path);
  return std::any_of(parts.begin(), parts.end() - 1, wanted);
}

}  // namespace

Result<SampleNames> SampleNames::create(const NameOptions& o, const FileSet& files) {
  SampleNames names;
  ODT_TRY(names.parse_pattern(o.pattern));
  ODT_TRY(names.parse_only(o.only));
  names.group_ = o.group;
  if (!o.group.empty() && !names.knows(o.group))
    return bad(absl::StrCat("group '", printable(o.group, 40),
                            "' is neither a field of the pattern nor folder or recording"));
  const auto& entries = files.entries();
  const auto has = [&](bool (*wanted)(std::string_view)) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const FileEntry& e) { return any_folder(e.path, wanted); });
  };
  names.own_test_ = has(is_train) && has(is_test);
  return names;
}

Status SampleNames::parse_pattern(const std::string& text) {
  pattern_text_ = printable(text, 80);
  std::string literal;
  bool label = false;
  const auto flush = [&] {
    if (!literal.empty()) pattern_.push_back({false, std::exchange(literal, {})});
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '*') {
      flush();
      if (!pattern_.empty() && pattern_.back().field)
        return bad(
            absl::StrCat("pattern '", pattern_text_, "': text is needed between two fields"));
      const auto end = text[i] == '*' ? i : text.find('}', i);
      if (end == std::string::npos)
        return bad(absl::StrCat("pattern '", pattern_text_, "': a field has no '}'"));
      const std::string name = text[i] == '*' ? "*" : text.substr(i + 1, end - i - 1);
      if (name.empty())
        return bad(absl::StrCat("pattern '", pattern_text_, "': a field has no name"));
      if (name != "*" && knows(name))
        return bad(absl::StrCat("pattern '", pattern_text_, "': field ", printable(name, 40),
                                " stands twice, or is built in"));
      label = label || name == "label";
      pattern_.push_back({true, name});
      i = end;
    } else {
      if (text[i] == '/') ++slashes_;
      literal += text[i];
    }
  }
  flush();
  if (!text.empty() && !label)
    return bad(
        absl::StrCat("pattern '", pattern_text_, "': no {label}, e.g. {label}_{speaker}_*.wav"));
  with_ending_ = text.find('.') != std::string::npos;
  return absl::OkStatus();
}

bool SampleNames::knows(const std::string& field) const {
  if (field == "recording" || field == "folder") return true;
  return std::any_of(pattern_.begin(), pattern_.end(), [&](const Part& part) {
    return part.field && part.text == field && field != "*";
  });
}

Status SampleNames::parse_only(const std::string& text) {
  const std::vector<std::string> pieces = absl::StrSplit(text, ';', absl::SkipWhitespace());
  for (const std::string& piece : pieces) {
    const auto equal = piece.find('=');
    if (equal == std::string::npos || equal == 0)
      return bad(absl::StrCat("filter '", printable(piece, 80),
                              "'; expected FIELD=VALUE,... or FIELD!=VALUE,..."));
    Condition c;
    c.equal = piece[equal - 1] != '!';
    c.field = std::string(absl::StripAsciiWhitespace(piece.substr(0, c.equal ? equal : equal - 1)));
    const std::string values(absl::StripAsciiWhitespace(piece.substr(equal + 1)));
    c.values = absl::StrSplit(values, ',');
    if (!knows(c.field))
      return bad(absl::StrCat("filter: '", printable(c.field, 40),
                              "' is neither a field of the pattern nor folder or recording"));
    only_.push_back(std::move(c));
  }
  return absl::OkStatus();
}

bool SampleNames::match(std::string_view text, std::size_t n, Fields& fields) const {
  if (n == pattern_.size()) return text.empty();
  const Part& part = pattern_[n];
  if (!part.field)
    return text.substr(0, part.text.size()) == part.text &&
           match(text.substr(part.text.size()), n + 1, fields);
  // The shortest text that lets the rest match; a field has at least one character and no '/'.
  for (std::size_t len = 1; len <= text.size() && text[len - 1] != '/'; ++len) {
    const bool last = n + 1 == pattern_.size();
    if (last && len < text.size()) continue;
    if (!last && text.substr(len, pattern_[n + 1].text.size()) != pattern_[n + 1].text) continue;
    if (match(text.substr(len), n + 1, fields)) {
      fields[part.text] = std::string(text.substr(0, len));
      return true;
    }
  }
  return false;
}

Result<std::optional<SampleName>> SampleNames::of(const FileSet& files, std::size_t i) const {
  const std::string& path = files.entries()[i].path;
  const auto parts = parts_of(path);
  Fields fields;
  if (has_pattern()) {
    if (parts.size() < slashes_ + 1)
      return bad(absl::StrCat(files.shown(i), ": does not match the pattern ", pattern_text_));
    std::size_t from = 0;
    for (std::size_t p = 0; p + slashes_ + 1 < parts.size(); ++p) from += parts[p].size() + 1;
    std::string_view text = std::string_view(path).substr(from);
    if (!with_ending_) text.remove_suffix(extension_of(path).size());
    if (!match(text, 0, fields))
      return bad(absl::StrCat(files.shown(i), ": does not match the pattern ", pattern_text_));
  } else if (parts.size() >= 2) {
    fields["label"] = parts[parts.size() - 2];
  }
  fields["recording"] = path;
  fields["folder"] = parts.size() >= 2 ? parts[0] : std::string();
  for (const auto& c : only_) {
    const bool among =
        std::find(c.values.begin(), c.values.end(), fields[c.field]) != c.values.end();
    if (among != c.equal) return std::optional<SampleName>();
  }
  SampleName name;
  name.label = printable(fields["label"], kMaxLabelBytes);
  if (!group_.empty()) name.group = printable(fields[group_], 200);
  name.own_test = own_test_ && any_folder(path, is_test);
  return std::optional<SampleName>(std::move(name));
}

}  // namespace odt::data
