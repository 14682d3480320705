#include "cli/software_options.hpp"

#include <fmt/format.h>

#include "cli/read_source.hpp"
#include "estimator/card/card_file.hpp"

namespace stowage {

Result<SoftwareStack> requested_stack(const Arguments& arguments, Runtime runtime,
                                      const Card& card) {
  SoftwareStack stack{.cuda = usual_cuda(card.compute_capability)};
  if (const auto text = arguments.text("cuda-version")) {
    const auto version = parse_version(*text);
    if (!version) {
      return failure(command_line_error(
          fmt::format("--cuda-version: '{}' is not a version such as 12.1", *text)));
    }
    stack.cuda = *version;
  }
  stack.pytorch = usual_pytorch(stack.cuda);
  if (const auto text = arguments.text("pytorch-version")) {
    const auto version = parse_version(*text);
    if (!version) {
      return failure(command_line_error(
          fmt::format("--pytorch-version: '{}' is not a version such as 2.8", *text)));
    }
    if (runtime != Runtime::pytorch) {
      return failure(command_line_error(fmt::format(
          "--pytorch-version is for --runtime pytorch, not for {}", to_string(runtime))));
    }
    stack.pytorch = *version;
  }
  stack.loading = usual_loading(stack.cuda, runtime);
  const auto loading = arguments.text("module-loading");
  if (!loading) return stack;
  if (*loading == "lazy" && stack.cuda < first_lazy_cuda) {
    return failure(
        command_line_error(fmt::format("CUDA {} cannot load lazily; {} was the first",
                                       to_string(stack.cuda), to_string(first_lazy_cuda))));
  }
  stack.loading = *loading == "lazy" ? ModuleLoading::lazy : ModuleLoading::eager;
  return stack;
}

Result<Card> calibrated_card(const Arguments& arguments, Card card) {
  const auto path = arguments.text("calibration");
  if (!path) return card;
  const auto source = read_source(*path);
  if (!source) return tl::unexpected(source.error());
  return read_calibration(*source, card);
}

Json stack_json(const SoftwareStack& stack) {
  return Json::Object{{"cuda", to_string(stack.cuda)},
                      {"pytorch", to_string(stack.pytorch)},
                      {"module_loading", std::string(to_string(stack.loading))}};
}

}  // namespace stowage
