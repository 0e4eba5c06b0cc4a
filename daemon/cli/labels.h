#pragma once

#include <string>

#include "odt/api/v1/types.pb.h"

// API values as words. The one header of this room with generated types: only .cpp files include
// it.
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
