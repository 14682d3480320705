// gpu_tests: the tests that need a GPU.
//
//   gpu_tests                       runs on the GPU of this machine; writes the runs to
//                                   docs/gpu-runs.md. Without a GPU it says so and exits 77
//   gpu_tests --document FILE       writes to another file, which is read first if it exists
//   gpu_tests --no-document         writes no document
//   gpu_tests --kernel NAME         tries only this kernel
//   gpu_tests --pretended           runs on libraries that pretend to be CUDA's; writes nothing
//   gpu_tests --write-list          runs nothing: gives the document the rows of the kernel
//                                   table, and keeps the runs that it has
//   gpu_tests --test-suite=document runs the tests of the document, which need no GPU
//
// doctest's own options may be added to all of these.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/gpu/machine.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage::testing {
void skip(const std::string& reason) { std::printf("SKIPPED: %s\n", reason.c_str()); }
}  // namespace stowage::testing

namespace stowage::test {
namespace {

struct Options {
  bool pretended = false, write_list = false, document_alone = false;
  std::string document = testing::source_path("/docs/gpu-runs.md");  ///< "": none
  std::string kernel;                                                ///< "": all
};

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    options.pretended = options.pretended || argument == "--pretended";
    options.write_list = options.write_list || argument == "--write-list";
    options.document_alone = options.document_alone || argument == "--test-suite=document";
    if (argument == "--no-document") options.document = "";
    if (argument == "--document" && i + 1 < argc) options.document = argv[++i];
    if (argument == "--kernel" && i + 1 < argc) options.kernel = argv[++i];
  }
  return options;
}

/// Reads the document, adds the machine's runs, and writes it. Returns whether that succeeded.
bool rewrite(const std::string& document, const GpuMachine* machine) {
  std::ifstream file(document);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto known = read_gpu_runs(text);
  if (!known) {
    std::fprintf(stderr, "%s: %s\n", document.c_str(), known.error().front().message.c_str());
    return false;
  }
  const GpuRuns runs = machine == nullptr ? rows_of_table(*known) : machine->updated(*known);
  if (!(std::ofstream(document) << gpu_runs_text(runs)).flush()) {
    std::fprintf(stderr, "%s cannot be written\n", document.c_str());
    return false;
  }
  std::printf("%s: %s\n", document.c_str(), gpu_runs_summary(runs).c_str());
  return true;
}

/// Runs the tests on the machine, and records the runs on a GPU.
int run_on_machine(doctest::Context& context, const Options& options) {
  std::printf("%s\n", machine().text().c_str());
  const int status = context.run();
  if (!machine().not_recorded_reason().empty()) {
    std::printf("Not recorded as run on a GPU: %s\n", machine().not_recorded_reason().c_str());
    return status != 0 || options.pretended ? status : 1;
  }
  if (options.document.empty() || machine().tried() == 0) return status;
  return rewrite(options.document, &machine()) ? status : 1;
}

int run_gpu_tests(int argc, char** argv) {
  const Options options = options_of(argc, argv);
  doctest::Context context(argc, argv);
  if (options.write_list) return rewrite(options.document, nullptr) ? 0 : 1;
  if (options.document_alone) return context.run();
  context.addFilter("test-suite-exclude", "document");
  auto opened = GpuMachine::open(options.pretended);
  if (!opened) {
    std::printf("SKIPPED, nothing of this has run on a GPU: %s\n",
                opened.error().front().message.c_str());
    return testing::skipped_exit_code;
  }
  opened->try_only(options.kernel);
  set_machine(*std::move(opened));
  const int status = run_on_machine(context, options);
  close_machine();  // before its driver is unloaded
  return status;
}

}  // namespace
}  // namespace stowage::test

int main(int argc, char** argv) { return stowage::test::run_gpu_tests(argc, argv); }
