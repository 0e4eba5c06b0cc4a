#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/ids.h"
#include "base/output_path.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/follow.h"
#include "cli/http_get.h"
#include "cli/json.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "cli/upload.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace fs = std::filesystem;
namespace v1 = api::v1;

std::string aliases_text(const v1::Snapshot& s) {
  std::string out;
  for (const auto& alias : s.aliases()) out += (out.empty() ? "" : ",") + alias;
  return out.empty() ? "-" : out;
}

std::string heldout_text(const v1::Snapshot& s) {
  if (!s.has_heldout_loss()) return accuracy_text(s.heldout());
  return "loss " + loss_text(s.heldout_loss());  // of a sample
}

void show_snapshot(Context& context, const v1::Snapshot& s) {
  if (context.json) return context.print_json(s);
  Table table({"snapshot", hex(s.hash())});
  table.add({"aliases", aliases_text(s)});
  table.add({"model", hex(s.model_hash())});
  table.add({"board", s.board_uid().empty() ? "-" : hex(s.board_uid())});
  table.add({"run", s.run_id().empty() ? "-" : hex(s.run_id())});
  table.add({"step", absl::StrCat(s.step(), " of attempt ", s.attempt())});
  table.add({"held-out", heldout_text(s)});
  table.add({"size", size_text(s.bytes())});
  table.add({"how", s.origin().empty() ? "-" : s.origin()});
  table.add({"parent", s.parent().empty() ? "-" : hex(s.parent())});
  table.add({"chain", s.chain().empty() ? "-" : hex(s.chain())});
  table.add({"pinned", s.pinned() ? "yes" : "no"});
  table.add({"note", s.note().empty() ? "-" : s.note()});
  context.print(table);
}

Status list(Context& context, const std::string& filter) {
  ODT_ASSIGN(Client * client, context.client());
  v1::ListSnapshotsRequest request;
  request.set_filter(filter);
  ODT_ASSIGN(const auto all, client->list<v1::ListSnapshotsResponse>(
                                 request, [](auto& r) { return r.snapshots(); }));
  ODT_ASSIGN(const Names names, Names::read(context));
  auto out = nlohmann::ordered_json::array();
  Table table({"HASH", "ALIASES", "MODEL", "BOARD", "STEP", "HELD-OUT", "SIZE", "NOTE"});
  for (const auto& s : all) {
    out.push_back(to_json(s));
    table.add({hex(s.hash()).substr(0, 12), aliases_text(s), names.model(s.model_hash()),
               names.board(s.board_uid()), std::to_string(s.step()), heldout_text(s),
               size_text(s.bytes()), s.note()});
  }
  if (context.json) context.print_json(out);
  context.print(table);
  return {};
}

Status pull(Context& context, const std::string& word, const std::string& alias) {
  ODT_ASSIGN(const v1::Board board, find_board(context, word));
  v1::PullWeightsRequest request;
  request.set_board_uid(board.uid());
  request.set_alias(alias);
  ODT_ASSIGN(const auto response, context.call<v1::PullWeightsResponse>(request));
  show_snapshot(context, response.snapshot());
  return {};
}

Status push(Context& context, const std::string& file, const std::string& alias) {
  ODT_ASSIGN(const std::string blob, upload_file(context, file));
  v1::AddSnapshotRequest request;
  request.set_blob(blob);
  request.set_alias(alias);
  const auto response = context.call<v1::AddSnapshotResponse>(request);
  if (!response.ok()) return name_file(response.status(), file);
  show_snapshot(context, response->snapshot());
  return {};
}

Status alias(Context& context, const std::string& word, const std::string& name, bool remove) {
  ODT_ASSIGN(const v1::Snapshot snapshot, find_snapshot(context, word));
  v1::UpdateSnapshotRequest request;
  request.set_hash(snapshot.hash());
  if (remove)
    request.add_remove_aliases(name);
  else
    request.add_add_aliases(name);
  ODT_ASSIGN(const auto response, context.call<v1::UpdateSnapshotResponse>(request));
  show_snapshot(context, response.snapshot());
  return {};
}

// Whole or not at all: written beside, then renamed.
Status write_whole(const std::string& asked, const std::string& content) {
  ODT_ASSIGN(const std::string path, output_path(asked));
  const std::string temporary = absl::StrCat(path, ".tmp.", ::getpid());
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  out << content;
  out.close();
  std::error_code ec;
  if (out) fs::rename(temporary, path, ec);
  if (out && !ec) return {};
  fs::remove(temporary, ec);
  return absl::FailedPreconditionError(clean(path) + ": cannot be written; check folder and disk");
}

// A blob of odtd, over its HTTP port, checked against its hash.
Result<std::string> fetch_blob(Context& context, const std::string& hash) {
  ODT_ASSIGN(const auto info, context.call<v1::GetInfoResponse>(v1::GetInfoRequest()));
  if (info.http_url().empty())
    return absl::FailedPreconditionError("odtd has no HTTP port; set http.listen in odtd.toml");
  std::string url = info.http_url();
  while (url.ends_with('/')) url.pop_back();
  ODT_ASSIGN(const std::string address, choose_address(context.address_given));
  ODT_ASSIGN(const Credentials own, choose_credentials(address, context.credential_files));
  // Where odtd listens everywhere it is where the other calls go to.
  const bool local = address.starts_with("unix:");
  const std::string host = local ? "localhost" : address.substr(0, address.rfind(':'));
  for (const char* all : {"://0.0.0.0:", "://[::]:"})
    if (const auto at = url.find(all); at != std::string::npos)
      url.replace(at, std::string_view(all).size(), "://" + host + ":");
  ODT_ASSIGN(std::string content, http_get(url + "/v1/blobs/" + hex(hash), own));
  const Hash got = sha256(content);
  if (got.str() != hash)
    return absl::DataLossError("received " + got.hex() + ", expected " + hex(hash));
  return content;
}

struct ExportOptions {
  std::string snapshot, file, out, board, format;
  bool onnx = false, exact = false;
};

// By --format, else by the name of the file.
Result<std::string> format_of(const ExportOptions& o) {
  if (o.onnx && !o.format.empty() && o.format != "onnx")
    return absl::InvalidArgumentError("--onnx and --format " + o.format + " contradict each other");
  if (o.onnx) return std::string("onnx");
  if (!o.format.empty()) return o.format;
  const std::pair<const char*, const char*> endings[] = {
      {".onnx", "onnx"}, {".npz", "npz"}, {".h", "c"}, {".json", "json"}};
  for (const auto& [ending, format] : endings)
    if (o.file.ends_with(ending)) return std::string(format);
  return std::string("odtw");
}

// A blob of that format; of odt_weights the snapshot itself is one.
Result<std::string> make_file(Context& context, const std::string& snapshot,
                              const std::string& format) {
  if (format == "odtw") return snapshot;
  v1::ExportSnapshotRequest request;
  request.set_snapshot(snapshot);
  request.set_format(format == "npz" ? v1::WEIGHTS_FORMAT_NPZ
                     : format == "c" ? v1::WEIGHTS_FORMAT_C
                                     : v1::WEIGHTS_FORMAT_JSON);
  ODT_ASSIGN(const auto made, context.call<v1::ExportSnapshotResponse>(request));
  return made.blob();
}

// The hash of the ONNX file that an EXPORT job makes of a snapshot; its warnings are told.
Result<std::string> make_onnx(Context& context, const std::string& snapshot, bool exact) {
  v1::ExportOnnxRequest request;
  request.set_snapshot(snapshot);
  request.set_exact(exact);
  ODT_ASSIGN(const auto started, context.call<v1::ExportOnnxResponse>(request));
  ODT_ASSIGN(const v1::Job job, wait_for_job(context, started.job()));
  const auto result = nlohmann::json::parse(job.result_json(), nullptr, false);
  if (result.is_object() && result.contains("warnings") && result["warnings"].is_array())
    for (const auto& warning : result["warnings"])
      if (warning.is_string()) context.say("warning: " + warning.get<std::string>());
  return job.result_key();
}

Status export_file(Context& context, ExportOptions o) {
  if (!o.out.empty()) {
    if (!o.file.empty() || (!o.board.empty() && !o.snapshot.empty()))
      return absl::InvalidArgumentError("FILE or --output, not both");
    o.file = o.out;
  } else if (!o.board.empty()) {
    std::swap(o.snapshot, o.file);  // the only word is FILE
  }
  if (o.file.empty() || (o.board.empty() && o.snapshot.empty()))
    return absl::InvalidArgumentError(
        "weights export SNAPSHOT FILE, or weights export FILE --board BOARD (or -o FILE)");
  if (!o.board.empty() && !o.snapshot.empty())
    return absl::InvalidArgumentError("SNAPSHOT or --board, not both");
  ODT_ASSIGN(const std::string format, format_of(o));
  if (o.exact && format != "onnx") return absl::InvalidArgumentError("--exact is of --onnx");
  v1::Snapshot snapshot;
  if (o.board.empty()) {
    ODT_ASSIGN(snapshot, find_snapshot(context, o.snapshot));
  } else {
    ODT_ASSIGN(const v1::Board board, find_board(context, o.board));
    v1::PullWeightsRequest request;
    request.set_board_uid(board.uid());
    ODT_ASSIGN(const auto pulled, context.call<v1::PullWeightsResponse>(request));
    snapshot = pulled.snapshot();
  }
  std::string hash = snapshot.hash();
  if (format == "onnx") {
    ODT_ASSIGN(hash, make_onnx(context, snapshot.hash(), o.exact));
  } else {
    ODT_ASSIGN(hash, make_file(context, snapshot.hash(), format));
  }
  ODT_ASSIGN(const std::string content, fetch_blob(context, hash));
  ODT_TRY(write_whole(o.file, content));
  if (context.json)
    context.print_json(nlohmann::ordered_json{{"file", o.file},
                                              {"format", format},
                                              {"hash", hex(hash)},
                                              {"bytes", content.size()},
                                              {"snapshot", hex(snapshot.hash())}});
  context.say(absl::StrCat(o.file, "  ", size_text(content.size()), "  ", hex(hash)));
  return {};
}

}  // namespace

void add_weights(CLI::App& app, Context& context) {
  CLI::App* weights =
      app.add_subcommand("weights", "Snapshots of weights: pull, push, restore, ...");
  weights->require_subcommand(1);
  const auto word = std::make_shared<std::string>();
  const auto board = std::make_shared<std::string>();
  const auto text = std::make_shared<std::string>();
  const auto remove = std::make_shared<bool>(false);
  const auto act = [&context](CLI::App* sub, std::function<Status()> action) {
    sub->callback([&context, action] { context.action = action; });
  };
  CLI::App* sub = weights->add_subcommand("list", "All snapshots, newest first");
  sub->add_option("--filter", *text, "e.g. step=500");
  act(sub, [&context, text] { return list(context, *text); });

  sub = weights->add_subcommand("pull", "Read a board's weights now and keep them");
  sub->add_option("BOARD,--board", *board, "Name, or beginning of the uid")->required();
  sub->add_option("--alias", *text, "Name for the snapshot");
  act(sub, [&context, board, text] { return pull(context, *board, *text); });

  sub = weights->add_subcommand("push", "Keep an odt_weights file as a snapshot");
  sub->add_option("FILE", *word, "As 'weights export' writes it")->required();
  sub->add_option("--alias", *text, "Name for the snapshot");
  act(sub, [&context, word, text] { return push(context, *word, *text); });

  sub = weights->add_subcommand("show", "One snapshot");
  sub->add_option("SNAPSHOT", *word, "Alias, or beginning of the hash")->required();
  act(sub, [&context, word]() -> Status {
    ODT_ASSIGN(const v1::Snapshot snapshot, find_snapshot(context, *word));
    show_snapshot(context, snapshot);
    return {};
  });

  sub = weights->add_subcommand("alias", "Give a snapshot an alias; whoever had it loses it");
  sub->add_option("SNAPSHOT", *word, "Alias, or beginning of the hash")->required();
  sub->add_option("ALIAS", *text, "e.g. golden")->required();
  sub->add_flag("--remove", *remove, "Take it away instead");
  act(sub, [&context, word, text, remove] { return alias(context, *word, *text, *remove); });

  const auto o = std::make_shared<ExportOptions>();
  sub = weights->add_subcommand("export", "Write a snapshot, or what a board holds now, to a file");
  sub->add_option("SNAPSHOT", o->snapshot, "Alias, or beginning of the hash; none with --board");
  sub->add_option("FILE", o->file, "Where to");
  sub->add_option("--board", o->board, "Read this board's weights now");
  sub->add_option("-o,--output", o->out, "The same as FILE");
  sub->add_option("--format", o->format,
                  "npz (NumPy), c (header), json, onnx, odtw (odt_weights); default: by FILE's "
                  "ending .npz, .h, .json, .onnx, else odtw")
      ->check(CLI::IsMember({"npz", "c", "json", "onnx", "odtw"}));
  sub->add_flag("--onnx", o->onnx,
                "Into the ONNX file that the model was made of; so where FILE ends with .onnx");
  sub->add_flag("--exact", o->exact, "ONNX: refuse weights finer than 8 bits, do not round them");
  act(sub, [&context, o] { return export_file(context, *o); });
  add_snapshots(*weights, context);
}

}  // namespace odt::cli
