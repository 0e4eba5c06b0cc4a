// What odtd keeps on disk: room, trash, backup; a run's raw telemetry.
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/exit_code.h"
#include "cli/json.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "cli/resolve.h"
#include "odt/api/v1/storage.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;

Status show_storage(Context& context) {
  ODT_ASSIGN(const auto s, context.call<v1::GetStorageResponse>(v1::GetStorageRequest()));
  if (context.json) {
    context.print_json(s);
    return {};
  }
  const char* const kStates[] = {"?", "ok", "LOW", "FULL"};
  Table table({"disk", kStates[s.state() >= 0 && s.state() <= 3 ? s.state() : 0]});
  if (!s.text().empty()) table.add({"", s.text()});
  table.add({"free", size_text(s.disk_free_bytes())});
  table.add({"control.db", size_text(s.control_bytes())});
  table.add({"telemetry", absl::StrCat(size_text(s.telemetry_used_bytes()), " of ",
                                       size_text(s.telemetry_quota_bytes()), ", ",
                                       s.telemetry_frames(), " records")});
  table.add({"blobs", absl::StrCat(size_text(s.blob_bytes()), " in ", s.blob_count())});
  table.add({"runs", absl::StrCat(s.runs_pinned(), " pinned, ", s.runs_thinned(), " thinned")});
  table.add({"trash", std::to_string(s.trash_count())});
  context.print(table);
  return {};
}

Result<google::protobuf::RepeatedPtrField<v1::TrashItem>> trash_items(Context& context) {
  ODT_ASSIGN(Client * client, context.client());
  return client->list<v1::ListTrashResponse>(v1::ListTrashRequest(),
                                             [](auto& r) { return r.items(); });
}

Status list_trash(Context& context) {
  ODT_ASSIGN(const auto items, trash_items(context));
  auto out = nlohmann::ordered_json::array();
  Table table({"KIND", "KEY", "NAME", "DELETED", "BY", "GONE ON"});
  for (const auto& item : items) {
    out.push_back(to_json(item));
    table.add({item.kind(), hex(item.key()).substr(0, 12), item.name(),
               date_text(item.trashed_time_us()), item.trashed_by(),
               date_text(item.purge_time_us())});
  }
  if (context.json) context.print_json(out);
  context.print(table);
  return {};
}

Result<v1::TrashItem> find_trash(Context& context, const std::string& word) {
  ODT_ASSIGN(const auto items, trash_items(context));
  std::vector<Candidate> candidates;
  for (const auto& item : items) candidates.push_back({item.key(), item.name(), {}});
  ODT_TRY(only_one_named("trash item", word, candidates));  // a purge is for good
  ODT_ASSIGN(const std::size_t index, resolve("trash item", word, candidates));
  return items[static_cast<int>(index)];
}

Status restore_trash(Context& context, const std::string& word) {
  ODT_ASSIGN(const v1::TrashItem item, find_trash(context, word));
  v1::UntrashRequest request;
  request.set_kind(item.kind());
  request.set_key(item.key());
  ODT_TRY(context.call<v1::UntrashResponse>(request).status());
  if (context.json) context.print_json(item);
  context.say(item.kind() + " " + hex(item.key()).substr(0, 12) + " is back");
  return {};
}

Status purge_trash(Context& context, const std::string& word, std::uint32_t days, bool dry_run) {
  v1::PurgeRequest request;
  request.set_dry_run(dry_run);
  request.set_older_than_s(std::uint64_t{days} * 24 * 3600);
  if (!word.empty()) {
    ODT_ASSIGN(const v1::TrashItem item, find_trash(context, word));
    request.set_kind(item.kind());
    request.set_key(item.key());
  }
  ODT_ASSIGN(const auto r, context.call<v1::PurgeResponse>(request));
  if (context.json) context.print_json(r);
  context.say(absl::StrCat(dry_run ? "would purge " : "purged ", r.items(),
                           r.items() == 1 ? " thing: " : " things: ", size_text(r.bytes_freed()),
                           " of ", r.blobs(), " blobs, ", r.telemetry_frames(), " records"));
  return {};
}

// Where streamed bytes go: a file that appears whole, a device or pipe, or standard output ("-").
class ByteSink {
 public:
  ByteSink(Context& context, std::string path) : context_(context), path_(std::move(path)) {
    if (path_.empty() || path_ == "-") return;
    // What is there and no file must not be replaced by one; a directory does not open.
    std::error_code ec;
    if (!std::filesystem::exists(path_, ec) || std::filesystem::is_regular_file(path_, ec))
      part_ = path_ + ".part";
    file_.open(part_.empty() ? path_ : part_, std::ios::binary | std::ios::trunc);
  }
  bool ready() const { return path_ == "-" || file_.is_open(); }
  bool write(const std::string& data) {
    std::ostream& out = path_ == "-" ? context_.io.out : file_;
    out.write(data.data(), static_cast<std::streamsize>(data.size()));
    bytes_ += data.size();
    return static_cast<bool>(out);
  }
  Status finish(const Status& status) {
    std::ostream& out = path_ == "-" ? context_.io.out : file_;
    out.flush();
    if (path_ != "-") file_.close();
    bool written = static_cast<bool>(out);
    if (!part_.empty()) {
      if (status.ok() && written) written = std::rename(part_.c_str(), path_.c_str()) == 0;
      if (!status.ok() || !written) std::remove(part_.c_str());
    }
    if (written) return status;
    return with_exit(absl::ResourceExhaustedError("'" + path_ + "' cannot be written"),
                     kExitFailed);
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  Context& context_;
  std::string path_, part_;
  std::ofstream file_;
  std::uint64_t bytes_ = 0;
};

Status write_backup(Context& context, const std::string& path) {
  ODT_ASSIGN(Client * client, context.client());
  ByteSink sink(context, path);
  if (!sink.ready()) return absl::InvalidArgumentError("'" + path + "' cannot be written");
  Status status = client->backup([&](const v1::BackupResponse& r) {
    if (r.total_bytes() != 0)
      context.progress_bar(static_cast<std::uint32_t>(std::min<std::uint64_t>(
                               1000, sink.bytes() * 1000 / r.total_bytes())),
                           "backup");
    return sink.write(r.data());
  });
  context.end_progress();
  status = sink.finish(status);
  if (status.ok() && path != "-")
    context.say(absl::StrCat(path, ": ", size_text(sink.bytes()), "; odtd restore ", path,
                             " --data DIR reads it"));
  return status;
}

struct RunExport {
  std::string run, format = "csv", out = "-";
  std::uint32_t attempt = 0, first = 0, last = 0;
};

Status export_run(Context& context, const RunExport& o) {
  ODT_ASSIGN(const v1::Run run, find_run(context, o.run));
  ODT_ASSIGN(Client * client, context.client());
  v1::ExportTelemetryRequest request;
  request.set_run_id(run.id());
  request.set_format(o.format == "csv" ? v1::EXPORT_FORMAT_CSV : v1::EXPORT_FORMAT_JSONL);
  request.set_attempt(o.attempt);
  request.set_first_step(o.first);
  request.set_last_step(o.last);
  ByteSink sink(context, o.out);
  if (!sink.ready()) return absl::InvalidArgumentError("'" + o.out + "' cannot be written");
  ODT_TRY(sink.finish(client->export_telemetry(
      request, [&](const v1::ExportTelemetryResponse& r) { return sink.write(r.data()); })));
  if (o.out != "-") context.say(absl::StrCat(o.out, ": ", size_text(sink.bytes())));
  return {};
}

Status pin_run(Context& context, const std::string& word, bool pinned) {
  ODT_ASSIGN(const v1::Run run, find_run(context, word));
  v1::PinRunRequest request;
  request.set_run_id(run.id());
  request.set_pinned(pinned);
  ODT_ASSIGN(const auto response, context.call<v1::PinRunResponse>(request));
  if (context.json) context.print_json(response.run());
  context.say("run " + hex(run.id()) + (pinned ? " keeps its raw telemetry" : " is not pinned"));
  return {};
}

Status thin_run(Context& context, const std::string& word) {
  ODT_ASSIGN(const v1::Run run, find_run(context, word));
  v1::ThinRunRequest request;
  request.set_run_id(run.id());
  ODT_ASSIGN(const auto r, context.call<v1::ThinRunResponse>(request));
  if (context.json) context.print_json(r);
  context.say(absl::StrCat("run ", hex(run.id()), ": ", size_text(r.bytes_freed()),
                           " of raw telemetry freed; rollups stay of ",
                           r.storage().thinned_frames(), " records"));
  return {};
}

Status delete_run(Context& context, const std::string& word) {
  ODT_ASSIGN(const v1::Run run, find_run(context, word));
  v1::TrashRequest request;
  request.set_kind("run");
  request.set_key(run.id());
  ODT_ASSIGN(const auto r, context.call<v1::TrashResponse>(request));
  if (context.json) context.print_json(r.item());
  context.say("run " + hex(run.id()) + " is in the trash; odtctl storage restore " +
              hex(run.id()).substr(0, 12) + " brings it back");
  return {};
}

}  // namespace

void add_storage(CLI::App& app, Context& context) {
  CLI::App* storage = app.add_subcommand("storage", "Disk and trash: show, trash, restore, purge");
  storage->require_subcommand(1);
  CLI::App* sub = storage->add_subcommand("show", "Room that is taken and left");
  sub->callback([&context] { context.action = [&context] { return show_storage(context); }; });
  sub = storage->add_subcommand("trash", "What was deleted and can be restored");
  sub->callback([&context] { context.action = [&context] { return list_trash(context); }; });
  const auto word = std::make_shared<std::string>();
  sub = storage->add_subcommand("restore", "Bring a deleted thing back");
  sub->add_option("THING", *word, "Its name, or the beginning of its key")->required();
  sub->callback([&context, word] {
    context.action = [&context, word] { return restore_trash(context, *word); };
  });
  const auto days = std::make_shared<std::uint32_t>(0);
  const auto dry_run = std::make_shared<bool>(false);
  sub = storage->add_subcommand("purge", "Empty the trash for good, and free what nothing uses");
  sub->add_option("THING", *word, "Only this one");
  sub->add_option("--older-than-days", *days, "Only what was deleted before");
  sub->add_flag("--dry-run", *dry_run, "Only say what would go");
  sub->callback([&context, word, days, dry_run] {
    context.action = [&context, word, days, dry_run] {
      return purge_trash(context, *word, *days, *dry_run);
    };
  });
  sub = app.add_subcommand("backup", "Everything odtd keeps into one file, while it works");
  sub->add_option("FILE", *word, "A tar file; -: standard output")->required();
  sub->callback([&context, word] {
    context.action = [&context, word] { return write_backup(context, *word); };
  });
}

void add_run_storage(CLI::App& run, Context& context) {
  const auto o = std::make_shared<RunExport>();
  CLI::App* sub = run.add_subcommand("export", "Every raw record of its telemetry");
  sub->add_option("RUN", o->run, "Beginning of the id, or name")->required();
  sub->add_option("--format", o->format, "csv or jsonl")->check(CLI::IsMember({"csv", "jsonl"}));
  sub->add_option("--out", o->out, "File; default: standard output");
  sub->add_option("--attempt", o->attempt, "Default: the newest record of every step");
  sub->add_option("--first-step", o->first, "From this step on");
  sub->add_option("--last-step", o->last, "Up to this step; 0: to the end");
  sub->callback(
      [&context, o] { context.action = [&context, o] { return export_run(context, *o); }; });
  const auto verb = [&](const char* name, const char* help, auto action) {
    const auto word = std::make_shared<std::string>();
    CLI::App* v = run.add_subcommand(name, help);
    v->add_option("RUN", *word, "Beginning of the id, or name")->required();
    v->callback([&context, word, action] {
      context.action = [&context, word, action] { return action(context, *word); };
    });
  };
  verb("pin", "Keep its raw telemetry whatever room is left",
       [](Context& c, const std::string& w) { return pin_run(c, w, true); });
  verb("unpin", "Let its raw telemetry go when room is short",
       [](Context& c, const std::string& w) { return pin_run(c, w, false); });
  verb("thin", "Drop its raw telemetry now; rollups stay", thin_run);
  verb("delete", "Into the trash", delete_run);
}

}  // namespace odt::cli
