#include "api/convert_parts.h"
#include "api/service_helpers.h"
#include "campaign/account.h"

namespace odt::api {
namespace {

using campaign::CampaignControl;

v1::BoardCheck to_proto(const campaign::BoardCheck& check) {
  v1::BoardCheck out;
  out.set_board_uid(check.board.str());
  out.set_units(check.units);
  if (!check.refusal.code.empty()) set_reason(check.refusal, out.mutable_refusal());
  if (check.effective) *out.mutable_effective() = api::to_proto(*check.effective);
  out.set_steps(check.steps);
  out.set_estimate_us(check.estimate_us);
  out.set_online(check.online);
  if (check.estimate) *out.mutable_estimate() = api::to_proto(*check.estimate);
  return out;
}

void add_create(ApiService& service, Deps& deps) {
  service.unary<v1::CreateCampaignRequest, v1::CreateCampaignResponse>(
      "CreateCampaign", [&deps](const Call& call, const v1::CreateCampaignRequest& request,
                                Reply<v1::CreateCampaignResponse> reply) {
        if (!request.has_spec()) return reply(bad_field("spec", "absent"));
        ODT_FIELD(auto spec, from_proto(request.spec()));
        const bool dry_run = request.dry_run();
        deps.campaigns.create(call.ctx, std::move(spec), dry_run,
                              [reply, dry_run](Result<campaign::Created> created) {
                                if (!created.ok()) return reply(created.status());
                                v1::CreateCampaignResponse response;
                                *response.mutable_campaign() = api::to_proto(created->campaign);
                                for (const auto& check : created->checks)
                                  *response.add_checks() = to_proto(check);
                                for (const auto& unit : created->units)
                                  if (dry_run) *response.add_units() = api::to_proto(unit);
                                reply(std::move(response));
                              });
      });
}

void add_reads(ApiService& service, Deps& deps) {
  service.unary<v1::ListCampaignsRequest, v1::ListCampaignsResponse>(
      "ListCampaigns", [&deps](const Call&, const v1::ListCampaignsRequest& request,
                               Reply<v1::ListCampaignsResponse> reply) {
        ODT_FIELD(auto params, params_of<v1::Campaign>(request));
        answer_from_store(
            deps.control, reply,
            [params](store::ControlStore& store) -> Result<v1::ListCampaignsResponse> {
              ODT_ASSIGN(auto page,
                         (list_from<v1::Campaign, model::Campaign>(
                             params, [&](const auto& query) { return store.campaigns(query); },
                             [](const auto& item) { return api::to_proto(item); })));
              v1::ListCampaignsResponse response;
              for (auto& item : page.items) *response.add_campaigns() = std::move(item);
              response.set_next_page_token(page.next_token);
              return response;
            });
      });
  service.unary<v1::GetCampaignRequest, v1::GetCampaignResponse>(
      "GetCampaign", [&deps](const Call&, const v1::GetCampaignRequest& request,
                             Reply<v1::GetCampaignResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.id(), "id"));
        answer_from_store(deps.control, reply,
                          [id](store::ControlStore& store) -> Result<v1::GetCampaignResponse> {
                            const auto found = store.campaign(id);
                            if (!found.ok()) return not_found(found.status(), "campaign", id.hex());
                            v1::GetCampaignResponse response;
                            *response.mutable_campaign() = api::to_proto(*found);
                            return response;
                          });
      });
  service.unary<v1::ListCampaignUnitsRequest, v1::ListCampaignUnitsResponse>(
      "ListCampaignUnits", [&deps](const Call&, const v1::ListCampaignUnitsRequest& request,
                                   Reply<v1::ListCampaignUnitsResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.campaign_id(), "campaign_id"));
        ODT_FIELD(auto params, params_of<v1::CampaignUnit>(request));
        answer_from_store(
            deps.control, reply,
            [id, params](store::ControlStore& store) -> Result<v1::ListCampaignUnitsResponse> {
              if (const auto found = store.campaign(id); !found.ok())
                return not_found(found.status(), "campaign", id.hex());
              ODT_ASSIGN(const auto units, store.campaign_units(id));
              std::vector<v1::CampaignUnit> all;
              for (const auto& unit : units) all.push_back(api::to_proto(unit));
              auto page = list_from_memory(params, std::move(all));
              v1::ListCampaignUnitsResponse response;
              for (auto& item : page.items) *response.add_units() = std::move(item);
              response.set_next_page_token(page.next_token);
              return response;
            });
      });
}

// Rounds and events: all of a campaign.
template <typename Req, typename Resp, typename Item>
void add_history(ApiService& service, Deps& deps, const char* name,
                 Result<std::vector<Item>> (store::ControlStore::*read)(const Uuid&),
                 const std::function<void(Resp&, const Item&)>& add) {
  service.unary<Req, Resp>(
      name, [&deps, read, add](const Call&, const Req& request, Reply<Resp> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.campaign_id(), "campaign_id"));
        answer_from_store(deps.control, reply,
                          [id, read, add](store::ControlStore& store) -> Result<Resp> {
                            if (const auto found = store.campaign(id); !found.ok())
                              return not_found(found.status(), "campaign", id.hex());
                            ODT_ASSIGN(const auto items, (store.*read)(id));
                            Resp response;
                            for (const auto& item : items) add(response, item);
                            return response;
                          });
      });
}

template <typename Req, typename Resp>
void add_act(ApiService& service, Deps& deps, const char* name, CampaignControl::Act act) {
  service.unary<Req, Resp>(
      name, [&deps, act](const Call& call, const Req& request, Reply<Resp> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.id(), "id"));
        deps.campaigns.act(call.ctx, id, act,
                           answer_with<Resp, model::Campaign>(reply, &Resp::mutable_campaign));
      });
}

void add_delete(ApiService& service, Deps& deps) {
  service.unary<v1::DeleteCampaignRequest, v1::DeleteCampaignResponse>(
      "DeleteCampaign", [&deps](const Call& call, const v1::DeleteCampaignRequest& request,
                                Reply<v1::DeleteCampaignResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.id(), "id"));
        deps.control.commit(batch_of(call, store::Delete{"campaign", id.str()}),
                            [reply, id](Result<std::vector<model::Event>> done) {
                              if (!done.ok())
                                return reply(not_found(done.status(), "campaign", id.hex()));
                              reply(v1::DeleteCampaignResponse());
                            });
      });
}

v1::GetRunAccountingResponse accounting_of(const campaign::Accounting& in) {
  v1::GetRunAccountingResponse out;
  for (const auto& e : in.epochs) {
    auto* to = out.add_epochs();
    to->set_epoch(e.epoch);
    to->set_attempt(e.attempt);
    set_accuracy(e.heldout, to->mutable_heldout());
    to->set_energy(e.energy);
    to->set_energy_fp32(e.energy_fp32);
    to->set_energy_fixed16(e.energy_fixed16);
    to->set_energy_fixed8(e.energy_fixed8);
    to->set_memory_bits(e.memory_bits);
    to->set_memory_fp32_bits(e.memory_fp32_bits);
    to->set_resident_bytes(e.resident_bytes);
    to->mutable_layer_k()->Add(e.layer_k.begin(), e.layer_k.end());
    to->mutable_layer_gavg_q8()->Add(e.layer_gavg_q8.begin(), e.layer_gavg_q8.end());
    to->mutable_layer_u_q8()->Add(e.layer_u_q8.begin(), e.layer_u_q8.end());
  }
  out.set_energy(in.energy);
  out.set_energy_fp32(in.energy_fp32);
  out.set_energy_fixed16(in.energy_fixed16);
  out.set_energy_fixed8(in.energy_fixed8);
  out.set_peak_memory_bits(in.peak_memory_bits);
  out.set_memory_fp32_bits(in.memory_fp32_bits);
  return out;
}

void add_accounting(ApiService& service, Deps& deps) {
  service.unary<v1::GetRunAccountingRequest, v1::GetRunAccountingResponse>(
      "GetRunAccounting", [&deps](const Call&, const v1::GetRunAccountingRequest& request,
                                  Reply<v1::GetRunAccountingResponse> reply) {
        ODT_FIELD(const Uuid id, uuid_field(request.run_id(), "run_id"));
        answer_from_store(deps.control, reply,
                          [id](store::ControlStore& store) -> Result<v1::GetRunAccountingResponse> {
                            const auto run = store.run(id);
                            if (!run.ok()) return not_found(run.status(), "run", id.hex());
                            const auto model = store.model(run->spec.model_hash);
                            if (!model.ok())
                              return not_found(model.status(), "model", run->spec.model_hash.hex());
                            ODT_ASSIGN(const auto epochs, store.epochs(id));
                            return accounting_of(campaign::account(*run, *model, epochs));
                          });
      });
}

}  // namespace

ServicePtr make_campaign_service(Deps& deps) {
  using Store = store::ControlStore;
  auto service = std::make_unique<ApiService>(
      deps.gate,
      *v1::GetCampaignRequest::descriptor()->file()->FindServiceByName("CampaignService"));
  add_create(*service, deps);
  add_reads(*service, deps);
  add_history<v1::ListCampaignRoundsRequest, v1::ListCampaignRoundsResponse, model::CampaignRound>(
      *service, deps, "ListCampaignRounds", &Store::campaign_rounds,
      [](auto& response, const auto& item) { *response.add_rounds() = api::to_proto(item); });
  add_history<v1::ListCampaignEventsRequest, v1::ListCampaignEventsResponse, model::CampaignEvent>(
      *service, deps, "ListCampaignEvents", &Store::campaign_events,
      [](auto& response, const auto& item) { *response.add_events() = api::to_proto(item); });
  add_act<v1::PauseCampaignRequest, v1::PauseCampaignResponse>(*service, deps, "PauseCampaign",
                                                               CampaignControl::Act::kPause);
  add_act<v1::ResumeCampaignRequest, v1::ResumeCampaignResponse>(*service, deps, "ResumeCampaign",
                                                                 CampaignControl::Act::kResume);
  add_act<v1::CancelCampaignRequest, v1::CancelCampaignResponse>(*service, deps, "CancelCampaign",
                                                                 CampaignControl::Act::kCancel);
  add_act<v1::RetryCampaignRequest, v1::RetryCampaignResponse>(*service, deps, "RetryCampaign",
                                                               CampaignControl::Act::kRetry);
  add_delete(*service, deps);
  add_accounting(*service, deps);
  return service;
}

}  // namespace odt::api
