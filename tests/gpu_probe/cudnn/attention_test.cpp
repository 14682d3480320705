// Workspaces of attention. The figures are of cuDNN 9.19.0, and equal those of NVIDIA's
// cudnn-frontend 1.32: get_workspace_size() of its Python package, for the same calls and the same
// described device.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "estimator/workspace/attention_workspace.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "gpu_probe/cudnn/answer_file.hpp"
#include "gpu_probe/cudnn/workspace_source.hpp"
#include "tests/support/attention_call.hpp"
#include "tests/support/cudnn_here.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace stowage;
using testing::attention_call;
using testing::AttentionCall;
using testing::card_named;
using testing::cudnn_is_here;
using testing::is_measured_version;

namespace {

struct Row {
  AttentionCall call;
  std::int64_t forward, backward;  ///< bytes
};

void check_rows(const char* card, const std::vector<Row>& rows) {
  CudnnWorkspaceSource source(card_named(card));
  for (const Row& row : rows) {
    CAPTURE(card);
    CAPTURE(row.call.text());
    const WorkspaceAnswer forward = source.attention_engines(attention_call(row.call, false));
    const WorkspaceAnswer backward = source.attention_engines(attention_call(row.call, true));
    CHECK(source.rule_reason() == "");
    REQUIRE(forward.engines.size() == 1);
    REQUIRE(backward.engines.size() == 1);
    CHECK(forward.engines[0].workspace == Bytes(row.forward));
    CHECK(backward.engines[0].workspace == Bytes(row.backward));
  }
}

}  // namespace

TEST_SUITE_BEGIN("cudnn");

TEST_CASE("attention on a Hopper that is not there") {
  if (!cudnn_is_here() || !is_measured_version()) return;
  check_rows(
      "h200",
      {{{.batch = 4, .heads = 16, .length = 2048}, 256, 34'078'976},
       {{.batch = 4, .heads = 16, .length = 1024, .causal = false}, 256, 17'039'616},
       {{.batch = 1, .heads = 12, .length = 1024, .features = 128}, 256, 6'340'864},
       {{.batch = 2, .heads = 32, .key_heads = 8, .length = 2048, .features = 80}, 256, 84'410'624},
       {{.batch = 1, .heads = 12, .length = 77, .keys = 4096}, 256, 240'496},
       {{.batch = 4, .heads = 16, .length = 1024, .dropout = 0.125, .type = DataType::float16},
        256,
        17'039'616},
       {{.batch = 2, .heads = 8, .length = 1024, .features = 256}, 256, 16'843'008},
       {{.batch = 2, .heads = 8, .length = 1024, .features = 192, .value_features = 128},
        256,
        12'648'704}});
}

TEST_CASE("attention on a Blackwell that is not there") {
  if (!cudnn_is_here() || !is_measured_version()) return;
  check_rows(
      "b200",
      {{{.batch = 4, .heads = 16, .length = 2048}, 0, 34'078'720},
       {{.batch = 4, .heads = 16, .length = 1024, .causal = false}, 0, 17'039'360},
       {{.batch = 2, .heads = 32, .key_heads = 8, .length = 2048, .features = 80}, 0, 84'410'496},
       {{.batch = 1, .heads = 12, .length = 77, .keys = 4096}, 0, 486'128},
       // One bit for each score says whether it is dropped.
       {{.batch = 4, .heads = 16, .length = 1024, .dropout = 0.125}, 8'388'736, 25'428'096},
       {{.batch = 2,
         .heads = 32,
         .key_heads = 8,
         .length = 1024,
         .features = 128,
         .causal = false,
         .dropout = 0.5},
        8'388'736,
        75'759'744}});
}

TEST_CASE("a mask of attention, and a call that keeps no statistics") {
  if (!cudnn_is_here() || !is_measured_version()) return;
  CudnnWorkspaceSource source(card_named("h200"));
  AttentionCall call{.batch = 4, .heads = 16, .length = 1024, .causal = false, .bias = true};
  CHECK(source.attention_engines(attention_call(call, false)).engines[0].workspace == 256_B);
  CHECK(source.attention_engines(attention_call(call, true)).engines[0].workspace == 17'039'616_B);
  AttentionQuery inference = attention_call(call, false);
  inference.statistics = false;
  CHECK(source.attention_engines(inference).engines[0].workspace == 256_B);
  CHECK(source.rule_reason() == "");
}

TEST_CASE("an attention engine is named as cuDNN numbers it") {
  if (!cudnn_is_here()) return;
  CudnnWorkspaceSource source(card_named("h200"));
  const WorkspaceAnswer answer =
      source.attention_engines(attention_call({.batch = 4, .heads = 16, .length = 2048}, true));
  CHECK(answer.origin == WorkspaceOrigin::cudnn);
  CHECK(source.origin() == WorkspaceOrigin::cudnn);
  CHECK(answer.engines[0].name.starts_with("cudnn " + *cudnn_version() + " eng"));
  if (!is_measured_version()) return;
  CHECK(answer.engines[0].name == "cudnn 9.19.0 eng6 k24=26");
}

TEST_CASE("convolutions are answered alike before and after a question about attention") {
  if (!cudnn_is_here()) return;
  const ConvolutionQuery convolution{.x = {16, 64, 28, 28},
                                     .w = {128, 64, 3, 3},
                                     .y = {16, 128, 28, 28},
                                     .stride = {1, 1},
                                     .padding = {1, 1},
                                     .dilation = {1, 1}};
  const AttentionQuery attention = attention_call({.batch = 1, .heads = 8, .length = 512}, true);
  const auto named = [](const WorkspaceAnswer& answer) {
    std::string text;
    for (const Engine& engine : answer.engines) text += engine.name + "; ";
    return text;
  };
  CudnnWorkspaceSource first(card_named("h200")), second(card_named("h200"));
  const std::string before = named(first.engines(convolution));
  CHECK(second.attention_engines(attention).origin == WorkspaceOrigin::cudnn);
  CHECK(named(second.engines(convolution)) == before);
  CHECK(second.origin() == WorkspaceOrigin::cudnn);
}

TEST_CASE("attention's answers are kept beside the convolutions'") {
  if (!cudnn_is_here()) return;
  const testing::TemporaryFolder folder;
  const AttentionQuery query = attention_call({.batch = 2, .heads = 8, .length = 256}, true);
  WorkspaceAnswer asked;
  {
    CudnnWorkspaceSource source(card_named("h200"), folder.path());
    asked = source.attention_engines(query);
  }
  REQUIRE(asked.origin == WorkspaceOrigin::cudnn);
  REQUIRE(folder.names().size() == 1);
  CudnnWorkspaceSource again(card_named("h200"), folder.path());
  const WorkspaceAnswer kept = again.attention_engines(query);
  CHECK(kept.origin == WorkspaceOrigin::cudnn);
  CHECK(kept.engines[0].name == asked.engines[0].name);
  CHECK(kept.engines[0].workspace == asked.engines[0].workspace);
}

TEST_CASE("what cudnn-frontend keeps beside the plan's own is added to a kept answer, not kept") {
  if (!cudnn_is_here()) return;
  const testing::TemporaryFolder folder;
  const AttentionQuery query = attention_call({.batch = 2, .heads = 8, .length = 256}, true);
  Bytes answered;
  {
    CudnnWorkspaceSource source(card_named("h200"), folder.path());
    answered = source.attention_engines(query).engines.at(0).workspace;
  }
  const auto file = AnswerFileView::open(testing::file_text(folder.path(folder.names().at(0))));
  REQUIRE(file);
  const auto kept = file->find(question_bytes(query));
  REQUIRE(kept);
  REQUIRE(frontend_workspace(query) > 0_B);
  CHECK(kept->engines.at(0).workspace + frontend_workspace(query) == answered);
}

TEST_CASE("no two questions about attention have the same bytes") {
  const AttentionCall call{.batch = 2, .heads = 8, .length = 256};
  std::vector<AttentionQuery> queries(6, attention_call(call, false));
  queries[1] = attention_call(call, true);
  queries[2].causal = false;
  queries[3].statistics = false;
  queries[4].dropout = 0.125;
  queries[5].query.strides[1] = 1;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      CHECK(question_bytes(queries[i]) != question_bytes(queries[j]));
    }
  }
  CHECK(question_bytes(queries[0]) == question_bytes(attention_call(call, false)));
  CHECK(question_bytes(queries[0])[0] != question_bytes(ConvolutionQuery())[0]);
}

TEST_CASE("where cuDNN is not asked about attention the rule speaks, and says why") {
  const AttentionCall call{.batch = 2, .heads = 8, .length = 256, .features = 256};
  CudnnWorkspaceSource old(card_named("gtx-960-2gb"));
  CHECK(old.attention_engines(attention_call(call, true)).origin == WorkspaceOrigin::rule);
  CHECK(old.rule_reason() == "cuDNN does not serve this card");
  CudnnWorkspaceSource blackwell(card_named("b200"));
  const WorkspaceAnswer answer = blackwell.attention_engines(attention_call(call, true));
  CHECK(answer.origin == WorkspaceOrigin::rule);
  CHECK(blackwell.rule_reason() ==
        "cuDNN is not asked where PyTorch names the engine of attention itself");
  CHECK(answer.engines[0].workspace == 16'384_B);
}

TEST_CASE("the rule for attention is cuDNN's answer over a grid") {
  if (!cudnn_is_here() || !is_measured_version()) return;
  for (const char* name : {"h200", "b200", "rtx5090"}) {
    CudnnWorkspaceSource source(card_named(name));
    const auto rule = rule_workspace_source(card_named(name).compute_capability);
    for (const std::int64_t heads : {8, 32}) {
      for (const std::int64_t key_heads : {heads, heads / 4}) {
        for (const std::int64_t length : {64, 128, 300, 1000, 4096}) {
          for (const std::int64_t features : {64, 128}) {
            for (const double dropout : {0.0, 0.25}) {
              const AttentionCall call{.batch = 3,
                                       .heads = heads,
                                       .key_heads = key_heads,
                                       .length = length,
                                       .features = features,
                                       .dropout = dropout};
              CAPTURE(name);
              CAPTURE(call.text());
              for (const bool backward : {false, true}) {
                const AttentionQuery query = attention_call(call, backward);
                CHECK(rule->attention_engines(query).engines[0].workspace ==
                      source.attention_engines(query).engines[0].workspace);
              }
            }
          }
        }
      }
    }
    CHECK(source.origin() == WorkspaceOrigin::cudnn);
  }
}

TEST_SUITE_END();
