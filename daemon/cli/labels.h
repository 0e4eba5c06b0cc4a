#pragma once

#include <string>

namespace odt::api::v1 {
enum BoardStatus : int;
enum PortState : int;
enum RunState : int;
class Accuracy;
class Job;
class Loss;
}  // namespace odt::api::v1

// API values as words.
namespace odt::cli {

std::string state_word(api::v1::RunState state);
std::string status_word(api::v1::BoardStatus status);
std::string port_word(api::v1::PortState state);
std::string job_word(const api::v1::Job& job);  // "COMPILE RUNNING"
std::string accuracy_text(const api::v1::Accuracy& accuracy);
std::string loss_text(const api::v1::Loss& loss);
bool ended(api::v1::RunState state);
bool ended(const api::v1::Job& job);

}  // namespace odt::cli
