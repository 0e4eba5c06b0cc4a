#include <absl/strings/str_cat.h>

#include <algorithm>

#include "api/weights_parts.h"
#include "base/label_query.h"
#include "model/setting_rules.h"
#include "training/reason.h"

namespace odt::api {
namespace {

using training::FleetControl;

constexpr std::size_t kMaxBoards = 10'000;
constexpr std::uint32_t kDefaultWrong = 100, kMaxWrong = 1000;
constexpr std::size_t kWrongBytes = 12;  // index, label, said

// Boards that the query holds for and those named, each once, by name.
Result<std::vector<BoardUid>> cohort_of(const Deps& deps, const v1::RestoreCohortRequest& request) {
  ODT_ASSIGN(const LabelQuery query, LabelQuery::parse(request.boards()));
  std::vector<BoardUid> named, out;
  for (const auto& raw : request.board_uids()) {
    ODT_ASSIGN(named.emplace_back(), uid_field(raw, "board_uids"));
  }
  const auto view = deps.fleet.view();
  for (const auto& board : view->boards) {
    const auto mine = std::find(named.begin(), named.end(), board.uid);
    const bool asked = mine != named.end();
    if (asked) named.erase(mine);
    if (!asked && (query.empty() || !query.matches(board.labels, model::query_fields(board))))
      continue;
    out.push_back(board.uid);
  }
  out.insert(out.end(), named.begin(), named.end());  // unknown: each answers for itself
  if (out.empty())
    return with_reason(
        absl::NotFoundError("no board is in the cohort '" + clean_text(request.boards()) + "'"),
        "NO_BOARDS", "List the boards and their labels: odtctl board list.");
  if (out.size() > kMaxBoards)
    return bad_field("boards", absl::StrCat(out.size(), " boards; limit ", kMaxBoards));
  return out;
}

v1::BoardRestore to_restore(const FleetControl::Restored& one) {
  v1::BoardRestore out;
  out.set_board_uid(one.uid.str());
  out.set_outcome(!one.status.ok() ? (one.begun ? v1::BoardRestore::OUTCOME_FAILED
                                                : v1::BoardRestore::OUTCOME_REFUSED)
                  : one.held       ? v1::BoardRestore::OUTCOME_HELD_IT
                                   : v1::BoardRestore::OUTCOME_DONE);
  if (!one.status.ok()) *out.mutable_reason() = to_proto(training::reason_from(one.status));
  if (!one.saved.is_zero()) out.set_saved(one.saved.str());
  if (one.nvm) out.set_nvm_sequence(one.nvm->sequence);
  return out;
}

void add_restores(ApiService& service, Deps& deps) {
  service.unary<v1::RestoreWeightsRequest, v1::RestoreWeightsResponse>(
      "RestoreWeights", [&deps](const Call& call, const v1::RestoreWeightsRequest& request,
                                Reply<v1::RestoreWeightsResponse> reply) {
        FleetControl::RestoreAsk ask;
        ODT_FIELD(const BoardUid uid, uid_field(request.board_uid(), "board_uid"));
        ODT_FIELD(ask.snapshot, hash_field(request.snapshot(), "snapshot"));
        ask.boards = {uid};
        ask.commit = request.commit();
        deps.fleet.restore_boards(
            call.ctx, std::move(ask),
            [&deps, reply, uid](Result<std::vector<FleetControl::Restored>> all) {
              if (!all.ok()) return reply(all.status());
              const FleetControl::Restored one = all->front();
              if (!one.status.ok()) return reply(one.status);
              answer_from_store(
                  deps.control, reply,
                  [uid, one](store::ControlStore& store) -> Result<v1::RestoreWeightsResponse> {
                    ODT_ASSIGN(const model::Board board, store.board(uid));
                    v1::RestoreWeightsResponse out;
                    *out.mutable_board() = to_proto(board);
                    if (!one.saved.is_zero()) out.set_saved(one.saved.str());
                    if (one.nvm) *out.mutable_nvm() = to_proto(*one.nvm);
                    return out;
                  });
            });
      });
  service.unary<v1::RestoreCohortRequest, v1::RestoreCohortResponse>(
      "RestoreCohort", [&deps](const Call& call, const v1::RestoreCohortRequest& request,
                               Reply<v1::RestoreCohortResponse> reply) {
        FleetControl::RestoreAsk ask;
        ODT_FIELD(ask.snapshot, hash_field(request.snapshot(), "snapshot"));
        ODT_FIELD(ask.boards, cohort_of(deps, request));
        ask.commit = request.commit();
        ask.dry_run = request.dry_run();
        deps.fleet.restore_boards(call.ctx, std::move(ask),
                                  [reply](Result<std::vector<FleetControl::Restored>> all) {
                                    if (!all.ok()) return reply(all.status());
                                    v1::RestoreCohortResponse out;
                                    for (const auto& one : *all)
                                      *out.add_boards() = to_restore(one);
                                    reply(std::move(out));
                                  });
      });
}

struct WrongQuery {
  Uuid evaluation;
  std::optional<std::uint32_t> label, said;
  std::uint32_t first = 0, count = kDefaultWrong;
};

Result<v1::ListWrongSamplesResponse> list_wrong(const Deps& deps, store::ControlStore& store,
                                                const WrongQuery& query) {
  const auto evaluation = store.evaluation(query.evaluation);
  if (!evaluation.ok()) return not_found(evaluation.status(), "evaluation", query.evaluation.hex());
  v1::ListWrongSamplesResponse out;
  const bool none =
      evaluation->accuracy.total != 0 && evaluation->accuracy.correct == evaluation->accuracy.total;
  if (none) return out;
  if (evaluation->wrong.is_zero())
    return with_reason(absl::NotFoundError("the wrong samples of evaluation " +
                                           query.evaluation.hex() + " were not recorded"),
                       "NOT_RECORDED", "Evaluate again with `samples` (odtctl eval --wrong).");
  ODT_ASSIGN(const std::string bytes, deps.blobs.get(evaluation->wrong));
  const auto u32 = [&bytes](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i)
      value |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    return value;
  };
  std::uint32_t found = 0;
  for (std::size_t at = 0; at + kWrongBytes <= bytes.size(); at += kWrongBytes) {
    const std::uint32_t label = u32(at + 4), said = u32(at + 8);
    if ((query.label && *query.label != label) || (query.said && *query.said != said)) continue;
    const std::uint32_t number = found++;
    if (number < query.first || number - query.first >= query.count) continue;
    auto* sample = out.add_samples();
    sample->set_index(u32(at));
    sample->set_label(label);
    sample->set_said(said);
  }
  out.set_total(found);
  return out;
}

void add_wrong(ApiService& service, Deps& deps) {
  service.unary<v1::ListWrongSamplesRequest, v1::ListWrongSamplesResponse>(
      "ListWrongSamples", [&deps](const Call&, const v1::ListWrongSamplesRequest& request,
                                  Reply<v1::ListWrongSamplesResponse> reply) {
        WrongQuery query;
        ODT_FIELD(query.evaluation, uuid_field(request.evaluation_id(), "evaluation_id"));
        if (request.has_label()) query.label = request.label();
        if (request.has_said()) query.said = request.said();
        if (request.count() > kMaxWrong)
          return reply(bad_field("count", absl::StrCat(request.count()), "1 to 1000"));
        query.first = request.first();
        if (request.count() != 0) query.count = request.count();
        answer_from_store(deps.control, reply, [&deps, query](store::ControlStore& store) {
          return list_wrong(deps, store, query);
        });
      });
}

}  // namespace

void add_restore_methods(ApiService& service, Deps& deps) {
  add_restores(service, deps);
  add_wrong(service, deps);
}

}  // namespace odt::api
