#include "estimator/card/kernel_code.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace stowage {

namespace {

using Code = ArchitectureCode;

// libtorch_cuda of 1.10.2, which has cuBLAS and cuDNN linked into it; libtorch_cuda_cu and _cpp.
constexpr std::array pytorch_10_2{Code{35, 132}, Code{37, 258}, Code{50, 625}, Code{60, 649},
                                  Code{61, 147}, Code{70, 992}, Code{75, 442}};
constexpr std::array pytorch_11_7{Code{35, 29},  Code{37, 187}, Code{50, 339}, Code{60, 344},
                                  Code{70, 414}, Code{75, 407}, Code{80, 426}, Code{86, 416}};
constexpr std::array pytorch_12_1{Code{50, 312}, Code{60, 314}, Code{70, 369}, Code{75, 371},
                                  Code{80, 363}, Code{86, 364}, Code{90, 402}};
constexpr std::array pytorch_13_0{Code{75, 477}, Code{80, 533},  Code{86, 532},
                                  Code{89, 3},   Code{90, 613},  Code{100, 663},
                                  Code{103, 6},  Code{120, 679}, Code{121, 2}};
constexpr std::array tensorflow_11_2{Code{35, 89},  Code{50, 134}, Code{60, 133},
                                     Code{70, 160}, Code{75, 157}, Code{80, 162}};
// libtensorflow_cc and _framework.
constexpr std::array tensorflow_12_5{Code{60, 159}, Code{70, 214}, Code{80, 210}, Code{89, 210},
                                     Code{90, 252}};
// libcublas; libcublasLt loads its modules on demand whatever the mode.
constexpr std::array cublas_11{Code{35, 29}, Code{50, 36}, Code{52, 0},  Code{60, 39}, Code{61, 41},
                               Code{70, 52}, Code{75, 51}, Code{80, 51}, Code{86, 51}};
constexpr std::array cublas_12{Code{50, 33}, Code{60, 33}, Code{61, 22}, Code{70, 41},
                               Code{75, 3},  Code{80, 42}, Code{86, 27}, Code{90, 46}};
constexpr std::array cublas_13{Code{75, 39}, Code{80, 41},  Code{86, 27},
                               Code{90, 45}, Code{100, 46}, Code{120, 59}};
// cnn_infer and ops_infer; with cuDNN 9 cnn, ops and both libraries of engines.
constexpr std::array cudnn_8_5{Code{35, 88},  Code{50, 137}, Code{60, 139}, Code{61, 136},
                               Code{70, 198}, Code{75, 183}, Code{80, 230}, Code{86, 194}};
constexpr std::array cudnn_8_9{Code{50, 190}, Code{60, 189}, Code{61, 180}, Code{70, 242},
                               Code{75, 231}, Code{80, 258}, Code{86, 236}, Code{90, 288}};
constexpr std::array cudnn_9_19{Code{70, 25}, Code{75, 207},  Code{80, 208},
                                Code{86, 51}, Code{90, 230},  Code{100, 257},
                                Code{103, 0}, Code{120, 275}, Code{121, 225}};
// cnn_train and ops_train.
constexpr std::array cudnn_8_5_training{Code{35, 18}, Code{50, 26}, Code{60, 35}, Code{61, 35},
                                        Code{70, 53}, Code{75, 48}, Code{80, 65}, Code{86, 46}};
constexpr std::array cudnn_8_9_training{Code{50, 42}, Code{60, 47}, Code{61, 47}, Code{70, 65},
                                        Code{75, 62}, Code{80, 64}, Code{86, 58}, Code{90, 97}};
constexpr std::array within_another{Code{35, 0}};

using enum KernelLibrary;
constexpr std::array rows{
    KernelCodeRow{pytorch, "PyTorch 1.10.2", {10, 2}, pytorch_10_2},
    KernelCodeRow{pytorch, "PyTorch 1.13.1", {11, 7}, pytorch_11_7},
    KernelCodeRow{pytorch, "PyTorch 2.1.1", {12, 1}, pytorch_12_1},
    KernelCodeRow{pytorch, "PyTorch 2.11.0", {13, 0}, pytorch_13_0},
    KernelCodeRow{tensorflow, "TensorFlow 2.5.0", {11, 2}, tensorflow_11_2},
    KernelCodeRow{tensorflow, "TensorFlow 2.18.0", {12, 5}, tensorflow_12_5},
    KernelCodeRow{cublas, "cuBLAS 11.10.3", {11, 7}, cublas_11},
    KernelCodeRow{cublas, "cuBLAS 12.1.3", {12, 1}, cublas_12},
    KernelCodeRow{cublas, "cuBLAS 13.1.0", {13, 0}, cublas_13},
    KernelCodeRow{cudnn_inference, "cuDNN 8.5.0", {11, 7}, cudnn_8_5},
    KernelCodeRow{cudnn_inference, "cuDNN 8.9.2", {12, 1}, cudnn_8_9},
    KernelCodeRow{cudnn_inference, "cuDNN 9.19.0", {13, 0}, cudnn_9_19},
    KernelCodeRow{cudnn_training, "cuDNN 8.5.0", {11, 7}, cudnn_8_5_training},
    KernelCodeRow{cudnn_training, "cuDNN 8.9.2", {12, 1}, cudnn_8_9_training},
    KernelCodeRow{cudnn_training, "cuDNN 9.19.0", {13, 0}, within_another},
};

const KernelCodeRow& row_for(KernelLibrary library, const ReleaseVersion& cuda) {
  const KernelCodeRow* found = nullptr;
  for (const KernelCodeRow& row : rows) {
    if (row.library == library && (found == nullptr || row.cuda <= cuda)) found = &row;
  }
  return *found;
}

// A device runs the programs of its own generation's earlier architectures.
const ArchitectureCode& code_for(std::span<const ArchitectureCode> code, int architecture) {
  const ArchitectureCode* best = nullptr;
  for (const ArchitectureCode& candidate : code) {
    if (candidate.architecture > architecture) break;
    const bool same_generation = candidate.architecture / 10 == architecture / 10;
    const bool better = best == nullptr || best->architecture / 10 < candidate.architecture / 10 ||
                        (same_generation && best->mebibytes <= candidate.mebibytes);
    if (better) best = &candidate;
  }
  return best != nullptr ? *best : code.front();
}

}  // namespace

std::span<const KernelCodeRow> kernel_code_rows() { return rows; }

KernelCode kernel_code(KernelLibrary library, const ReleaseVersion& cuda,
                       double compute_capability) {
  const KernelCodeRow& row = row_for(library, cuda);
  const int architecture = static_cast<int>(std::lround(compute_capability * 10));
  const ArchitectureCode& code = code_for(row.code, architecture);
  return {Bytes(std::int64_t{code.mebibytes} << 20), row.release, code.architecture};
}

}  // namespace stowage
