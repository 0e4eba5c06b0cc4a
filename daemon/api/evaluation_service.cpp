#include "api/service_helpers.h"
#include "odt/api/v1/evaluations.pb.h"

namespace odt::api {

ServicePtr make_evaluation_service(Deps& deps) {
  using Request = v1::ListEvaluationsRequest;
  using Response = v1::ListEvaluationsResponse;
  auto service = std::make_unique<ApiService>(
      deps.gate, *Request::descriptor()->file()->FindServiceByName("EvaluationService"));
  service->unary<Request, Response>(
      "ListEvaluations", [&deps](const Call&, const Request& request, Reply<Response> reply) {
        ODT_FIELD(auto params, params_of<v1::Evaluation>(request));
        const auto read = [params](store::ControlStore& store) -> Result<Response> {
          ODT_ASSIGN(auto page, (list_from<v1::Evaluation, model::Evaluation>(
                                    params, [&](const auto& q) { return store.evaluations(q); },
                                    [](const auto& evaluation) { return to_proto(evaluation); })));
          Response response;
          for (auto& evaluation : page.items) {
            evaluation.clear_confusion();
            *response.add_evaluations() = std::move(evaluation);
          }
          response.set_next_page_token(page.next_token);
          return response;
        };
        answer_from_store(deps.control, reply, read);
      });
  return service;
}

}  // namespace odt::api
