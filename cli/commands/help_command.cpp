#include <fmt/format.h>

#include "cli/commands/commands.hpp"
#include "cli/options/arguments.hpp"
#include "cli/options/help.hpp"
#include "cli/report/kernel_reference.hpp"

namespace stowage {

Result<RenderedAnswer> run_help(const TopicRequest& request) {
  RenderedAnswer answer;
  if (request.topic.empty()) {
    const bool reference = request.format == Format::markdown;
    answer.report.raw = reference ? command_reference() : program_help();
    return answer;
  }
  const std::string& name = request.topic;
  if (name == "kernels") {
    answer.report.raw = kernel_reference();
    return answer;
  }
  const CommandSpec* command = find_command(name);
  if (command == nullptr) {
    std::vector<std::string_view> names;
    for (const CommandSpec& candidate : command_table()) names.push_back(candidate.name);
    names.emplace_back("kernels");
    return failure(command_line_error(fmt::format("there is no command '{}'", name),
                                      did_you_mean(name, names)));
  }
  answer.report.raw = long_help(*command, request.all);
  return answer;
}

}  // namespace stowage
