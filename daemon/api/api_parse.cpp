#include "api/api_convert.h"
#include "api/errors.h"
#include "api/parse_parts.h"

// The way in: every field of a request is checked here, and an error names it.
namespace odt::api {
namespace {

Result<Hash> read_hash(const std::string& raw, std::string_view field) {
  if (raw.size() != Hash::kSize)
    return bad_field(field, std::to_string(raw.size()) + " bytes; a SHA-256 has 32");
  return Hash::from_bytes(raw);
}

Result<model::HyperParams> read_enums(const v1::HyperParams& in, const std::string& field) {
  model::HyperParams out;
  ODT_ASSIGN(out.policy, enum_field<model::Policy>(in.policy(), v1::Policy_IsValid(in.policy()),
                                                   field + "policy"));
  ODT_ASSIGN(out.rule_set,
             enum_field<model::RuleSet>(in.rule_set(), v1::RuleSet_IsValid(in.rule_set()),
                                        field + "rule_set"));
  ODT_ASSIGN(out.rounding,
             enum_field<model::Rounding>(in.rounding(), v1::Rounding_IsValid(in.rounding()),
                                         field + "rounding"));
  ODT_ASSIGN(out.loss, enum_field<model::LossKind>(in.loss(), v1::LossKind_IsValid(in.loss()),
                                                   field + "loss"));
  ODT_ASSIGN(out.shift_source, enum_field<model::ShiftSource>(
                                   in.shift_source(), v1::ShiftSource_IsValid(in.shift_source()),
                                   field + "shift_source"));
  ODT_ASSIGN(out.apt,
             enum_field<model::AptMode>(in.apt(), v1::AptMode_IsValid(in.apt()), field + "apt"));
  return out;
}

Result<std::vector<std::uint32_t>> read_list(
    const google::protobuf::RepeatedField<std::uint32_t>& in, int most, std::uint32_t high,
    const std::string& field) {
  if (in.size() > most)
    return bad_field(field, std::to_string(in.size()) + " values; at most " + std::to_string(most));
  for (const auto v : in) ODT_TRY(in_range(v, 0u, high, field));
  return std::vector<std::uint32_t>(in.begin(), in.end());
}

// Rules 1.12 and 1.13.
Status read_precision(const v1::HyperParams& in, const std::string& field,
                      model::HyperParams& out) {
  ODT_ASSIGN(out.layer_k, read_list(in.layer_k(), 16, 16, field + "layer_k"));
  ODT_ASSIGN(out.lr_m, read_list(in.lr_m(), 3, 32767, field + "lr_m"));
  if (in.has_apt_k_max()) {
    ODT_TRY(in_range(in.apt_k_max(), 2u, 16u, field + "apt_k_max"));
    out.apt_k_max = in.apt_k_max();
  }
  if (in.has_apt_t_min_q8()) {
    ODT_TRY(in_range(in.apt_t_min_q8(), 1u, 65535u, field + "apt_t_min_q8"));
    out.apt_t_min_q8 = in.apt_t_min_q8();
  }
  if (in.has_apt_t_max_q8()) {
    ODT_TRY(in_range(in.apt_t_max_q8(), 0u, 65535u, field + "apt_t_max_q8"));
    out.apt_t_max_q8 = in.apt_t_max_q8();
  }
  if (in.has_lr_s()) {
    ODT_TRY(in_range(in.lr_s(), 0u, 40u, field + "lr_s"));
    out.lr_s = in.lr_s();
  }
  if (in.has_apt_offsets()) out.apt_offsets = in.apt_offsets();
  if (in.has_blocked()) out.blocked = in.blocked();
  return absl::OkStatus();
}

}  // namespace

Result<BoardUid> uid_field(const std::string& raw, std::string_view field) {
  if (raw.size() < 8 || raw.size() > 16)
    return bad_field(field, std::to_string(raw.size()) + " bytes; a board's uid has 8 to 16",
                     "list the boards to see their uids");
  return BoardUid::from_bytes(raw);
}

Result<Hash> hash_field(const std::string& raw, std::string_view field) {
  ODT_ASSIGN(const Hash hash, read_hash(raw, field));
  if (hash.is_zero()) return bad_field(field, "all zero");
  return hash;
}

Result<Hash> optional_hash_field(const std::string& raw, std::string_view field) {
  if (raw.empty()) return Hash{};
  return read_hash(raw, field);
}

Result<Uuid> uuid_field(const std::string& raw, std::string_view field) {
  if (raw.size() != Uuid::kSize)
    return bad_field(field, std::to_string(raw.size()) + " bytes; an id has 16");
  ODT_ASSIGN(const Uuid id, Uuid::from_bytes(raw));
  if (id.is_zero()) return bad_field(field, "all zero");
  return id;
}

Result<std::string> text_field(const std::string& raw, std::string_view field, std::size_t max,
                               bool required) {
  if (raw.empty() && required) return bad_field(field, "empty");
  if (raw.size() > max)
    return bad_field(field, std::to_string(raw.size()) + " bytes; limit " + std::to_string(max));
  if (clean_text(raw) != raw || raw.find('\t') != std::string::npos)
    return bad_field(field, "holds control characters or is not UTF-8");
  if (!raw.empty() && (raw.front() == ' ' || raw.back() == ' '))
    return bad_field(field, "begins or ends with a blank");
  return raw;
}

Result<model::HyperParams> from_proto(const v1::HyperParams& in, const std::string& prefix) {
  const std::string field = prefix + ".";
  ODT_ASSIGN(model::HyperParams out, read_enums(in, field));
  if (in.mu_weight_size() != 0 && in.mu_weight_size() != 1 && in.mu_weight_size() != 3)
    return bad_field(field + "mu_weight", std::to_string(in.mu_weight_size()) +
                                              " values; give one, or three (by thirds)");
  for (const auto mu : in.mu_weight()) {
    ODT_TRY(in_range<int>(mu, -12, 4, field + "mu_weight"));
    out.mu_weight.push_back(mu);
  }
  if (in.has_mu_offset()) {
    ODT_TRY(in_range<int>(in.mu_offset(), -8, 7, field + "mu_offset"));
    out.mu_offset = in.mu_offset();
  }
  if (in.has_k()) {
    ODT_TRY(in_range(in.k(), 2u, 16u, field + "k"));
    out.k = in.k();
  }
  if (in.has_batch()) {
    ODT_TRY(in_range(in.batch(), 1u, 4096u, field + "batch"));
    out.batch = in.batch();
  }
  if (in.has_epochs()) {
    ODT_TRY(in_range(in.epochs(), 1u, 100000u, field + "epochs"));
    out.epochs = in.epochs();
  }
  if (in.has_telemetry_every()) {
    ODT_TRY(in_range(in.telemetry_every(), 1u, 1000000u, field + "telemetry_every"));
    out.telemetry_every = in.telemetry_every();
  }
  if (in.has_checkpoint_epochs()) {
    ODT_TRY(in_range(in.checkpoint_epochs(), 1u, 100000u, field + "checkpoint_epochs"));
    out.checkpoint_epochs = in.checkpoint_epochs();
  }
  if (in.has_commit_every()) {
    ODT_TRY(in_range(in.commit_every(), 1u, 1000000000u, field + "commit_every"));
    out.commit_every = in.commit_every();
  }
  if (in.has_dead_zone()) out.dead_zone = in.dead_zone();
  if (in.has_order_seed()) out.order_seed = in.order_seed();
  if (in.has_sr_seed()) out.sr_seed = in.sr_seed();
  if (in.has_guard()) out.guard = in.guard();
  if (in.has_streamed()) out.streamed = in.streamed();
  if (in.has_best_on_host()) out.best_on_host = in.best_on_host();
  if (in.has_frozen()) out.frozen = in.frozen();
  ODT_TRY(read_precision(in, field, out));
  return out;
}

Result<model::RunSpec> from_proto(const v1::RunSpec& in) {
  model::RunSpec out;
  ODT_ASSIGN(out.board_uid, uid_field(in.board_uid(), "spec.board_uid"));
  ODT_ASSIGN(out.model_hash, hash_field(in.model_hash(), "spec.model_hash"));
  out.captured = in.captured();
  if (out.captured && !in.dataset_id().empty())
    return bad_field("spec.dataset_id", "given", "captured: the samples are the board's own");
  if (!out.captured) {
    ODT_ASSIGN(out.dataset_id, uuid_field(in.dataset_id(), "spec.dataset_id"));
  }
  ODT_ASSIGN(out.hyper, from_proto(in.hyper(), "spec.hyper"));
  ODT_ASSIGN(out.start_snapshot, optional_hash_field(in.start_snapshot(), "spec.start_snapshot"));
  out.evaluate = in.evaluate();
  ODT_ASSIGN(out.name, text_field(in.name(), "spec.name", 64, false));
  ODT_TRY(in_range(in.resume_deadline_s(), 0u, 31u * 86400u, "spec.resume_deadline_s"));
  out.resume_deadline_s = in.resume_deadline_s();
  ODT_TRY(in_range(in.priority(), -100, 100, "spec.priority"));
  out.priority = in.priority();
  return out;
}

namespace {

// One of the words; the first stands for an empty field where it is empty itself.
Result<std::string> word_field(const std::string& text, const char* field,
                               std::initializer_list<const char*> words) {
  std::string known;
  for (const char* word : words) {
    if (text == word) return text;
    if (*word != '\0') known += std::string(known.empty() ? "" : ", ") + word;
  }
  return bad_field(field, "'" + clean_text(text) + "'", "known: " + known);
}

Status columns_field(const google::protobuf::RepeatedPtrField<std::string>& in, const char* field,
                     std::vector<std::string>& out) {
  if (in.size() > 1024) return bad_field(field, std::to_string(in.size()) + " columns; limit 1024");
  for (const auto& column : in) {
    ODT_ASSIGN(out.emplace_back(), text_field(column, field, 128, true));
  }
  return absl::OkStatus();
}

Status positive_field(double value, const char* field, double limit, double& out) {
  if (!(value >= 0 && value <= limit))
    return bad_field(field, std::to_string(value), "0 to " + std::to_string(limit));
  out = value;
  return absl::OkStatus();
}

Status series_fields(const v1::ImportOptions& in, jobs::ImportOptions& out) {
  ODT_TRY(positive_field(in.window_s(), "options.window_s", 86400, out.window_s));
  ODT_TRY(positive_field(in.stride_s(), "options.stride_s", 86400, out.stride_s));
  ODT_TRY(positive_field(in.sample_rate(), "options.sample_rate", 1e6, out.sample_rate));
  out.window_steps = in.window_steps();
  out.stride_steps = in.stride_steps();
  out.channels = in.channels();
  ODT_ASSIGN(out.features, text_field(in.features(), "options.features", 256, false));
  ODT_ASSIGN(out.short_recordings, word_field(in.short_recordings(), "options.short_recordings",
                                              {"", "refuse", "pad", "drop"}));
  ODT_ASSIGN(out.series, word_field(in.series(), "options.series", {"", "steps", "rows"}));
  ODT_ASSIGN(out.pattern, text_field(in.pattern(), "options.pattern", 256, false));
  ODT_ASSIGN(out.only, text_field(in.only(), "options.only", 1024, false));
  return absl::OkStatus();
}

Status table_fields(const v1::ImportOptions& in, jobs::ImportOptions& out) {
  ODT_ASSIGN(out.missing,
             word_field(in.missing(), "options.missing", {"", "refuse", "drop", "mean", "zero"}));
  ODT_ASSIGN(out.label_column, text_field(in.label_column(), "options.label_column", 128, false));
  ODT_TRY(columns_field(in.target_columns(), "options.target_columns", out.target_columns));
  ODT_TRY(columns_field(in.drop_columns(), "options.drop_columns", out.drop_columns));
  ODT_ASSIGN(out.group_column, text_field(in.group_column(), "options.group_column", 128, false));
  ODT_ASSIGN(out.x_key, text_field(in.x_key(), "options.x_key", 128, false));
  ODT_ASSIGN(out.y_key, text_field(in.y_key(), "options.y_key", 128, false));
  return absl::OkStatus();
}

}  // namespace

Result<jobs::ImportOptions> from_proto(const v1::ImportOptions& in) {
  jobs::ImportOptions out;
  ODT_ASSIGN(out.name, text_field(in.name(), "options.name", 64, true));
  ODT_ASSIGN(out.format, word_field(in.format(), "options.format",
                                    {"idx", "csv", "npy", "npz", "wav", "edge-impulse", "png"}));
  if (in.resize_size() != 0 && in.resize_size() != 2)
    return bad_field("options.resize", std::to_string(in.resize_size()) + " values",
                     "give height and width, or nothing");
  for (const auto side : in.resize()) {
    ODT_TRY(in_range(side, 1u, 1024u, "options.resize"));
    out.resize.push_back(side);
  }
  ODT_ASSIGN(out.transform, text_field(in.transform(), "options.transform", 64, false));
  out.train = in.train();
  out.heldout = in.heldout();
  out.test = in.test();
  out.seed = in.seed();
  out.skip = in.skip();
  if (in.split_size() != 0 && in.split_size() != 3)
    return bad_field("options.split", std::to_string(in.split_size()) + " values",
                     "give the parts of train, held-out and test, or nothing");
  for (const auto part : in.split()) {
    ODT_TRY(in_range(part, 0u, 1000u, "options.split"));
    out.split.push_back(part);
  }
  out.stratify = in.stratify();
  ODT_TRY(table_fields(in, out));
  ODT_TRY(series_fields(in, out));
  return out;
}

}  // namespace odt::api
