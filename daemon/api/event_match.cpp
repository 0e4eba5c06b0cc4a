#include "api/event_match.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>

namespace odt::api {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// "failed" of RUN_STATE_FAILED and of Job.STATE_FAILED: without the name of its type.
std::string state_word(const EnumValueDescriptor& value) {
  std::string prefix;
  for (const char c : value.type()->name()) {
    if (c >= 'A' && c <= 'Z' && !prefix.empty()) prefix += '_';
    prefix += absl::ascii_toupper(static_cast<unsigned char>(c));
  }
  std::string word = value.name();
  if (word.rfind(prefix + "_", 0) == 0) word.erase(0, prefix.size() + 1);
  return word == "UNSPECIFIED" ? std::string()
                               : absl::StrReplaceAll(absl::AsciiStrToLower(word), {{"_", " "}});
}

// Texts of a message and what is in it, one a line; bytes as hex with the names of what they are.
class Texts {
 public:
  Texts(EventNames& names, std::string& out) : names_(names), out_(out) {}

  void add(const Message& message, int depth = 0) {
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    for (const auto* field : fields) {
      const bool many = field->is_repeated();
      // Enough of a long list: a board's labels are 64 at most.
      const int n = many ? std::min(64, message.GetReflection()->FieldSize(message, field)) : 1;
      for (int i = 0; i < n; ++i) add_value(message, *field, many ? i : -1, depth);
    }
  }

 private:
  void add_value(const Message& m, const FieldDescriptor& f, int i, int depth) {
    const auto& r = *m.GetReflection();
    switch (f.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (depth < 6) add(i < 0 ? r.GetMessage(m, &f) : r.GetRepeatedMessage(m, &f, i), depth + 1);
        return;
      case FieldDescriptor::CPPTYPE_ENUM:
        return line(state_word(*(i < 0 ? r.GetEnum(m, &f) : r.GetRepeatedEnum(m, &f, i))));
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string raw = i < 0 ? r.GetString(m, &f) : r.GetRepeatedString(m, &f, i);
        if (f.type() != FieldDescriptor::TYPE_BYTES) return line(raw);
        if (raw.size() > 64) return;
        line(to_hex(reinterpret_cast<const std::uint8_t*>(raw.data()), raw.size()));
        return line(names_.name(f.name(), raw));
      }
      default:
        return;  // numbers say nothing without their field
    }
  }
  void line(const std::string& text) {
    if (!text.empty()) absl::StrAppend(&out_, absl::AsciiStrToLower(text), "\n");
  }

  EventNames& names_;
  std::string& out_;
};

bool has(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
}

// Whether the board is named, itself or by one of its runs.
bool of_board(const Message& message, const std::string& uid, EventNames& names, int depth = 0) {
  const auto& r = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  r.ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->is_repeated()) continue;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (depth < 3 && of_board(r.GetMessage(message, field), uid, names, depth + 1)) return true;
    } else if (field->type() == FieldDescriptor::TYPE_BYTES) {
      const std::string id = r.GetString(message, field);
      if ((field->name() == "board_uid" || field->name() == "uid") && id == uid) return true;
      if (field->name() == "run_id" && names.board_of_run(id) == uid) return true;
    }
  }
  return false;
}

}  // namespace

const std::string& EventNames::name(const std::string& field, const std::string& id) {
  const auto [it, fresh] = known_.try_emplace({field, id});
  if (fresh) it->second = read(field, id);
  return it->second;
}

const std::string& EventNames::board_of_run(const std::string& id) {
  const auto [it, fresh] = known_.try_emplace({"board of run", id});
  if (!fresh) return it->second;
  if (const auto uuid = Uuid::from_bytes(id); uuid.ok())
    if (const auto run = store_.run(*uuid); run.ok()) it->second = run->spec.board_uid.str();
  return it->second;
}

std::string EventNames::read(const std::string& field, const std::string& id) {
  if (field == "board_uid") {
    const auto uid = BoardUid::from_bytes(id);
    const auto board = uid.ok() ? store_.board(*uid) : uid.status();
    return board.ok() ? board->name : std::string();
  }
  if (field == "run_id") {
    const auto uuid = Uuid::from_bytes(id);
    const auto run = uuid.ok() ? store_.run(*uuid) : uuid.status();
    if (!run.ok()) return {};
    return absl::StrCat(run->spec.name, "\n", name("board_uid", run->spec.board_uid.str()));
  }
  if (field == "dataset_id") {
    const auto uuid = Uuid::from_bytes(id);
    const auto dataset = uuid.ok() ? store_.dataset(*uuid) : uuid.status();
    return dataset.ok() ? dataset->name : std::string();
  }
  if (field == "model_hash") {
    const auto hash = Hash::from_bytes(id);
    const auto model = hash.ok() ? store_.model(*hash) : hash.status();
    return model.ok() ? model->name : std::string();
  }
  return {};
}

std::string event_kind(const v1::Event& event) {
  const auto* what = v1::Event::descriptor()->FindOneofByName("what");
  const auto* field = event.GetReflection()->GetOneofFieldDescriptor(event, what);
  return field == nullptr ? std::string() : field->name();
}

bool is_problem(const v1::Event& event) {
  switch (event.what_case()) {
    case v1::Event::kWarning:
      return true;
    case v1::Event::kAlert:
      return event.alert().resolve_time_us() == 0;
    case v1::Event::kBoard:
      return event.board().status() == v1::BOARD_STATUS_OFFLINE ||
             event.board().status() == v1::BOARD_STATUS_QUARANTINED;
    case v1::Event::kRunEvent:
      return event.run_event().to() == v1::RUN_STATE_FAILED ||
             event.run_event().to() == v1::RUN_STATE_WAITING_BOARD;
    case v1::Event::kEpoch:
      return event.epoch().alarms() != 0;
    case v1::Event::kJob:
      return event.job().state() == v1::Job::STATE_FAILED;
    case v1::Event::kCampaignEvent:
      return event.campaign_event().to() == v1::CAMPAIGN_STATE_FAILED;
    default:
      return false;
  }
}

bool matches(const v1::Event& event, const EventSearch& search, EventNames& names) {
  const std::string kind = event_kind(event);
  if (!search.kinds.empty() && search.kinds.count(kind) == 0) return false;
  if (search.problems && !is_problem(event)) return false;
  if (!search.board_uid.empty() && !of_board(event, search.board_uid, names)) return false;
  if (search.words.with.empty() && search.words.without.empty()) return true;
  std::string text = absl::StrReplaceAll(kind, {{"_", " "}}) + "\n";
  Texts(names, text).add(event);
  return std::all_of(search.words.with.begin(), search.words.with.end(),
                     [&](const auto& word) { return has(text, word); }) &&
         std::none_of(search.words.without.begin(), search.words.without.end(),
                      [&](const auto& word) { return has(text, word); });
}

}  // namespace odt::api
