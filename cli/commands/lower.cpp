#include <fmt/format.h>

#include "cli/commands/commands.hpp"
#include "cli/options/arguments.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/version.hpp"
#include "cli/requested/requested_step.hpp"
#include "estimator/card/card_file.hpp"
#include "estimator/memory/sized_step.hpp"

namespace stowage {

namespace {

Diagnostics unnamed_card(const LowerRequest& request, const Card& card) {
  if (request.card || !traits(kernel_set_of(request.runtime)).dispatches_by_card) return {};
  return {{.severity = Severity::note,
           .message = fmt::format("no card was named: the step is for compute capability {:.1f}",
                                  card.compute_capability)}};
}

}  // namespace

Result<Answer> run_lower(const LowerRequest& request) {
  const auto model = requested_model(request.model);
  if (!model) return tl::unexpected(model.error());
  constexpr Bytes any_total = 24_GiB;  // of a card only the compute capability matters
  RequestedCard card{.card = generic_card(any_total)};
  if (request.card) {
    auto found = requested_card(*request.card);
    if (!found) return tl::unexpected(std::move(found.error()));
    card = *std::move(found);
  }
  const auto chosen = requested_choice(request.wishes, model->graph, request.runtime, card.card);
  if (!chosen) return tl::unexpected(chosen.error());

  std::optional<OutputFile> file;
  if (!request.output.empty() && request.output != "-") {
    auto opened = OutputFile::open(request.output);
    if (!opened) return tl::unexpected(std::move(opened.error()));
    file.emplace(std::move(*opened));
  }
  auto document = make_document(model->graph, *chosen, request.runtime, model->options.seq);
  if (!document) return tl::unexpected(std::move(document.error()));
  document->written_by = fmt::format("stowage {}", program_version);
  document->batch = request.batch;
  const auto sized = size_storages(document->graph, request.batch.value_or(1));
  if (request.batch && !sized) return tl::unexpected(sized.error());

  Answer answer;
  answer.report.notes = document->warnings;
  for (const Diagnostics& more : {card.notes, unnamed_card(request, card.card)}) {
    answer.report.notes.insert(answer.report.notes.end(), more.begin(), more.end());
  }
  if (!model->graph.pins.empty()) {
    answer.report.notes.push_back(
        {.severity = Severity::note,
         .message = "the description's 'pins' are about plans, and a step file does not keep them: "
                    "plan takes them as --pin"});
  }
  std::string text = write_step(*document);
  if (!file) {
    answer.report.raw = std::move(text);
    return answer;
  }
  if (auto written = file->commit(text); !written) {
    return tl::unexpected(std::move(written.error()));
  }
  return answer;
}

}  // namespace stowage
