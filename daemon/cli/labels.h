#pragma once

#include <string>

namespace odt::api::v1 {
enum BoardStatus : int;
enum PortState : int;
enum RunState : int;
class Accuracy;
class Job;
class Loss;
class Outputs;
class Run;
}  // namespace odt::api::v1

// API values as words.
namespace odt::cli {

std::string state_word(api::v1::RunState state);
std::string status_word(api::v1::BoardStatus status);
std::string port_word(api::v1::PortState state);
std::string job_word(const api::v1::Job& job);  // "COMPILE RUNNING"
std::string accuracy_text(const api::v1::Accuracy& accuracy);
std::string loss_text(const api::v1::Loss& loss);
bool has_classes(const api::v1::Outputs& outputs);
// Scale of all outputs, of targets or, for autoencoders, of the source; 0: not known, or unequal.
double common_scale(const api::v1::Outputs& outputs);
// Squared errors of `samples` samples as "1.234", the mean of an output: in units of the target
// where there is a common scale, else in steps of the model's integer outputs; "-" where samples is
// 0.
std::string error_text(double sum, std::uint32_t samples, const api::v1::Outputs& outputs);
std::string error_text(const api::v1::Loss& loss, const api::v1::Outputs& outputs);
// What error_text() is: "mean squared error, units of the target".
std::string error_unit(const api::v1::Outputs& outputs);
// The accuracy or, where there are no classes, "mse 1.234".
std::string score_text(const api::v1::Accuracy& accuracy, const api::v1::Loss& loss,
                       const api::v1::Outputs& outputs);
// "14:03:07, in 3 min 20 s"; "-" where it is not known.
std::string eta_text(const api::v1::Run& run);
bool ended(api::v1::RunState state);
bool ended(const api::v1::Job& job);

}  // namespace odt::cli
