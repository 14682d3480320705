#include "answers/subject/file_kind.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/cli/program.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

using testing::Outcome;
using testing::stowage_program;
using testing::TemporaryFolder;
using namespace std::string_literals;

TEST_CASE("a file's kind is told by its content") {
  const auto kind = [](const std::string& content) { return foreign_kind(content).value_or("-"); };
  CHECK(kind("model: a\nlayers: []\n") == "-");
  CHECK(kind("") == "-");
  CHECK(kind("{\"model\": \"a\", \"layers\": []}") == "-");
  // torch.onnx: ir_version 8, producer_name "pytorch"
  CHECK(kind("\x08\x08\x12\x07pytorch\x1a\x05"s
             "2.1.0:\x90\x01") == "an ONNX model");
  CHECK(kind("\x89HDF\r\n\x1a\n\x00\x00"s) == "HDF5 (weights, or a Keras model)");
  CHECK(kind("PK\x03\x04\x00\x00\x08\x08\x00\x00"s
             "archive/data.pkl\x80\x02") == "a PyTorch checkpoint");
  CHECK(kind("PK\x03\x04"s
             "net/data.pkl net/code/__torch__.py") == "a TorchScript model");
  CHECK(kind("PK\x03\x04"s
             "metadata.json config.json model.weights.h5") == "a Keras model");
  CHECK(kind("PK\x03\x04word/document.xml") == "a zip archive");
  CHECK(kind("\x38\x00\x00\x00\x00\x00\x00\x00{\"weight\":{\"dtype\":\"F32\""s) ==
        "safetensors (weights without a network)");
  CHECK(kind("GGUF\x03\x00\x00\x00"s) == "a GGUF model");
  CHECK(kind("\x1f\x8b\x08\x00"s) == "gzip-compressed");
  CHECK(kind("\x80\x04\x95\x10"s) == "a Python pickle");
  CHECK(kind("\x7f"
             "ELF\x02\x01"s) == "a program or a library");
  CHECK(kind("abc\0def"s) == "binary");
  CHECK(kind("import torch\nmodel = torch.nn.Linear(2, 3)\n") == "a program's source");
  CHECK(kind("{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\"}") ==
        "JSON of a Hugging Face configuration");
  CHECK(kind("{\"class_name\": \"Functional\", \"config\": {}}") == "JSON of a Keras model");
  CHECK(kind("{\"schema_version\": 1, \"verdict\": \"fits\"}") ==
        "JSON that stowage printed as a result");
  CHECK(kind(" {\"a\": 1}") == "JSON of another kind");
}

TEST_CASE("a plan, a card or a foreign file where a model is wanted is named as what it is") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& name, const std::string& content) {
    const std::string path = folder.file(name, content);
    const Outcome outcome = stowage_program({"summary", path});
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    std::string text = outcome.err;
    for (std::size_t at; (at = text.find(folder.path() + "/")) != std::string::npos;) {
      text.erase(at, folder.path().size() + 1);
    }
    return text;
  };
  CHECK(refused("p.yaml", "# a plan\nstowage_plan: 3\nname: cheapest\n") ==
        "error: 'p.yaml' is a plan, not a model's description\n"
        "  stowage validate p.yaml checks it\n");
  CHECK(refused("my card.yaml", "name: lab\ncompute_capability: 7.5\n") ==
        "error: 'my card.yaml' is a card's file, not a model's description\n"
        "  --gpu 'my card.yaml' takes it, beside a model\n");
  CHECK(refused("host.yaml", "name: desk\nmemory: 32 GiB\npinned_limit: 16 GiB\n") ==
        "error: 'host.yaml' is a host's file, not a model's description\n"
        "  stowage plan takes it as --host host.yaml, beside a model\n");
  CHECK(refused("train.py", "import torch\n") ==
        "error: 'train.py' is a program's source, not a model's description\n"
        "  python -m stowage record train.py:FUNCTION --batch N -o step.json runs one step of a "
        "model "
        "that a function of it returns, without a GPU; step.json is read (docs/record.md)\n");
  CHECK(refused("my net.keras", "PK\x03\x04 metadata.json config.json model.weights.h5") ==
        "error: 'my net.keras' is a Keras model, not a model's description\n"
        "  unzip -p 'my net.keras' config.json > model.json writes its network, which is read\n");
  CHECK(
      refused("weights.pt", "PK\x03\x04 archive/data.pkl") ==
      "error: 'weights.pt' is a PyTorch checkpoint, not a model's description\n"
      "  it has weights; python -m stowage record FILE.py:FUNCTION --batch N -o step.json records "
      "the program that makes their model, and step.json is read (docs/record.md)\n");
  CHECK(
      refused("net.h5", "\x89HDF\r\n\x1a\n") ==
      "error: 'net.h5' is HDF5 (weights, or a Keras model), not a model's description\n"
      "  of a Keras model, what keras.models.load_model(FILE, compile=False).to_json() returns is "
      "read (docs/keras.md)\n");
  CHECK(refused("net.onnx",
                "\x08\x08\x12\x07pytorch\x1a\x05"s
                "2.1.0") ==
        "net.onnx: error: byte 18: the file ends before its graph\n"
        "  is the file whole? onnx.checker.check_model says what else may be wrong with it\n");
}

TEST_CASE("where the content says nothing, the name does") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& name, const std::string& content) {
    const std::string path = folder.file(name, content);
    const Outcome outcome =
        stowage_program({"check", name, "--gpu", "t4"}, {.folder = folder.path()});
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  const std::string weights =
      "  it has weights; python -m stowage record FILE.py:FUNCTION --batch N -o step.json records "
      "the program that makes their model, and step.json is read (docs/record.md)\n";
  CHECK(refused("w.pth", "") ==
        "error: 'w.pth' is empty, and named as a PyTorch checkpoint\n" + weights);
  CHECK(refused("last.ckpt", "abc\0def"s) ==
        "error: 'last.ckpt' is named as a PyTorch checkpoint, and is no model's description\n" +
            weights);
  CHECK(refused("pytorch_model.bin", "\0\1\2"s)
            .starts_with("error: 'pytorch_model.bin' is named as"));
  CHECK(refused("m.pkl", "\n")
            .starts_with("error: 'm.pkl' is empty, and named as a Python pickle\n"));
  CHECK(refused("empty.keras", "") ==
        "error: 'empty.keras' is empty, and named as a Keras model\n"
        "  unzip -p empty.keras config.json > model.json writes its network, which is read\n");
  CHECK(refused("net.tflite", "\x1c\0\0\0TFL3\x14\0"s) ==
        "error: 'net.tflite' is a TensorFlow Lite model, not a model's description\n"
        "  python -m tf2onnx.convert --tflite net.tflite --output model.onnx writes its network, "
        "which is read\n");
  const std::string converted =
      "  it holds compiled or converted layers; the ONNX file or the program that it was made from "
      "is read: stowage check model.onnx, or python -m stowage record FILE.py:FUNCTION --batch N "
      "-o "
      "step.json (docs/record.md)\n";
  CHECK(refused("net.engine", "ftrt\0\0"s) ==
        "error: 'net.engine' is named as a TensorRT engine, and is no model's description\n" +
            converted);
  CHECK(refused("net.mlmodel", "\x08\x04\0"s) ==
        "error: 'net.mlmodel' is named as a Core ML model, and is no model's description\n" +
            converted);
  CHECK(refused("net.xml", "<?xml version=\"1.0\"?>\n<net name=\"n\">\n") ==
        "error: 'net.xml' is an OpenVINO model, not a model's description\n" + converted);
  CHECK(refused("a.py", "") ==
        "error: 'a.py' is empty, and named as a program's source\n"
        "  python -m stowage record a.py:FUNCTION --batch N -o step.json runs one step of a model "
        "that a function of it returns, without a GPU; step.json is read (docs/record.md)\n");
  CHECK(refused("n.ipynb", "{\"cells\": [{\"cell_type\": \"code\"}], \"nbformat\": 4}") ==
        "error: 'n.ipynb' is a Jupyter notebook, not a model's description\n"
        "  jupyter nbconvert --to script n.ipynb writes it as a program; then python -m stowage "
        "record n.py:FUNCTION --batch N -o step.json runs one step of it, and step.json is read "
        "(docs/record.md)\n");
  CHECK(refused("a.zip", "PK\x03\x04word/document.xml") ==
        "error: 'a.zip' is a zip archive, not a model's description\n"
        "  unzip a.zip unpacks it; name the model in it\n");
  CHECK(refused("a.tar.gz", "\x1f\x8b\x08\0"s) ==
        "error: 'a.tar.gz' is gzip-compressed, not a model's description\n"
        "  tar xf a.tar.gz unpacks it; name the model in it\n");
  CHECK(refused("net.yaml.gz", "\x1f\x8b\x08\0"s) ==
        "error: 'net.yaml.gz' is gzip-compressed, not a model's description\n"
        "  gzip -dc net.yaml.gz | stowage check - --gpu NAME reads what it holds\n");
  CHECK(refused("a.tar", std::string(257, '\0') + "ustar\0"s) ==
        "error: 'a.tar' is a tar archive, not a model's description\n"
        "  tar xf a.tar unpacks it; name the model in it\n");
}

TEST_CASE("a description is one, whatever its file is named") {
  const TemporaryFolder folder;
  const std::string net = "model: a\ninputs: {x: {shape: [batch, 4]}}\nlayers:\n  - relu\n";
  for (const char* name : {"net.pt", "net.bin", "net.py", "net.zip"}) {
    CHECK(stowage_program({"summary", folder.file(name, net)}).exit_code == 0);
  }
}

TEST_CASE("a folder of another framework's model is named as what it is") {
  const TemporaryFolder folder;
  const std::string saved = folder.path() + "/saved";
  std::filesystem::create_directory(saved);
  const auto refused = [&] {
    const Outcome outcome =
        stowage_program({"check", "./saved", "--gpu", "t4"}, {.folder = folder.path()});
    CHECK(outcome.exit_code == 2);
    return outcome.err;
  };
  CHECK(refused() ==
        "<command line>: error: the folder './saved' has no model\n"
        "  models in a folder end in .yaml, .yml, .json or .onnx, or are folders with a "
        "config.json\n");
  REQUIRE_FALSE(folder.file("saved/saved_model.pb", "\x08\x01").empty());
  CHECK(refused() ==
        "error: './saved' is the folder of a TensorFlow SavedModel, not a model's description\n"
        "  python -m tf2onnx.convert --saved-model ./saved --output model.onnx writes its network, "
        "which is read\n");
}

TEST_CASE("a command of the Python part is refused with the line to type") {
  const Outcome outcome = stowage_program({"record", "my net.py", "--batch", "8"});
  CHECK(outcome.exit_code == 2);
  const std::string python = testing::source_path("/python");
  CHECK(outcome.err ==
        "<command line>: error: 'record' is a command of the Python part, which runs your code in "
        "your Python\n  PYTHONPATH=" +
            python + " python3 -m stowage record 'my net.py' --batch 8 -o step.json\n");
  const Outcome bare = stowage_program({"record"});
  CHECK(bare.err.ends_with("python3 -m stowage record FILE.py -o step.json\n"));
  const TemporaryFolder folder;
  REQUIRE_FALSE(folder.file("x.py", "import torch\n").empty());
  CHECK(stowage_program({"export", "x.py"}, {.folder = folder.path()}).err ==
        "error: 'x.py' is a program's source, not a plan or a model's description\n"
        "  python -m stowage export x.py:FUNCTION -o model.yaml writes a description of a model "
        "that a function of it returns (docs/export.md)\n");
}

TEST_CASE("a model where a plan is wanted is named as what it is") {
  const Outcome model =
      stowage_program({"validate", "-"}, {.input = "model: a\nlayers:\n  - relu\n"});
  CHECK(model.exit_code == 2);
  CHECK(model.err ==
        "error: 'stdin' is a model's description, not a plan\n"
        "  stowage plan - --gpu NAME -o plan.yaml makes a plan of it\n");
  const Outcome zip = stowage_program({"validate", "-"}, {.input = "PK\x03\x04zip"});
  CHECK(zip.err ==
        "error: 'stdin' is a zip archive, not a plan\n"
        "  stowage plan MODEL --gpu NAME -o plan.yaml makes a plan\n");
}

}  // namespace stowage
