// A sample of tests/cudnn_proof, which asks about all models on seven architectures (.ci/full
// cudnn).
#include "tests/gpu_probe/cudnn/engine_proof.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/gpu_probe/cudnn/shipped_questions.hpp"
#include "tests/support/cudnn_here.hpp"

namespace stowage::test {

TEST_CASE("a GPU's calls ask cuDNN what plans of the same model asked, TF32 allowed or not") {
  ShippedConvolutions all;
  for (const char* model : {"mnist-cnn", "resnet18", "unet", "dcgan-generator", "convnext_tiny"}) {
    add_convolutions(model, 8, all);
  }
  CHECK(all.unequal == std::vector<std::string>{});
  CHECK(all.calls > 1000);
  CHECK(all.questions.size() > 500);
  for (const bool tf32 : {false, true}) {
    CHECK(std::ranges::any_of(all.questions, [&](const ConvolutionQuery& query) {
      return query.type == DataType::float32 && query.settings.tf32 == tf32;
    }));
  }
}

TEST_SUITE("cudnn") {
  TEST_CASE("every engine that plans of some models could name is made again from its name") {
    if (!testing::cudnn_is_here()) return;
    ShippedConvolutions convolutions;
    for (const char* model : {"mnist-cnn", "alexnet", "dcgan-generator"}) {
      add_convolutions(model, 8, convolutions);
    }
    for (const std::string name : {"t4", "h200"}) {
      const Card card = testing::card_named(name);
      std::set<AttentionQuery> attention;
      for (const char* model : {"gpt2", "t5-small"}) {
        add_attention(model, 8, card.compute_capability, attention);
      }
      EngineProof proof(card);
      for (const ConvolutionQuery& query : convolutions.questions) proof.ask(query);
      for (const AttentionQuery& query : attention) proof.ask(query);
      CAPTURE(name);
      for (const ProofRefusal& refusal : proof.refusals()) {
        CAPTURE(refusal.question);
        // Turing has no bf16, and cuDNN has attention from compute capability 8.0 on.
        const bool is_attention = refusal.question.find(" attention ") != std::string::npos;
        CHECK(refusal.why.starts_with("cuDNN has no engine for "));
        CHECK((is_attention || refusal.question.starts_with("bf16 ")));
        CHECK(card.compute_capability < 8);
      }
      std::int64_t questions = 0, engines = 0;
      for (const auto& [kind, counts] : proof.counts()) {
        CHECK(counts.made_again == counts.engines);
        questions += counts.questions;
        engines += counts.engines;
      }
      CHECK(questions ==
            static_cast<std::int64_t>(convolutions.questions.size() + attention.size()));
      CHECK(engines > 300);
      const std::string of = " engines of " + std::to_string(questions) + " questions, ";
      MESSAGE(engines, of, name);
    }
  }
}

}  // namespace stowage::test
