// calibrate(): what a card takes and does, measured on it.
//
// A process is started towards the GPU step by step: the context, then cuBLAS with a small product,
// then cuDNN with a small convolution and its two gradients. After each step the driver is asked
// how much of the device is in use, so that other programs should leave it alone meanwhile. Then
// rates: copies over the link (pinned and pageable, both ways), copies on the device, and matrix
// products. Nothing of the device's settings is changed.
#pragma once

#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/card/software_stack.hpp"

namespace stowage {

/// The libraries' names, so that a test may put its own in their place.
struct CalibrationLibraries {
  std::string nvml = "libnvidia-ml.so.1";
  std::string cuda = "libcuda.so.1";
  std::vector<std::string> cublas;  ///< empty: where library_places() finds it
  std::string cudnn;                ///< "": where cudnn_forwarder() finds it
};

/// Bytes a second and operations a second: the best of five.
struct MeasuredRates {
  double h2d = 0, d2h = 0, pageable_h2d = 0;
  double memory = 0;                    ///< read and written together
  double fp32 = 0, tf32 = 0, fp16 = 0;  ///< of a product of square matrices; tf32 0: none
};

struct Calibration {
  std::string name;  ///< as the driver writes it
  std::string driver;
  SoftwareStack stack;  ///< the newest CUDA that the driver runs
  Bytes nvml_total, cuda_total;
  Bytes context;        ///< what the device lost to the process before it did anything
  Bytes cublas, cudnn;  ///< what each first use took besides, without tensors and workspaces
  std::string cudnn_version;
  std::string cudnn_device;  ///< cuDNN's own text of the device; "": it could not be had
  MeasuredRates rates;
};

/// `device`: as nvidia-smi numbers them. Errors: no driver, no such device, one that CUDA does not
/// show (CUDA_VISIBLE_DEVICES), a library that is missing or fails (with its number), a device with
/// too little free memory (it wants 1 GiB).
[[nodiscard]] Result<Calibration> calibrate(int device, const CalibrationLibraries& libraries = {});

/// The calibration as a file (read_calibration of estimator/card/card_file.hpp), of the card that
/// the catalogue calls `card_name`. `made_by`: the source that it names, "stowage probe".
[[nodiscard]] std::string calibration_yaml(const Calibration& calibration,
                                           const std::string& card_name, std::string_view made_by);

}  // namespace stowage
