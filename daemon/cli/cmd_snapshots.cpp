// Snapshots beyond listing and pulling: where they come from, what differs, back to boards, out of
// the way.
#include <absl/strings/str_cat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/context.h"
#include "cli/json.h"
#include "cli/labels.h"
#include "cli/lookup.h"
#include "odt/api/v1/services.pb.h"

namespace odt::cli {
namespace {

namespace v1 = api::v1;
using Log = v1::ListSnapshotLogResponse;

constexpr int kCohortTimeout_s = 900;  // serial boards take minutes

std::string short_hash(const std::string& raw) {
  return raw.empty() ? "-" : hex(raw).substr(0, 12);
}

std::string link_word(Log::Link link) {
  switch (link) {
    case Log::LINK_OK:
      return "ok";
    case Log::LINK_BROKEN:
      return "BROKEN";
    case Log::LINK_CONTENT_LOST:
      return "CONTENT LOST";
    default:
      return "-";
  }
}

std::string end_text(const Log& log) {
  switch (log.end()) {
    case Log::END_MODEL:
      return "began with the model's own weights";
    case Log::END_UNKNOWN:
      return "what it came from is not known";
    case Log::END_DELETED:
      return "its parent " + short_hash(log.missing()) + " is not here any more";
    default:
      return "older ones: --limit";
  }
}

// Exit 1 where a link is broken.
Status show_log(Context& context, const std::string& word, std::uint32_t limit) {
  ODT_ASSIGN(const v1::Snapshot snapshot, find_snapshot(context, word));
  v1::ListSnapshotLogRequest request;
  request.set_hash(snapshot.hash());
  request.set_limit(limit);
  ODT_ASSIGN(const auto log, context.call<Log>(request));
  ODT_ASSIGN(const Names names, Names::read(context));
  Table table({"SNAPSHOT", "LINK", "STEP", "BOARD", "RUN", "HOW", "WHEN", "ALIASES"});
  bool broken = false;
  for (const auto& entry : log.entries()) {
    const auto& s = entry.snapshot();
    broken = broken || entry.link() == Log::LINK_BROKEN || entry.link() == Log::LINK_CONTENT_LOST;
    std::string aliases;
    for (const auto& alias : s.aliases()) aliases += (aliases.empty() ? "" : ",") + alias;
    table.add({short_hash(s.hash()), link_word(entry.link()), std::to_string(s.step()),
               names.board(s.board_uid()), short_hash(s.run_id()),
               s.origin().empty() ? "-" : s.origin(), clock_text(s.meta().create_time_us()),
               aliases.empty() ? "-" : aliases});
  }
  if (context.json) context.print_json(log);
  context.print(table);
  context.say(end_text(log));
  if (!broken) return {};
  return absl::DataLossError("the chain is not whole: a record or its weights were changed");
}

std::vector<std::string> diff_cells(const v1::WeightDiff& d, bool same_form) {
  const double mean =
      d.values() == 0 ? 0 : static_cast<double>(d.l1()) / static_cast<double>(d.values());
  return {std::to_string(d.values()), percent(d.changed(), d.values()), significant(mean),
          std::to_string(d.linf()), same_form ? std::to_string(d.hamming_bits()) : "-"};
}

void add_row(Table& table, std::vector<std::string> head, const v1::WeightDiff& diff,
             bool same_form) {
  const auto cells = diff_cells(diff, same_form);
  head.insert(head.end(), cells.begin(), cells.end());
  table.add(std::move(head));
}

Status show_diff(Context& context, const std::string& a, const std::string& b, bool channels) {
  v1::DiffSnapshotsRequest request;
  ODT_ASSIGN(const v1::Snapshot first, find_snapshot(context, a));
  ODT_ASSIGN(const v1::Snapshot second, find_snapshot(context, b));
  request.set_a(first.hash());
  request.set_b(second.hash());
  request.set_channels(channels);
  ODT_ASSIGN(const auto diff, context.call<v1::DiffSnapshotsResponse>(request));
  if (context.json) {
    context.print_json(diff);
    return {};
  }
  Table table({"LAYER", "PART", "K", "VALUES", "CHANGED", "MEAN |D|", "MAX |D|", "BITS"});
  bool all_alike = true;
  for (const auto& l : diff.layers()) {
    all_alike = all_alike && l.same_form();
    const std::string name = l.name().empty() ? absl::StrCat("layer ", l.layer()) : l.name();
    const std::string k =
        l.k_a() == l.k_b() ? absl::StrCat(l.k_a()) : absl::StrCat(l.k_a(), " | ", l.k_b());
    if (l.weights().values() != 0) add_row(table, {name, "weights", k}, l.weights(), l.same_form());
    add_row(table, {name, "offsets", ""}, l.offsets(), true);
    for (int c = 0; c < l.channels_size(); ++c)
      if (l.channels(c).changed() != 0)
        add_row(table, {"", absl::StrCat("channel ", c), ""}, l.channels(c), l.same_form());
  }
  add_row(table, {"all", "", ""}, diff.all(), all_alike);
  context.print(table);
  context.say(diff.all().changed() == 0 ? "the same weights"
                                        : "|D|: steps of the finer precision; BITS: Hamming "
                                          "distance of the stored values");
  return {};
}

struct RestoreOptions {
  std::string snapshot, board, boards;
  bool commit = false, dry_run = false;
};

Status restore_board(Context& context, const RestoreOptions& o, const v1::Snapshot& snapshot) {
  ODT_ASSIGN(const v1::Board board, find_board(context, o.board));
  v1::RestoreWeightsRequest request;
  request.set_board_uid(board.uid());
  request.set_snapshot(snapshot.hash());
  request.set_commit(o.commit);
  ODT_ASSIGN(const auto response, context.call<v1::RestoreWeightsResponse>(request));
  if (context.json) context.print_json(response);
  context.say(response.board().name() + " holds " + hex(snapshot.hash()));
  if (!response.saved().empty()) context.say("what it held is kept: " + hex(response.saved()));
  if (response.has_nvm())
    context.say(absl::StrCat("committed: number ", response.nvm().sequence(), ", ",
                             size_text(response.nvm().bytes())));
  return {};
}

Status restore(Context& context, const RestoreOptions& o) {
  if (o.board.empty() == o.boards.empty())
    return absl::InvalidArgumentError("--board BOARD or --boards QUERY");
  context.timeout_s = std::max(context.timeout_s, kCohortTimeout_s);
  ODT_ASSIGN(const v1::Snapshot snapshot, find_snapshot(context, o.snapshot));
  if (!o.board.empty() && !o.dry_run) return restore_board(context, o, snapshot);
  v1::RestoreCohortRequest request;
  request.set_snapshot(snapshot.hash());
  request.set_boards(o.boards);
  if (!o.board.empty()) {
    ODT_ASSIGN(const v1::Board board, find_board(context, o.board));
    request.add_board_uids(board.uid());
  }
  request.set_commit(o.commit);
  request.set_dry_run(o.dry_run);
  ODT_ASSIGN(const auto response, context.call<v1::RestoreCohortResponse>(request));
  ODT_ASSIGN(const Names names, Names::read(context));
  Table table({"BOARD", o.dry_run ? "WOULD BE" : "OUTCOME", "KEPT BEFORE", "COMMIT", "WHY"});
  int left = 0;
  for (const auto& b : response.boards()) {
    const bool good = b.outcome() == v1::BoardRestore::OUTCOME_DONE ||
                      b.outcome() == v1::BoardRestore::OUTCOME_HELD_IT;
    if (!good) ++left;
    table.add({names.board(b.board_uid()),
               without_prefix(v1::BoardRestore::Outcome_Name(b.outcome()), "OUTCOME_"),
               short_hash(b.saved()),
               b.nvm_sequence() == 0 ? "-" : std::to_string(b.nvm_sequence()),
               b.reason().text().empty() ? "" : b.reason().text() + ". " + b.reason().remedy()});
  }
  if (context.json) context.print_json(response);
  context.print(table);
  if (left == 0) return {};
  return absl::UnknownError(
      absl::StrCat(left, " of ", response.boards_size(), " boards do not get it"));
}

Status update(Context& context, const std::string& word,
              const std::function<void(v1::UpdateSnapshotRequest&)>& edit) {
  ODT_ASSIGN(const v1::Snapshot snapshot, find_snapshot(context, word));
  v1::UpdateSnapshotRequest request;
  request.set_hash(snapshot.hash());
  edit(request);
  ODT_ASSIGN(const auto response, context.call<v1::UpdateSnapshotResponse>(request));
  if (context.json) context.print_json(response.snapshot());
  context.say(hex(response.snapshot().hash()) +
              (response.snapshot().pinned() ? "  pinned" : "  not pinned") +
              (response.snapshot().note().empty() ? "" : "  note: " + response.snapshot().note()));
  return {};
}

Status remove(Context& context, const std::string& word) {
  ODT_ASSIGN(const v1::Snapshot snapshot, find_snapshot(context, word));
  v1::DeleteSnapshotRequest request;
  request.set_hash(snapshot.hash());
  ODT_TRY(context.call<v1::DeleteSnapshotResponse>(request));
  if (context.json) context.print_json(nlohmann::ordered_json{{"deleted", hex(snapshot.hash())}});
  context.say(hex(snapshot.hash()) + " is in the trash");
  return {};
}

struct PruneOptions {
  std::uint32_t keep = 0, days = 0;
  bool dry_run = false;
};

Status prune(Context& context, const CLI::App& verb, const PruneOptions& o) {
  v1::PruneSnapshotsRequest request;
  if (verb.count("--keep") != 0) request.set_keep(o.keep);
  if (verb.count("--older-than-days") != 0) request.set_older_than_s(o.days * 86'400);
  request.set_dry_run(o.dry_run);
  ODT_ASSIGN(const auto response, context.call<v1::PruneSnapshotsResponse>(request));
  if (context.json) context.print_json(response);
  ODT_ASSIGN(const Names names, Names::read(context));
  Table table({"SNAPSHOT", "MODEL", "BOARD", "STEP", "SIZE", "WHEN"});
  for (const auto& s : response.pruned())
    table.add({short_hash(s.hash()), names.model(s.model_hash()), names.board(s.board_uid()),
               std::to_string(s.step()), size_text(s.bytes()),
               clock_text(s.meta().create_time_us())});
  if (response.pruned_size() != 0) context.print(table);
  context.say(absl::StrCat(response.pruned_size(), o.dry_run ? " would go" : " are in the trash",
                           " (", size_text(response.bytes()), "), ", response.kept(), " stay"));
  return {};
}

}  // namespace

void add_snapshots(CLI::App& weights, Context& context) {
  const auto word = std::make_shared<std::string>(), other = std::make_shared<std::string>();
  const auto limit = std::make_shared<std::uint32_t>(0);
  const auto flag = std::make_shared<bool>(false);
  const auto act = [&context](CLI::App* sub, std::function<Status()> action) {
    sub->callback([&context, action] { context.action = action; });
  };
  const auto verb = [&](const char* name, const char* help) {
    CLI::App* sub = weights.add_subcommand(name, help);
    sub->add_option("SNAPSHOT", *word, "Alias, or beginning of the hash")->required();
    return sub;
  };
  CLI::App* sub = verb("log", "Where it comes from: each snapshot and its parent, links checked");
  sub->add_option("--limit", *limit, "At most so many (100)")->check(CLI::Range(1, 1000));
  act(sub, [&context, word, limit] { return show_log(context, *word, *limit); });

  sub = weights.add_subcommand("diff", "What differs between two snapshots of a model");
  sub->add_option("A", *word, "Alias, or beginning of the hash")->required();
  sub->add_option("B", *other, "Alias, or beginning of the hash")->required();
  sub->add_flag("--channels", *flag, "Also each output channel that differs");
  act(sub, [&context, word, other, flag] { return show_diff(context, *word, *other, *flag); });

  const auto r = std::make_shared<RestoreOptions>();
  sub = weights.add_subcommand("restore",
                               "Put a snapshot on a board or a cohort; what boards hold "
                               "and nobody has is kept first");
  sub->add_option("SNAPSHOT", r->snapshot, "Alias, or beginning of the hash")->required();
  sub->add_option("--board", r->board, "Name, or beginning of the uid");
  sub->add_option("--boards", r->boards, "Label query: site=lab,target!=m33,!broken; '*': all");
  sub->add_flag("--commit", r->commit, "Then to the boards' non-volatile memory");
  sub->add_flag("--dry-run", r->dry_run, "Say what would happen");
  act(sub, [&context, r] { return restore(context, *r); });

  sub = verb("pin", "Never prune or delete it");
  sub->add_flag("--remove", *flag, "Take the pin away instead");
  act(sub, [&context, word, flag] {
    return update(context, *word, [flag](auto& request) { request.set_pinned(!*flag); });
  });
  sub = verb("note", "Write a note on it");
  sub->add_option("TEXT", *other, "Empty: none")->required();
  act(sub, [&context, word, other] {
    return update(context, *word, [other](auto& request) { request.set_note(*other); });
  });
  sub = verb("rm", "Into the trash");
  act(sub, [&context, word] { return remove(context, *word); });

  const auto p = std::make_shared<PruneOptions>();
  sub = weights.add_subcommand("prune",
                               "Old snapshots into the trash; not those pinned, with an "
                               "alias of yours, in use, or among the newest");
  sub->add_option("--keep", p->keep, "Newest of each board and model; default: [retention]");
  sub->add_option("--older-than-days", p->days, "Default: [retention]")
      ->check(CLI::Range(0, 36'500));
  sub->add_flag("--dry-run", p->dry_run, "Say what would go");
  act(sub, [&context, sub, p] { return prune(context, *sub, *p); });
}

}  // namespace odt::cli
