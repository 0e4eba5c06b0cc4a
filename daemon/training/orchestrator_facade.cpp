#include "training/orchestrator_impl.h"

// Orchestrator: every call becomes a coroutine on the links thread.
namespace odt::training {

Orchestrator::Orchestrator(asio::io_context& links, const Clock& clock,
                           store::ControlThread& control, store::TelemetryThread& telemetry,
                           store::BlobStore& blobs, jobs::JobControl& jobs,
                           OrchestratorOptions options) {
  auto env = std::make_shared<Env>(Env{links, clock, control, telemetry, blobs, jobs,
                                       std::move(options.log), options.resume_deadline, nullptr});
  env->cancel_grace = options.cancel_grace;
  env->lease_time = options.lease_time;
  env->disk_free = std::move(options.disk_free);
  impl_ = std::make_shared<Impl>(std::move(env), std::move(options.fleet));
  if (options.prune) impl_->prune_by(options.retention);
  impl_->power_by(std::move(options.power), options.power_pause);
}
Orchestrator::~Orchestrator() = default;

Status Orchestrator::start() { return impl_->start(); }
void Orchestrator::stop(std::function<void()> done) {
  asio::co_spawn(impl_->env().io, impl_->stop(std::move(done)), fleet::Detached{});
}
std::shared_ptr<const FleetView> Orchestrator::view() const { return impl_->view(); }
std::shared_ptr<const FleetView> Orchestrator::view_now() { return impl_->view_now(); }
void Orchestrator::set_view_listener(std::function<void(std::shared_ptr<const FleetView>)> fn) {
  impl_->set_view_listener(std::move(fn));
}
void Orchestrator::update_board(CallContext ctx, BoardUpdate update, Done<model::Board> done) {
  impl_->carry_out(impl_->update_board(std::move(ctx), std::move(update)), std::move(done));
}
void Orchestrator::delete_board(CallContext ctx, BoardUid uid, Done<bool> done) {
  impl_->carry_out(impl_->delete_board(std::move(ctx), std::move(uid)), std::move(done));
}
void Orchestrator::board_restored(model::Board board) {
  asio::post(impl_->env().io, [impl = impl_, board = std::move(board)]() mutable {
    impl->env().registry->remember(std::move(board));
  });
}
void Orchestrator::identify_board(CallContext, BoardUid uid, std::uint32_t seconds,
                                  Done<bool> done) {
  impl_->carry_out(impl_->identify_board(std::move(uid), seconds), std::move(done));
}
void Orchestrator::reset_board(CallContext ctx, BoardUid uid, Done<bool> done) {
  impl_->carry_out(impl_->if_free_for(std::move(ctx), uid, impl_->reset_board(uid)),
                   std::move(done));
}
void Orchestrator::lab(CallContext ctx, BoardUid uid, LabAct act,
                       Done<std::vector<model::Board>> done) {
  impl_->carry_out(impl_->lab(std::move(ctx), std::move(uid), std::move(act)), std::move(done));
}
void Orchestrator::power_cycle(CallContext ctx, BoardUid uid, Done<model::PowerResult> done) {
  impl_->carry_out(impl_->if_free_for(ctx, uid, impl_->power_cycle(ctx, uid, {})), std::move(done));
}
const std::vector<lab::PowerProfile>& Orchestrator::power_profiles() const {
  return impl_->power_profiles();
}
void Orchestrator::capture(CallContext ctx, BoardUid uid, CaptureAct act,
                           Done<model::CaptureState> done) {
  auto work = impl_->capture(uid, std::move(act));
  impl_->carry_out(impl_->if_free_for(std::move(ctx), std::move(uid), std::move(work)),
                   std::move(done));
}
void Orchestrator::read_window(CallContext, BoardUid uid, std::uint32_t id,
                               Done<WindowValues> done) {
  impl_->carry_out(impl_->read_window(std::move(uid), id), std::move(done));
}
void Orchestrator::board_nvm(CallContext ctx, BoardUid uid, NvmAction action,
                             Done<model::NvmInfo> done) {
  auto work = impl_->board_nvm(ctx, uid, action);
  if (action == NvmAction::kStatus) return impl_->carry_out(std::move(work), std::move(done));
  impl_->carry_out(impl_->if_free_for(std::move(ctx), std::move(uid), std::move(work)),
                   std::move(done));
}
void Orchestrator::adopt_port(CallContext ctx, std::string path, std::uint32_t baud,
                              BoardUid expect_uid, Done<model::Port> done) {
  impl_->carry_out(impl_->adopt_port(std::move(ctx), std::move(path), baud, std::move(expect_uid)),
                   std::move(done));
}
void Orchestrator::release_port(CallContext ctx, std::string path, Done<model::Port> done) {
  impl_->carry_out(impl_->release_port(std::move(ctx), std::move(path)), std::move(done));
}
void Orchestrator::create_run(CallContext ctx, model::RunSpec spec, bool dry_run,
                              Done<model::Run> done) {
  impl_->carry_out(impl_->create_run(std::move(ctx), std::move(spec), dry_run), std::move(done));
}
void Orchestrator::set_desired(CallContext ctx, Uuid run, model::Desired desired,
                               Done<model::Run> done) {
  impl_->carry_out(impl_->set_desired(std::move(ctx), run, desired), std::move(done));
}
void Orchestrator::estimate_run(CallContext, model::RunSpec spec, Done<model::RunEstimate> done) {
  impl_->carry_out(impl_->estimate_run(std::move(spec)), std::move(done));
}
void Orchestrator::retry_run(CallContext ctx, Uuid run, std::optional<std::int32_t> priority,
                             Done<model::Run> done) {
  impl_->carry_out(impl_->retry_run(std::move(ctx), run, priority), std::move(done));
}
void Orchestrator::reorder_run(CallContext ctx, Uuid run, std::optional<std::int32_t> priority,
                               Uuid before, Done<model::Run> done) {
  impl_->carry_out(impl_->reorder_run(std::move(ctx), run, priority, before), std::move(done));
}
void Orchestrator::list_queues(BoardUid uid, Done<std::vector<BoardQueue>> done) {
  impl_->carry_out(impl_->list_queues(std::move(uid)), std::move(done));
}
void Orchestrator::stop_all(CallContext ctx, bool cancel, Done<StopReport> done) {
  impl_->carry_out(impl_->stop_all(std::move(ctx), cancel), std::move(done));
}
void Orchestrator::restore_boards(CallContext ctx, RestoreAsk ask,
                                  Done<std::vector<Restored>> done) {
  impl_->carry_out(impl_->restore_boards(std::move(ctx), std::move(ask)), std::move(done));
}
void Orchestrator::evaluate_samples(CallContext ctx, BoardUid uid, Hash snapshot, Uuid dataset,
                                    std::string split, Done<model::Job> done) {
  auto work = impl_->evaluate(ctx, uid, snapshot, dataset, std::move(split), true);
  impl_->carry_out(impl_->if_free_for(std::move(ctx), std::move(uid), std::move(work)),
                   std::move(done));
}
void Orchestrator::infer_values(CallContext ctx, BoardUid uid, std::vector<float> values,
                                Done<model::Inference> done) {
  impl_->carry_out(impl_->infer_values(std::move(ctx), std::move(uid), std::move(values)),
                   std::move(done));
}
void Orchestrator::set_precision(CallContext ctx, Uuid run, model::Steer steer,
                                 Done<model::Run> done) {
  impl_->carry_out(impl_->set_precision(std::move(ctx), run, steer), std::move(done));
}
void Orchestrator::pull_weights(CallContext ctx, BoardUid uid, std::string alias,
                                Done<model::Snapshot> done) {
  impl_->carry_out(impl_->pull_weights(std::move(ctx), std::move(uid), std::move(alias)),
                   std::move(done));
}
void Orchestrator::restore_weights(CallContext ctx, BoardUid uid, Hash snapshot,
                                   Done<model::Board> done) {
  impl_->carry_out(impl_->restore_weights(std::move(ctx), std::move(uid), snapshot),
                   std::move(done));
}
void Orchestrator::evaluate(CallContext ctx, BoardUid uid, Hash snapshot, Uuid dataset,
                            std::string split, Done<model::Job> done) {
  auto work = impl_->evaluate(ctx, uid, snapshot, dataset, std::move(split), false);
  impl_->carry_out(impl_->if_free_for(std::move(ctx), std::move(uid), std::move(work)),
                   std::move(done));
}
void Orchestrator::infer(CallContext, BoardUid uid, Uuid dataset, std::string split,
                         std::uint32_t first, std::uint32_t count, Done<model::Inference> done) {
  impl_->carry_out(impl_->infer(std::move(uid), dataset, std::move(split), first, count),
                   std::move(done));
}
void Orchestrator::cancel_evaluation(CallContext, Uuid job, Done<model::Job> done) {
  impl_->carry_out(impl_->cancel_evaluation(job), std::move(done));
}

}  // namespace odt::training
