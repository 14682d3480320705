// fuzz_seeds KIND FOLDER: writes seeds for the fuzz targets `plan`, `pytorch_plan`, `answers` and
// `weights`.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "estimator/document/make_document.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/runtime/process_overhead.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "gpu_probe/cudnn/answer_file.hpp"
#include "planner/plan/plan_file.hpp"
#include "planner/propose/proposals.hpp"
#include "planner/pytorch/pytorch_plan_file.hpp"
#include "planner/pytorch/pytorch_plans.hpp"
#include "tests/support/source_directory.hpp"
#include "tests/support/weight_files.hpp"

namespace stowage {
namespace {

constexpr std::size_t most_seed_storages = 6;  // of a plan for PyTorch: enough for every word

void write(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

PlanRequest request_for(const std::string& model, Bytes budget,
                        Runtime runtime = Runtime::stowage) {
  auto found = find_model(model, testing::source_path("/configs/models"));
  if (!found) throw std::runtime_error(render(found.error()));
  auto graph = load_model(found->source, found->options);
  if (!graph) throw std::runtime_error(render(graph.error()));
  PlanRequest request;
  const ChosenStep chosen{
      .lowering = {.kernels = kernel_set_of(runtime), .optimizer = graph->optimizer}};
  request.document = make_document(*graph, chosen, runtime, {}, step_alone).value();
  request.description = found->source;
  request.model_options = found->options;
  request.batch = WholeBatch(8);
  request.card = generic_card(8_GiB);
  request.host = {.name = "seed", .memory = 8_GiB, .pinned_limit = 4_GiB};
  request.host.cpu_flops = 1e11;
  request.host.memory_bandwidth = 2e10;
  request.budget = budget;
  request.stowage_version = "seed";
  return request;
}

void write_plans(const std::string& folder) {
  const auto workspaces = rule_workspace_source(8.6);
  for (const std::string model : {"mlp", "mnist-cnn"}) {
    for (const Bytes budget : {2_MiB, 4_MiB, 8_MiB, 64_MiB}) {
      const auto plans = make_plans(request_for(model, budget), *workspaces, {.work = {500'000}});
      if (!plans) continue;
      for (const Plan& plan : *plans) {
        write(fmt::format("{}/{}-{}-{}.yaml", folder, model, budget.count() >> 20, plan.name),
              write_plan(plan));
      }
    }
  }
}

/// On cards of less and less memory, each proposal a seed.
void write_pytorch_plans(const std::string& folder) {
  const auto workspaces = rule_workspace_source(8.6);
  for (const std::string model : {"mlp", "resnet18"}) {
    PytorchRequest request{.plan = request_for(model, Bytes(), Runtime::pytorch)};
    request.process.runtime = Runtime::pytorch;
    for (const Bytes total : {8_GiB, 1_GiB, 768_MiB, 640_MiB, 576_MiB}) {
      request.plan.card = generic_card(total);
      request.plan.available =
          allocator_limit(*request.plan.document.graph, request.plan.card, request.process);
      request.plan.budget = request.plan.available;
      const auto proposals = make_pytorch_plans(request, *workspaces);
      if (!proposals) continue;
      for (const PytorchProposal& proposal : *proposals) {
        PytorchPlan plan = proposal.plan;
        plan.names_are_recorded = proposal.name == "offload";
        if (plan.offload.size() > most_seed_storages) plan.offload.resize(most_seed_storages);
        plan.question = PlannedQuestion{model, {{"gpu_memory", {"1GiB"}}, {"deterministic", {}}}};
        write(fmt::format("{}/{}-{}-{}.yaml", folder, model, total.count() >> 20, proposal.name),
              write_pytorch_plan(plan));
      }
    }
  }
}

void write_answers(const std::string& folder) {
  for (const int count : {0, 1, 5, 40}) {
    AnswerFile file{.generation = 3, .circumstances = "asker 1\n", .parts = "1 2 3 /libcudnn\n"};
    for (int i = 0; i < count; ++i) {
      const ConvolutionQuery query{.x = {i + 1, 3, 8, 8}, .w = {4, 3, 3, 3}, .y = {i + 1, 4, 6, 6}};
      file.answers[question_bytes(query)] = {.used = 3,
                                             .engines = {{"eng1", Bytes(i)}, {"eng0", 0_B}},
                                             .benchmark = {{"eng7", Bytes(i * i)}}};
    }
    write(fmt::format("{}/{}.answers", folder, count), encode_answers(file));
  }
}

void write_weights(const std::string& folder) {
  write(folder + "/two.safetensors",
        testing::safetensors_file(std::string(testing::two_stored_tensors), 16));
  write(folder + "/two.gguf", testing::gguf_file(104));
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("fuzz_seeds plan|pytorch_plan|answers|weights FOLDER\n", stderr);
    return 2;
  }
  if (std::string_view(argv[1]) == "plan") stowage::write_plans(argv[2]);
  if (std::string_view(argv[1]) == "pytorch_plan") stowage::write_pytorch_plans(argv[2]);
  if (std::string_view(argv[1]) == "answers") stowage::write_answers(argv[2]);
  if (std::string_view(argv[1]) == "weights") stowage::write_weights(argv[2]);
  return 0;
}
