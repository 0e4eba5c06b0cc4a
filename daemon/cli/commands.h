#pragma once

namespace CLI {
class App;
}

// One function a group of verbs: adds it to the command line; the verb that is parsed sets
// Context::action.
namespace odt::cli {

class Context;

void add_board(CLI::App& app, Context& context);
void add_lab(CLI::App& board, Context& context);      // more verbs of board
void add_console(CLI::App& board, Context& context);  // a verb of board
void add_capture(CLI::App& app, Context& context);
void add_port(CLI::App& app, Context& context);
void add_model(CLI::App& app, Context& context);
void add_data(CLI::App& app, Context& context);
void add_train(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_campaign(CLI::App& app, Context& context);
void add_alert(CLI::App& app, Context& context);
void add_settings(CLI::App& app, Context& context);
void add_weights(CLI::App& app, Context& context);
void add_snapshots(CLI::App& weights, Context& context);  // more verbs of weights
void add_queue(CLI::App& run, Context& context);          // more verbs of run
void add_stop_all(CLI::App& app, Context& context);
void add_eval(CLI::App& app, Context& context);
void add_infer(CLI::App& app, Context& context);
void add_pc_train(CLI::App& app, Context& context);
void add_storage(CLI::App& app, Context& context);
void add_run_storage(CLI::App& run, Context& context);  // export, pin, unpin, thin, delete
void add_watch(CLI::App& app, Context& context);
void add_doctor(CLI::App& app, Context& context);
void add_info(CLI::App& app, Context& context);
void add_token(CLI::App& app, Context& context);
void add_login(CLI::App& app, Context& context);  // and whoami
void add_audit(CLI::App& app, Context& context);
void add_setup(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);

}  // namespace odt::cli
