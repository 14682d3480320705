// calibrate(): measures on a card what a process takes of its memory, and how fast it copies and
// computes.
//
// The calling process starts to use the GPU step by step: the context, then cuBLAS with a small
// product, then cuDNN with a small convolution and its two gradients. After each step the driver is
// asked how much of the device's memory is in use; other programs should not use the GPU meanwhile.
// Then rates are measured: copies over the link (pinned and pageable, both ways), copies on the
// device, and matrix products. No setting of the device is changed.
#pragma once

#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/card/software_stack.hpp"

namespace stowage {

/// The libraries' names. Tests replace them.
struct CalibrationLibraries {
  std::string nvml = "libnvidia-ml.so.1";
  std::string cuda = "libcuda.so.1";
  std::vector<std::string> cublas;  ///< empty: as library_places() finds it
  std::string cudnn;                ///< "": as cudnn_forwarder() finds it
};

/// Bytes a second and operations a second, the best of five runs.
struct MeasuredRates {
  double h2d = 0, d2h = 0, pageable_h2d = 0;
  double memory = 0;                    ///< bytes read plus bytes written
  double fp32 = 0, tf32 = 0, fp16 = 0;  ///< products of square matrices; tf32 0: none
};

struct Calibration {
  std::string name;  ///< in the driver's words
  std::string driver;
  SoftwareStack stack;  ///< the newest CUDA that the driver runs
  Bytes nvml_total, cuda_total;
  Bytes context;        ///< what a process takes before it calls a library
  Bytes cublas, cudnn;  ///< what its first use added, without tensors and workspaces
  std::string cudnn_version;
  std::string cudnn_device;  ///< cuDNN's own text of the device; "": cuDNN gave none
  MeasuredRates rates;
};

/// `device`: its number in nvidia-smi. Errors: no driver, no such device, a device that CUDA does
/// not show (CUDA_VISIBLE_DEVICES), a library that is missing or fails (with its number), less than
/// 1 GiB of free memory on the device.
[[nodiscard]] Result<Calibration> calibrate(int device, const CalibrationLibraries& libraries = {});

/// The calibration as a file (read_calibration of estimator/card/card_file.hpp). `card_name`: the
/// catalogue's name of the card. `made_by`: the source that the file names, "stowage probe".
[[nodiscard]] std::string calibration_yaml(const Calibration& calibration,
                                           const std::string& card_name, std::string_view made_by);

}  // namespace stowage
