#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "session/link_runner.h"

namespace odt::test {

// Writes down what a session tells.
class RecordingSink final : public session::SessionSink {
 public:
  void on_step(model::TelemetryFrame frame) override { steps.push_back(std::move(frame)); }
  void on_epoch(const model::EpochResult& epoch) override { epochs.push_back(epoch); }
  void on_job(const model::JobChanged& job) override { jobs.push_back(job); }
  void on_eval(const model::EvalReport& eval) override { evals.push_back(eval); }
  void on_log(int level, const std::string& text) override { logs.emplace_back(level, text); }
  void on_status(model::BoardStatus status) override { statuses.push_back(status); }
  void on_closed(const Status& why) override {
    ++closed;
    closed_why = why;
  }

  bool done() const { return !jobs.empty() && jobs.back().job == model::JobState::kDone; }
  bool logged(const std::string& part) const {
    for (const auto& [level, text] : logs) {
      if (text.find(part) != std::string::npos) return true;
    }
    return false;
  }

  std::vector<model::TelemetryFrame> steps;
  std::vector<model::EpochResult> epochs;
  std::vector<model::JobChanged> jobs;
  std::vector<model::EvalReport> evals;
  std::vector<std::pair<int, std::string>> logs;
  std::vector<model::BoardStatus> statuses;
  int closed = 0;
  Status closed_why;
};

// Takes every session and gives it the sink.
class RecordingHost final : public session::LinkHost {
 public:
  bool on_session(const std::string& endpoint,
                  std::shared_ptr<session::BoardSession> opened) override {
    endpoints.push_back(endpoint);
    ++sessions;
    if (!accept) return false;
    session = std::move(opened);
    if (sink != nullptr) session->set_sink(sink);
    return true;
  }
  void on_port_state(const std::string&, model::PortState state,
                     const model::Reason& reason) override {
    states.push_back(state);
    reasons.push_back(reason);
  }

  void on_refused(const std::string&, const model::Reason& reason) override {
    refusals.push_back(reason);
  }

  bool online() const { return session && session->alive(); }
  bool seen(model::PortState state) const {
    for (const model::PortState s : states) {
      if (s == state) return true;
    }
    return false;
  }

  bool accept = true;
  RecordingSink* sink = nullptr;
  int sessions = 0;
  std::shared_ptr<session::BoardSession> session;
  std::vector<std::string> endpoints;
  std::vector<model::PortState> states;
  std::vector<model::Reason> reasons, refusals;
};

}  // namespace odt::test
