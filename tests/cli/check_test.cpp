// check, batch and summary as a user runs them: verdicts, exit codes, JSON fields, sums.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using nlohmann::json;
using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;

namespace {

constexpr const char* small_net = R"(model: small
inputs:
  image: {shape: [batch, 1, 8, 8]}
  label: {shape: [batch], dtype: int64}
layers:
  - conv2d: {name: conv, from: image, channels: 4, kernel: 3}
  - relu
  - flatten
  - linear: {name: fc, features: 10}
loss:
  cross_entropy: {from: [fc, label]}
train: {optimizer: adam}
)";

// Without convolutions: no workspaces to be asked for at each batch.
constexpr const char* dense_net = R"(model: dense
inputs:
  image: {shape: [batch, 64]}
  label: {shape: [batch], dtype: int64}
layers:
  - linear: {name: fc1, from: image, features: 256}
  - relu
  - linear: {name: fc2, features: 10}
loss:
  cross_entropy: {from: [fc2, label]}
)";

json parsed(const Outcome& outcome) {
  INFO(outcome.err);
  REQUIRE_FALSE(outcome.out.empty());
  return json::parse(outcome.out);
}

}  // namespace

TEST_CASE("check --verbose names each convolution's engine and its workspace") {
  const TemporaryFolder folder;
  const std::string model = folder.file("small.yaml", small_net);
  const std::vector<std::string> command{"check", model, "--gpu", "gtx-960-2gb", "--batch", "32"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), command.begin(), command.end());
    return stowage_program(more);
  };
  CHECK(with({}).out.find("The kernels' workspaces:") == std::string::npos);
  CHECK(with({"--verbose"}).out.find(R"(
The kernels' workspaces:
  Workspace  Engine  Layer  Direction
   20.0 KiB  rule    conv   forward
   20.0 KiB  rule    conv   filter gradient
)") != std::string::npos);
  const json plain = parsed(with({"--format=json"}));
  REQUIRE(plain["workspaces"].size() == 2);
  CHECK(plain["workspaces"][1] == json{{"kernel", "conv.backward.filter"},
                                       {"layer", "conv"},
                                       {"direction", "filter gradient"},
                                       {"engine", "rule"},
                                       {"bytes", 20480}});
  CHECK(plain["settings"]["cudnn_benchmark"] == false);
  CHECK(plain["settings"]["tf32"] == true);
  CHECK(plain["settings"]["deterministic"] == false);
  const json timed =
      parsed(with({"--format=json", "--cudnn-benchmark", "--tf32", "off", "--deterministic"}));
  // x 8,192, w 144 and y 18,432 bytes, and 16: converted; twice that is what they are timed in.
  CHECK(timed["workspaces"][0]["bytes"] == 26784);
  CHECK(timed["workspaces"][0]["least_bytes"] == 0);
  CHECK(timed["workspaces"][0]["timed_in_bytes"] == 53568);
  CHECK(timed["settings"]["cudnn_benchmark"] == true);
  CHECK(timed["settings"]["tf32"] == false);
  CHECK(timed["settings"]["deterministic"] == true);
  const json ours = parsed(with({"--format=json", "--runtime", "stowage", "--cudnn-benchmark"}));
  CHECK(ours["settings"]["cudnn_benchmark"].is_null());
  CHECK(ours["workspaces"][0]["bytes"] == 20480);
}

TEST_CASE("check says yes with exit code 0, and its rows add up") {
  const TemporaryFolder folder;
  const std::string model = folder.file("small.yaml", small_net);
  for (const char* runtime : {"ideal", "stowage", "pytorch"}) {
    CAPTURE(runtime);
    const Outcome outcome = stowage_program({"check", model, "--gpu", "rtx3090", "--batch", "32",
                                             "--runtime", runtime, "--format=json"});
    CHECK(outcome.exit_code == 0);
    CHECK(testing::said_beside_cudnn(outcome).empty());
    const json answer = parsed(outcome);
    CHECK(answer["schema_version"] == 1);
    CHECK(answer["verdict"] == "fits");
    CHECK(answer["device"]["name"] == "GeForce RTX 3090");
    CHECK(answer["settings"]["batch"] == 32);
    CHECK(answer["settings"]["mode"] == "train");
    CHECK(answer["settings"]["optimizer"] == "adam");
    CHECK(answer["settings"]["precision"] == "fp32");
    CHECK(answer["settings"]["runtime"] == runtime);
    CHECK_FALSE(answer.contains("largest_batch"));

    std::int64_t classes = 0;
    for (const auto& [name, bytes] : answer["footprint"].items()) {
      classes += bytes.get<std::int64_t>();
    }
    std::int64_t tensors = 0;
    for (const json& tensor : answer["tensors"]) tensors += tensor["bytes"].get<std::int64_t>();
    std::int64_t device = classes;
    for (const json& row : answer["runtime_rows"]) device += row["bytes"].get<std::int64_t>();
    CHECK(classes == answer["peak"]["tensor_bytes"]);
    CHECK(tensors == classes);
    CHECK(device == answer["peak"]["device_bytes"]);
    CHECK(answer["headroom_bytes"].get<std::int64_t>() ==
          answer["device"]["available_bytes"].get<std::int64_t>() - device);
    CHECK(answer["phases"].size() >= 2);
    for (const json& phase : answer["phases"]) {
      CHECK(phase["name"].is_string());
      CHECK(phase["device_bytes"] >= phase["tensor_bytes"]);
    }
    // PyTorch's Adam counts its steps on the CPU: 4 bytes for each of four parameter tensors.
    const int counters = std::string(runtime) == "stowage" ? 0 : 4 * 4;
    CHECK(answer["host_bytes"] == 32 * (8 * 8 * 4 + 8) + counters);
    CHECK(answer["peak"]["at"].is_string());
  }
}

TEST_CASE("check says no with exit code 1, a culprit and what would do") {
  const TemporaryFolder folder;
  const std::string model = folder.file("dense.yaml", dense_net);
  const std::vector<std::string> words{"check", model,     "--gpu-memory",
                                       "1GiB",  "--batch", "1000000"};
  const Outcome outcome = stowage_program(words);
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.out.find("\ndoes not fit with PyTorch's kernels: ") != std::string::npos);
  CHECK(outcome.out.find("\n  the largest batch that fits is ") != std::string::npos);
  CHECK(outcome.err ==
        "note: taken for a generic card of 1.0 GiB with compute capability 8.6; --gpu NAME takes "
        "a real one\n");

  std::vector<std::string> as_json = words;
  as_json.insert(as_json.end(), {"--format", "json"});
  const json answer = parsed(stowage_program(as_json));
  CHECK(answer["verdict"] == "does_not_fit");
  CHECK(answer["headroom_bytes"] < 0);
  CHECK(answer["culprit"].is_string());

  // The batch it names does fit, and the next one does not.
  const std::int64_t largest = answer["largest_batch"];
  REQUIRE(largest > 0);
  for (const std::int64_t more : {0, 1}) {
    std::vector<std::string> again = words;
    again.back() = std::to_string(largest + more);
    CHECK(stowage_program(again).exit_code == more);
  }
}

TEST_CASE("what others hold and what is to stay free comes off the card") {
  const TemporaryFolder folder;
  const std::string model = folder.file("small.yaml", small_net);
  const json answer = parsed(stowage_program({"check", model, "--gpu", "rtx3090", "--in-use",
                                              "233MiB", "--reserve", "1GiB", "--format", "json"}));
  CHECK(answer["device"]["total_bytes"].get<std::int64_t>() -
            answer["device"]["available_bytes"].get<std::int64_t>() ==
        (233LL << 20) + (1LL << 30));

  const Outcome full = stowage_program({"check", model, "--gpu", "rtx3090", "--in-use", "100GiB"});
  CHECK(full.exit_code == 1);
}

TEST_CASE("a global batch of one step accumulates nothing") {
  const TemporaryFolder folder;
  const std::string model = folder.file("small.yaml", small_net);
  const auto answer = [&](const char* samples) {
    return stowage_program({"batch", model, "--gpu", "rtx3090", "--global-batch", samples}).out;
  };
  CHECK(answer("64").find("\na global batch of 64: 1 step of 64\n") != std::string::npos);
  const std::string many = answer("1000000000");
  CHECK(many.find("\na global batch of 1,000,000,000: ") != std::string::npos);
  CHECK(many.find(", gradients accumulated\n") != std::string::npos);
}

TEST_CASE("batch finds what check confirms") {
  const TemporaryFolder folder;
  const std::string model = folder.file("dense.yaml", dense_net);
  const Outcome outcome = stowage_program(
      {"batch", model, "--gpu-memory", "1GiB", "--global-batch", "1000000", "--format", "json"});
  CHECK(outcome.exit_code == 0);
  const json answer = parsed(outcome);
  const std::int64_t largest = answer["largest"];
  CHECK(answer["largest_safe"] <= largest);
  CHECK(answer["recommended"] <= answer["largest_safe"]);
  CHECK(answer["recommended"].get<std::int64_t>() % 8 == 0);
  REQUIRE_FALSE(answer["curve"].empty());
  REQUIRE(answer["accumulation"].is_object());
  CHECK(answer["curve"].back()["batch"] == largest);
  for (const json& point : answer["curve"]) {
    CHECK(point["device_bytes"] <= answer["device"]["available_bytes"]);
  }
  CHECK(answer["accumulation"]["micro_batch"].get<std::int64_t>() *
            answer["accumulation"]["steps"].get<std::int64_t>() ==
        1000000);
  for (const std::int64_t more : {0, 1}) {
    CHECK(stowage_program(
              {"check", model, "--gpu-memory", "1GiB", "--batch", std::to_string(largest + more)})
              .exit_code == more);
  }
}

TEST_CASE("batch on a card that holds not even one sample") {
  const TemporaryFolder folder;
  const std::string model = folder.file("small.yaml", small_net);
  const Outcome outcome = stowage_program({"batch", model, "--gpu-memory", "1MiB"});
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.out.find("not even one sample fits a generic 1.0 MiB card\n") != std::string::npos);
  const json answer =
      parsed(stowage_program({"batch", model, "--gpu-memory", "1MiB", "--format", "json"}));
  CHECK(answer["largest"] == 0);
  CHECK(answer["culprit"].is_string());
}

TEST_CASE("a card must be named, and mistakes in it are told") {
  CHECK(stowage_program({"check", "mlp"}).err ==
        "<command line>: error: a card is missing: --gpu NAME or --gpu-memory SIZE\n"
        "  stowage gpus lists the names; without a card, stowage summary mlp --batch 1 says what "
        "the tensors take\n");
  CHECK(stowage_program({"check", "mlp", "--gpu", "rtx3090", "--compute-capability", "8"}).err ==
        "<command line>: error: --compute-capability is for the generic card of a bare "
        "--gpu-memory, not for --gpu\n");
  const Outcome unknown = stowage_program({"check", "mlp", "--gpu", "rtx3091"});
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.out.empty());
  CHECK(unknown.err.find("error: unknown GPU 'rtx3091'\n") != std::string::npos);
}

TEST_CASE("a model comes from stdin, from a file, or by name; mistakes have their place") {
  const Outcome piped = stowage_program({"summary", "-", "--format", "json"}, {.input = small_net});
  CHECK(piped.exit_code == 0);
  const json answer = parsed(piped);
  CHECK(answer["model"]["name"] == "small");
  CHECK(answer["model"]["parameters"] == 4 * 9 + 4 + 4 * 6 * 6 * 10 + 10);
  CHECK(answer["model"]["trainable_parameters"] == answer["model"]["parameters"]);
  REQUIRE(answer["layers"].size() == 5);
  CHECK(answer["layers"][0] == json({{"name", "conv"},
                                     {"op", "conv2d"},
                                     {"output_shape", {1, 4, 6, 6}},
                                     {"parameters", 40},
                                     {"flops", 2.0 * 9 * 4 * 6 * 6},
                                     {"saved_bytes", 0}}));

  const Outcome misspelt = stowage_program(
      {"check", testing::source_path("/tests/bad/misspelt.yaml"), "--gpu", "rtx3090"});
  CHECK(misspelt.exit_code == 2);
  CHECK(misspelt.out.empty());
  CHECK(misspelt.err.find("misspelt.yaml:7:27: error: unknown attribute 'chanels' of conv2d\n"
                          "    - conv2d: {name: conv1, chanels: 16, kernel: 3}\n"
                          "                            ^~~~~~~\n"
                          "  did you mean 'channels'?\n") != std::string::npos);

  const Outcome unknown = stowage_program({"summary", "unett"});
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err == "error: there is no model 'unett'\n  did you mean 'unet'?\n");
}

TEST_CASE("an evaluation beside training, in chunks where it does not fit") {
  const Outcome both = stowage_program({"check", "mnist-cnn", "--gpu-memory", "2GiB", "--batch",
                                        "64", "--eval-batch", "28000", "--format", "json"});
  CHECK(both.exit_code == 1);
  const auto json = nlohmann::json::parse(both.out);
  CHECK(json.at("verdict") == "does_not_fit");
  CHECK(json.at("phases").back().at("name") == "evaluation of 28000");
  CHECK(json.at("evaluation").at("fits") == false);
  CHECK(json.at("peak").at("device_bytes") == json.at("evaluation").at("device_bytes"));
  CHECK_FALSE(json.contains("largest_batch"));  // training fits
  const auto chunk = json.at("evaluation").at("largest_chunk").get<std::int64_t>();
  CHECK(chunk > 64);
  CHECK(chunk < 28'000);
  const Outcome chunked = stowage_program({"check", "mnist-cnn", "--gpu-memory", "2GiB", "--batch",
                                           "64", "--eval-batch", std::to_string(chunk)});
  CHECK(chunked.exit_code == 0);
  CHECK(chunked.out.find("fits at once; up to") != std::string::npos);

  const Outcome alone = stowage_program(
      {"check", "mlp", "--gpu-memory", "2GiB", "--mode", "inference", "--eval-batch", "3"});
  CHECK(alone.exit_code == 2);
  CHECK(alone.err.find("--eval-batch is an evaluation beside training") != std::string::npos);
}

TEST_CASE("the rule of thumb stands beside the step's figures") {
  const Outcome json_form = stowage_program(
      {"check", "vgg16", "--gpu", "rtx3090", "--rule-of-thumb", "--format", "json"});
  CHECK(json_form.exit_code == 0);
  const auto rule = nlohmann::json::parse(json_form.out).at("rule_of_thumb");
  CHECK(rule.at("parameter_bytes") == 3 * 4 * std::int64_t{138'357'544});
  CHECK(rule.at("total_bytes").get<std::int64_t>() ==
        rule.at("activation_bytes").get<std::int64_t>() +
            rule.at("parameter_bytes").get<std::int64_t>() +
            rule.at("miscellaneous_bytes").get<std::int64_t>());
  const Outcome table = stowage_program({"check", "vgg16", "--gpu", "rtx3090", "--rule-of-thumb"});
  CHECK(table.out.find("By the rule") != std::string::npos);
}

TEST_CASE("a batch whose bytes leave 64 bits is a mistake that names the layer") {
  const std::string wide = R"(model: wide
inputs: {x: {shape: [batch, 4000000]}}
layers:
  - linear: {name: fc, from: x, features: 4000000}
)";
  const Outcome outcome = stowage_program(
      {"check", "-", "--gpu", "rtx3090", "--batch", "1000000000", "--mode", "inference"},
      {.input = wide});
  // 1e9 * 4e6 * 4 bytes are 1.6e16: no overflow, a clean no.
  CHECK(outcome.exit_code == 1);
}

TEST_CASE("training a model without a loss is refused") {
  const std::string lossless = R"(model: lossless
inputs: {x: {shape: [batch, 4]}}
layers:
  - linear: {name: fc, from: x, features: 4}
)";
  const Outcome training =
      stowage_program({"check", "-", "--gpu", "rtx3090", "--mode", "train"}, {.input = lossless});
  CHECK(training.exit_code == 2);
  CHECK(training.err ==
        "<command line>: error: the model 'lossless' has no loss, so that it cannot be trained\n"
        "  give its description a loss, or use --mode inference\n");
  const json inference = parsed(
      stowage_program({"check", "-", "--gpu", "rtx3090", "--format", "json"}, {.input = lossless}));
  CHECK(inference["settings"]["mode"] == "inference");
  CHECK(inference["settings"]["optimizer"].is_null());
  CHECK(inference["settings"]["accumulation"].is_null());
  const Outcome idle = stowage_program({"check", "-", "--gpu", "rtx3090", "--optimizer", "adam"},
                                       {.input = lossless});
  CHECK(idle.exit_code == 0);
  CHECK(idle.err == "warning: an inference has no use for an optimizer\n");
}

TEST_CASE("the same question gets the same bytes") {
  const std::vector<std::string> words{"check", "mlp", "--gpu", "rtx3090", "--batch", "64"};
  const Outcome first = stowage_program(words);
  CHECK(first.exit_code == 0);
  CHECK(first.out == stowage_program(words).out);
}

TEST_CASE("settings say all that changes a step") {
  const auto settings = [](std::vector<std::string> options) {
    std::vector<std::string> words{"check", "mlp", "--gpu", "rtx3090", "--format", "json"};
    words.insert(words.end(), options.begin(), options.end());
    return parsed(stowage_program(words))["settings"];
  };
  const json plain = settings({});
  CHECK(plain["accumulation"] == 1);
  CHECK(plain["zero_grad"] == "to_none");
  CHECK(plain["master_weights"] == false);
  CHECK(plain["master_gradients"] == false);
  CHECK(plain["augment"] == 0);
  CHECK(plain["prefetch"] == 0);
  const json mixed =
      settings({"--precision", "mixed-bf16", "--master-gradients", "--accumulation", "5"});
  CHECK(mixed["accumulation"] == 5);
  CHECK(mixed["precision"] == "mixed-bf16");
  CHECK(mixed["master_weights"] == true);
  CHECK(mixed["master_gradients"] == true);
  const Outcome alone = stowage_program({"check", "mlp", "--gpu", "rtx3090", "--master-gradients"});
  CHECK(alone.exit_code == 2);
  CHECK(alone.err ==
        "<command line>: error: gradients are kept in fp32 beside fp32 parameters only under the "
        "precisions mixed-fp16 and mixed-bf16\n");
}

TEST_CASE("one file that is no model leaves the others in the list") {
  const TemporaryFolder folder;
  for (const char* name : {"models", "gpus", "hosts"}) {
    std::filesystem::create_directory(folder.path(name));
  }
  const std::string good = folder.file(
      "models/good.yaml",
      "model: good\ninputs: {x: {shape: [batch, 4]}}\nlayers: [linear: {features: 2}]\n");
  const std::string bad = folder.file(
      "models/bad.yaml", "model: bad\ninputs: {x: {shape: [batch, 4]}}\nlayers: [rellu, linear]\n");
  const Outcome listed = stowage_program({"models", "--configs", folder.path(), "--format", "csv"});
  CHECK(listed.exit_code == 0);
  CHECK(stowage_program({"summary", good}).exit_code == 0);
  CHECK(listed.out == "parameters,operators,name,source\n10,1,good,\n");
  CHECK(listed.err == bad +
                          ":3:10: warning: 'bad.yaml' is left out: unknown operator or block "
                          "'rellu'\n"
                          "  layers: [rellu, linear]\n"
                          "           ^~~~~\n"
                          "  and 1 more mistake: stowage summary bad --configs " +
                          folder.path() + "\n");
}

TEST_CASE("the catalogues list what they have") {
  const json models = parsed(stowage_program({"models", "--format", "json"}));
  bool has_vgg16 = false;
  for (const json& model : models["models"]) {
    if (model["name"] == "vgg16") {
      has_vgg16 = true;
      CHECK(model["parameters"] == 138357544);
    }
  }
  CHECK(has_vgg16);
  const json ops = parsed(stowage_program({"ops", "conv2d", "--format", "json"}));
  REQUIRE(ops["ops"].size() == 1);
  CHECK(ops["ops"][0]["name"] == "conv2d");
  const Outcome misspelt = stowage_program({"ops", "con2d"});
  CHECK(misspelt.exit_code == 2);
  CHECK(misspelt.err ==
        "<command line>: error: there is no operator 'con2d'\n  did you mean 'conv2d'?\n");
  CHECK(stowage_program({"gpus", "--format", "csv"}).out.find("GeForce RTX 3090\n") !=
        std::string::npos);
}

TEST_CASE("a catalogue lists what has the asked-for part in its name") {
  const auto names = [](const std::string& catalogue, const std::string& part) {
    std::vector<std::string> all;
    const json listed = parsed(stowage_program({catalogue, part, "--format", "json"}));
    for (const json& row : listed[catalogue]) all.push_back(row["name"]);
    return all;
  };
  CHECK(names("models", "ResNet-1") ==
        std::vector<std::string>{"resnet101", "resnet152", "resnet18"});
  CHECK(names("gpus", "3090") ==
        std::vector<std::string>{"GeForce RTX 3090", "GeForce RTX 3090 Ti"});
  CHECK(names("gpus", "ti 3090") == std::vector<std::string>{"GeForce RTX 3090 Ti"});
  const Outcome none = stowage_program({"models", "rasnet"});
  CHECK(none.exit_code == 2);
  CHECK(none.err ==
        "<command line>: error: no model has 'rasnet' in its name\n"
        "  stowage models lists them all\n");
}

TEST_CASE("of a card of which nothing is left nothing is available") {
  const Outcome none = stowage_program({"check", "-", "--gpu", "rtx3090", "--runtime", "ideal",
                                        "--in-use", "20GiB", "--reserve", "9GiB"},
                                       {.input = small_net});
  CHECK(none.exit_code == 1);
  CHECK(none.out.find("-5.3 GiB available") == std::string::npos);
  CHECK(none.out.find(" wanted, nothing available on GeForce RTX 3090, ") != std::string::npos);
  CHECK(none.out.find("missing before the step begins\n") != std::string::npos);
}

TEST_CASE("check's CSV has the verdict and the sums in front of the tensors") {
  const auto lines = [](const std::string& memory) {
    const Outcome checked = stowage_program(
        {"check", "-", "-b", "10000", "--gpu-memory", memory, "--runtime=ideal", "--format=csv"},
        {.input = small_net});
    CHECK(checked.exit_code == (memory == "8GiB" ? 0 : 1));
    return checked.out;
  };
  const std::string fits = lines("8GiB");
  CHECK(fits.starts_with("row,bytes,cumulative_share,class,layer,name\nverdict,"));
  CHECK(fits.find(",,,,fits\nsum,") != std::string::npos);
  CHECK(fits.find("\ntensor,") != std::string::npos);
  CHECK(lines("1MiB").find(",,,,does_not_fit\nsum,") != std::string::npos);
}

TEST_CASE("summary says what a step's tensors take at a batch, without a card") {
  const json told =
      parsed(stowage_program({"summary", "vgg16", "-b", "8", "--format", "json"}))["memory"];
  const json checked = parsed(stowage_program({"check", "vgg16", "-b", "8", "--gpu-memory", "80GiB",
                                               "--runtime", "ideal", "--format=json"}));
  CHECK(told["batch"] == 8);
  CHECK(told["mode"] == "train");
  CHECK(told["footprint"]["parameter"] == checked["footprint"]["parameter"]);
  // Beside the workspaces, which only a card has.
  CHECK(told["peak_tensor_bytes"].get<std::int64_t>() <=
        checked["peak"]["tensor_bytes"].get<std::int64_t>());
  std::int64_t sum = 0;
  for (const auto& [name, bytes] : told["footprint"].items()) sum += bytes.get<std::int64_t>();
  CHECK(sum == told["peak_tensor_bytes"]);
  CHECK(parsed(stowage_program({"summary", "vgg16", "--format", "json"}))["memory"].is_null());
}

}  // namespace stowage
