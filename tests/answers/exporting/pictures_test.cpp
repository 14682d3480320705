// What is exported to be looked at: whole files of small steps, and what is refused.
#include "answers/exporting/pictures.hpp"

#include <doctest/doctest.h>

#include "answers/exporting/markdown.hpp"
#include "tests/answers/exporting/export_questions.hpp"
#include "tests/support/hand_made_plan.hpp"

namespace stowage {

using testing::exported_body;
using testing::small_llama;

namespace {

using Lines = std::vector<std::string>;

std::string refusal(const ExportQuestion& question) {
  const auto found = answer(question);
  REQUIRE_FALSE(found);
  return found.error().front().message;
}

ExportQuestion small_step(ExportForm form) {
  ExportQuestion question = small_llama(form);
  question.step.model.source = "mlp";
  question.step.model.options = {};
  question.batch = 64;
  return question;
}

}  // namespace

TEST_CASE("markdown: a plan's totals with their bounds, and its copies by class") {
  Plan plan = hand_made::plan();
  plan.inputs.model_name = "a|b_c";
  plan.inputs.stowage_version = "0.1.0";
  plan.inputs.card.name = "card";
  plan.remarks = {"changes nothing"};
  CHECK(markdown_of(plan) ==
        R"(### a\|b\_c, batch 1, on card: plan cheapest

It swaps 1 activation, 1.0 KiB each way; copies 1 weight, 768 B up; copies 1 gradient, 768 B down; runs 1 of 1 updates on the CPU.

| | At least | Of the plan |
|---:|---:|---|
| 21.000 s |  | step, simulated |
| 10.500 s |  | the same with memory for everything |
| 3.2 KiB | 3.0 KiB | GPU arena |
| 3.8 KiB | 1.0 KiB | copied in a step |
| 2.0 KiB |  | pinned host memory |
| 0 B |  | pageable host memory |

| To the GPU | To the host | Copied in a step |
|---:|---:|---|
| 256 B | 0 B | input |
| 768 B | 0 B | parameter |
| 0 B | 768 B | gradient |
| 1.0 KiB | 1.0 KiB | activation |
| **2.0 KiB** | **1.8 KiB** | **all** |

- changes nothing

Planned by stowage 0.1.0.
)");
}

TEST_CASE("markdown: a step's verdict, its peak, its largest tensors and its phases") {
  CHECK(exported_body(small_step(ExportForm::markdown)) ==
        R"(### mlp fits H100 PCIe 80GB

643.0 MiB of 79.2 GiB available, 78.6 GiB to spare: mlp, batch 64, training with sgd, fp32, with pytorch.

| Size | At the peak, `fc1.backward.bias` |
|---:|---|
| 196.5 KiB | input |
| 7.1 MiB | parameter |
| 7.1 MiB | gradient |
| 3.0 KiB | activation |
| 256.5 KiB | activation gradient |
| 64.0 MiB | workspace |
| **78.7 MiB** | **tensors** |
| 7.3 MiB | cached by the allocator |
| 493.0 MiB | CUDA context |
| 64.0 MiB | cuBLAS kernels |
| **643.0 MiB** | **on the device** |

| Size | Class | Layer | Tensor |
|---:|---|---|---|
| 32.0 MiB | workspace |  | `cuBLAS workspace` |
| 32.0 MiB | workspace |  | `cuBLAS workspace of autograd's thread` |
| 4.0 MiB | parameter | `fc2` | `fc2.weight` |
| 4.0 MiB | gradient | `fc2` | `fc2.weight.grad` |
| 3.1 MiB | parameter | `fc1` | `fc1.weight` |
| 3.1 MiB | gradient | `fc1` | `fc1.weight.grad` |
| 256.0 KiB | activation gradient | `relu_1` | `relu_1.grad_input` |
| 196.0 KiB | input |  | `image` |
| 40.0 KiB | parameter | `fc3` | `fc3.weight` |
| 40.0 KiB | gradient | `fc3` | `fc3.weight.grad` |
| 21.0 KiB | | | 10 others |

| Tensors | On the device | Most of |
|---:|---:|---|
| 7.1 MiB | 515.0 MiB | after loading |
| 78.7 MiB | 643.0 MiB | first step |
| 78.7 MiB | 643.0 MiB | steady steps |

Counted by stowage TEST.
)");
}

TEST_CASE("svg: the memory of a plan, stacked by class") {
  Plan plan = hand_made::plan();
  plan.inputs.model_name = "a<b";
  plan.inputs.card.name = "card";
  const auto picture = picture_of_plan(ExportForm::svg, plan);
  REQUIRE(picture);
  CHECK(
      picture->body ==
      R"svg(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 460" width="960" height="460" font-family="sans-serif" font-size="12">
<style>
svg{background:#fff;color:#1b1b1b}
.grid{stroke:#8884}.quiet{fill:#666}.line{stroke:currentColor;fill:none}
text{fill:currentColor}text.quiet{fill:#666}
@media(prefers-color-scheme:dark){svg{background:#16181c;color:#e8e8e8}text.quiet{fill:#a5a5a5}}
</style>
<title>a&lt;b, batch 1, plan cheapest: what is on the GPU</title>
<text x="76" y="22" font-size="15">a&lt;b, batch 1, plan cheapest: what is on the GPU</text>
<text x="76" y="40" class="quiet">arena of 3.2 KiB on card; 2.0 KiB of pinned host memory</text>
<line class="grid" x1="76" x2="710" y1="408.0" y2="408.0"/>
<text x="68" y="412.0" text-anchor="end">0 KiB</text>
<line class="grid" x1="76" x2="710" y1="321.5" y2="321.5"/>
<text x="68" y="325.5" text-anchor="end">1 KiB</text>
<line class="grid" x1="76" x2="710" y1="235.0" y2="235.0"/>
<text x="68" y="239.0" text-anchor="end">2 KiB</text>
<line class="grid" x1="76" x2="710" y1="148.5" y2="148.5"/>
<text x="68" y="152.5" text-anchor="end">3 KiB</text>
<line class="grid" x1="76" x2="710" y1="62.0" y2="62.0"/>
<text x="68" y="66.0" text-anchor="end">4 KiB</text>
<text x="76.0" y="426" text-anchor="middle">0</text>
<text x="202.8" y="426" text-anchor="middle">1</text>
<text x="329.6" y="426" text-anchor="middle">2</text>
<text x="456.4" y="426" text-anchor="middle">3</text>
<text x="583.2" y="426" text-anchor="middle">4</text>
<text x="710.0" y="426" text-anchor="middle">5</text>
<text x="393.0" y="446" text-anchor="middle" class="quiet">kernels, in the order in which they run</text>
<path fill="#3b6fd4" d="M76.0 299.9H202.8L202.8 299.9H329.6L329.6 364.8H456.4L456.4 364.8H583.2L583.2 364.8H710.0L710.0 408.0H583.2L583.2 408.0H456.4L456.4 408.0H329.6L329.6 408.0H202.8L202.8 408.0H76.0Z"><title>parameter</title></path>
<path fill="#d9558f" d="M76.0 299.9H202.8L202.8 299.9H329.6L329.6 364.8H456.4L456.4 299.9H583.2L583.2 364.8H710.0L710.0 364.8H583.2L583.2 364.8H456.4L456.4 364.8H329.6L329.6 299.9H202.8L202.8 299.9H76.0Z"><title>gradient</title></path>
<path fill="#8a929c" d="M76.0 278.2H202.8L202.8 299.9H329.6L329.6 364.8H456.4L456.4 299.9H583.2L583.2 364.8H710.0L710.0 364.8H583.2L583.2 299.9H456.4L456.4 364.8H329.6L329.6 299.9H202.8L202.8 299.9H76.0Z"><title>input</title></path>
<path fill="#2f9e4f" d="M76.0 191.8H202.8L202.8 191.8H329.6L329.6 343.1H456.4L456.4 213.4H583.2L583.2 364.8H710.0L710.0 364.8H583.2L583.2 299.9H456.4L456.4 364.8H329.6L329.6 299.9H202.8L202.8 278.2H76.0Z"><title>activation</title></path>
<path fill="#e0a100" d="M76.0 191.8H202.8L202.8 191.8H329.6L329.6 317.8H456.4L456.4 188.0H583.2L583.2 364.8H710.0L710.0 364.8H583.2L583.2 213.4H456.4L456.4 343.1H329.6L329.6 191.8H202.8L202.8 191.8H76.0Z"><title>activation gradient</title></path>
<path fill="#e4643f" d="M76.0 191.8H202.8L202.8 191.8H329.6L329.6 307.0H456.4L456.4 188.0H583.2L583.2 364.8H710.0L710.0 364.8H583.2L583.2 188.0H456.4L456.4 317.8H329.6L329.6 191.8H202.8L202.8 191.8H76.0Z"><title>temporary</title></path>
<path fill="#8d6246" d="M76.0 191.8H202.8L202.8 148.5H329.6L329.6 307.0H456.4L456.4 188.0H583.2L583.2 364.8H710.0L710.0 364.8H583.2L583.2 188.0H456.4L456.4 307.0H329.6L329.6 191.8H202.8L202.8 191.8H76.0Z"><title>workspace</title></path>
<line class="grid" x1="76.0" x2="76.0" y1="54" y2="408"/>
<text x="79.0" y="60" font-size="11" class="quiet" text-anchor="start">forward</text>
<line class="grid" x1="456.4" x2="456.4" y1="54" y2="408"/>
<text x="459.4" y="60" font-size="11" class="quiet" text-anchor="start">backward</text>
<line class="grid" x1="583.2" x2="583.2" y1="54" y2="408"/>
<text x="586.2" y="60" font-size="11" class="quiet" text-anchor="start">update</text>
<path class="line" stroke-dasharray="5 3" d="M76.0 126.9H202.8L202.8 126.9H329.6L329.6 126.9H456.4L456.4 126.9H583.2L583.2 126.9H710.0"/>
<line stroke="#d4351c" stroke-width="1.5" x1="76" x2="710" y1="62.0" y2="62.0"/>
<circle cx="266.2" cy="148.5" r="4" fill="#d4351c"><title>fc2.forward</title></circle>
<text x="274.2" y="142.5" text-anchor="start" font-weight="bold">peak 3.0 KiB</text>
<text x="728" y="66" class="quiet">at the peak, fc2.forward</text>
<rect x="728" y="76" width="12" height="12" fill="#8d6246"/>
<text x="746" y="86">workspace 512 B</text>
<rect x="728" y="96" width="12" height="12" fill="#e4643f"/>
<text x="746" y="106">temporary 0 B</text>
<rect x="728" y="116" width="12" height="12" fill="#e0a100"/>
<text x="746" y="126">activation gradient 0 B</text>
<rect x="728" y="136" width="12" height="12" fill="#2f9e4f"/>
<text x="746" y="146">activation 1.2 KiB</text>
<rect x="728" y="156" width="12" height="12" fill="#8a929c"/>
<text x="746" y="166">input 0 B</text>
<rect x="728" y="176" width="12" height="12" fill="#d9558f"/>
<text x="746" y="186">gradient 0 B</text>
<rect x="728" y="196" width="12" height="12" fill="#3b6fd4"/>
<text x="746" y="206">parameter 1.2 KiB</text>
<line class="line" stroke-dasharray="5 3" x1="728" x2="742" y1="228" y2="228"/>
<text x="746" y="232">arena 3.2 KiB</text>
<line stroke="#d4351c" stroke-width="1.5" x1="728" x2="742" y1="248" y2="248"/>
<text x="746" y="252">budget 4.0 KiB</text>
</svg>
)svg");
}

TEST_CASE("a picture says beside it that it is not read back") {
  const auto found = answer(small_step(ExportForm::svg));
  REQUIRE_MESSAGE(found, render(found.error()));
  CHECK(found->remarks ==
        Lines{"it is to be looked at: neither a step nor a plan can be read back from it"});
  const auto trace = answer(small_step(ExportForm::trace));
  REQUIRE_MESSAGE(trace, render(trace.error()));
  CHECK(trace->remarks ==
        Lines{"it is to be looked at: neither a step nor a plan can be read back from it",
              "its times are estimates by the card's rates, kernel after kernel without gaps"});
  const auto snapshot = answer(small_step(ExportForm::memory_snapshot));
  REQUIRE_MESSAGE(snapshot, render(snapshot.error()));
  CHECK(snapshot->remarks ==
        Lines{"it is to be looked at: neither a step nor a plan can be read back from it",
              "its events are of a simulated process that loads the model and runs 2 steps: they "
              "have no times, and their frames are the tensor, the kernel and the layer"});
  CHECK(found->fits());
}

TEST_CASE("of many micro-batches two are shown, which is said") {
  ExportQuestion question = small_step(ExportForm::svg);
  question.step.wishes.accumulation = 4;
  const auto found = answer(question);
  REQUIRE_MESSAGE(found, render(found.error()));
  CHECK(found->remarks ==
        Lines{"it is to be looked at: neither a step nor a plan can be read back from it",
              "of 4 micro-batches two are shown: the later ones are alike"});
}

TEST_CASE("markdown says what a step lacks that does not fit") {
  ExportQuestion question = small_step(ExportForm::markdown);
  question.card = CardQuestion{.cuda_total = 600_MiB, .configs = question.card->configs};
  question.batch = 1'000'000;
  const std::string body = exported_body(question);
  CHECK(body.substr(0, body.find("\n\n| Size")) ==
        "### mlp does not fit a generic 600.0 MiB card\n\n"
        "22.4 GiB wanted, 600.0 MiB available, 21.8 GiB too much: mlp, batch 1000000, training "
        "with sgd, fp32, with pytorch.\n\n"
        "relu\\_2.backward needs 18.2 GiB at once; its largest tensor is relu\\_1 (3.8 GiB)");
}

TEST_CASE("a picture of a step that does not fit is made, and is no yes") {
  for (const ExportForm form :
       {ExportForm::trace, ExportForm::memory_snapshot, ExportForm::svg, ExportForm::markdown}) {
    ExportQuestion question = small_step(form);
    question.card = CardQuestion{.cuda_total = 300_MiB, .configs = question.card->configs};
    question.batch = 1'000'000;
    const auto found = answer(question);
    REQUIRE_MESSAGE(found, render(found.error()));
    CHECK_FALSE(found->fits());
    CHECK_FALSE(found->body.empty());
  }
}

TEST_CASE("a picture is of one step: serving, and another runtime's allocator, are refused") {
  ExportQuestion served = small_llama(ExportForm::svg);
  served.serving = ServingSettings{.context_length = 128};
  CHECK(refusal(served) ==
        "`context_length` is of serving, and svg shows a step: one pass over the batch");
  ExportQuestion other = small_step(ExportForm::memory_snapshot);
  other.step.process.runtime = Runtime::tensorflow;
  CHECK(refusal(other) ==
        "`runtime` tensorflow: memory-snapshot is the history of PyTorch's allocator");
}

}  // namespace stowage
