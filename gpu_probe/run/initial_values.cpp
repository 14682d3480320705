#include "gpu_probe/run/initial_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "gpu_probe/run/float_elements.hpp"

namespace stowage {
namespace {

/// The numbers for which a reader's function is defined.
enum class Domain { any, positive, probability };

/// How a storage's values are drawn: uniformly around a centre, or as whole numbers below `limit`.
struct Distribution {
  double centre = 0;
  double width = 0;  // half of the interval's length
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  DataType type = DataType::float32;
  Domain domain = Domain::any;
  bool bytes_of_weights = false;  // of at most 8 bits each; no float8 among them is NaN
};

constexpr double unit_width = 1.7320508075688772;  // sqrt(3): variance 1
constexpr double small_width = 0.1;

/// Random numbers: splitmix64 of a counter that starts at a hash (FNV-1a) of the name.
class RandomNumbers {
 public:
  explicit RandomNumbers(const std::string& name) {
    for (const char c : name) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  double within_one() { return static_cast<double>(next() >> 11) * 0x1p-52 - 1; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

bool moves_elements(Kernel kernel) {
  return kernel == Kernel::copy || kernel == Kernel::slice || kernel == Kernel::permute ||
         kernel == Kernel::concatenate || kernel == Kernel::cast || kernel == Kernel::roll;
}

bool is_batch_norm(Kernel kernel) {
  return kernel == Kernel::batch_norm_forward || kernel == Kernel::batch_norm_inference;
}

bool is_norm(Kernel kernel) {
  return is_batch_norm(kernel) || kernel == Kernel::layer_norm_forward ||
         kernel == Kernel::group_norm_forward || kernel == Kernel::rms_norm_forward;
}

/// Whether it reads a weight's bytes, and then their scales.
bool dequantizes_weight(Kernel kernel) {
  return kernel == Kernel::dequantize_4bit || kernel == Kernel::dequantize_rows ||
         kernel == Kernel::dequantize_blocks;
}

bool wants_classes(Kernel kernel) {
  return kernel == Kernel::cross_entropy_forward || kernel == Kernel::nll_loss_forward;
}

/// Whether its further arguments are indices along an axis of the first.
bool indexes_along_axis(Kernel kernel) {
  return kernel == Kernel::take_forward || kernel == Kernel::gather_forward ||
         kernel == Kernel::index_add || kernel == Kernel::scatter_add;
}

/// The domain of a unary function.
Domain domain_of(const Attributes& attributes) {
  const std::string& function = attributes.text("function");
  for (const std::string_view positive : {"log", "sqrt", "rsqrt", "reciprocal", "log1p"}) {
    if (function == positive) return Domain::positive;
  }
  if (function != "power") return Domain::any;
  const double exponent = attributes.real("exponent");
  return exponent >= 0 && exponent == std::floor(exponent) ? Domain::any : Domain::positive;
}

std::int64_t fan_in(const std::vector<std::int64_t>& shape) {
  std::int64_t product = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) product *= shape[i];
  return std::max<std::int64_t>(product, 1);
}

/// The distribution of each storage, as its readers need it.
class Distributions {
 public:
  Distributions(const StepGraph& graph, std::int64_t batch)
      : batch_(batch), distributions_(graph.storages.size()) {
    // Backwards, so that the readers of a storage's copy are seen before the readers of the storage
    // itself, and the first reader decides.
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {
      const KernelNode& node = graph.nodes[i];
      for (std::size_t position = 0; position < node.reads.size(); ++position) {
        read(graph, node, position);
      }
    }
  }
  [[nodiscard]] const Distribution& of(StorageId id) const { return distributions_[id.index()]; }

 private:
  void read(const StepGraph& graph, const KernelNode& node, std::size_t position) {
    const TensorView& view = node.reads[position];
    Distribution& values = distributions_[view.storage.index()];
    values.type = view.type;
    if (view.type == DataType::int64) {
      values.limit = std::min(values.limit, limit(node, position));
      return;
    }
    values.domain = domain(node, position);
    const StorageClass storage_class = graph.storage(view.storage).storage_class;
    if (storage_class == StorageClass::input) input(values);
    if (storage_class == StorageClass::buffer) {
      const bool variance =
          position + 1 == node.reads.size();  // the last reads are mean and variance
      values.centre = is_batch_norm(node.kernel) && variance ? 1 : 0;
      values.width = is_batch_norm(node.kernel) ? 0 : unit_width;
    }
    if (dequantizes_weight(node.kernel)) return quantised(node, position, values);
    if (storage_class == StorageClass::parameter || storage_class == StorageClass::parameter_copy) {
      parameter(graph, node, position, values);
    }
  }

  std::int64_t limit(const KernelNode& node, std::size_t position) const {
    if (node.kernel == Kernel::embedding_forward && position == 0) {
      return node.reads[1].shape[0].at(batch_);
    }
    if (indexes_along_axis(node.kernel) && position > 0) {
      const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
      const std::size_t next = node.kernel == Kernel::take_forward ? position - 1 : 0;
      return node.reads[0].shape[axis + next].at(batch_);
    }
    if (node.kernel == Kernel::one_hot) return node.writes[0].shape.back().at(batch_);
    if (wants_classes(node.kernel) && position == 1) {
      return node.reads[0].shape[1].at(batch_);
    }
    if (moves_elements(node.kernel)) return distributions_[node.writes[0].storage.index()].limit;
    return std::numeric_limits<std::int64_t>::max();
  }

  Domain domain(const KernelNode& node, std::size_t position) const {
    switch (node.kernel) {
      case Kernel::bce_forward:
        return position == 0 && node.attributes.has("logits") && node.attributes.boolean("logits")
                   ? Domain::any
                   : Domain::probability;
      case Kernel::kl_div_forward:
        return position == 1 ? Domain::probability : Domain::any;
      case Kernel::divide:
        return position == 1 ? Domain::positive : Domain::any;
      case Kernel::unary_forward:
        return domain_of(node.attributes);
      default:
        return moves_elements(node.kernel) ? distributions_[node.writes[0].storage.index()].domain
                                           : Domain::any;
    }
  }

  static bool is_parameter_copy(const StepGraph& graph, const TensorView& view) {
    return graph.storage(view.storage).storage_class == StorageClass::parameter_copy;
  }

  static void input(Distribution& values) {
    values.centre = values.domain == Domain::any ? 0 : values.domain == Domain::positive ? 1 : 0.5;
    values.width = values.domain == Domain::any ? unit_width : 0.95 * values.centre;
  }

  void parameter(const StepGraph& graph, const KernelNode& node, std::size_t position,
                 Distribution& values) const {
    const TensorView& view = node.reads[position];
    if (node.kernel == Kernel::cast && is_parameter_copy(graph, node.writes[0])) {
      const Distribution& copy = distributions_[node.writes[0].storage.index()];
      values.centre = copy.centre;
      values.width = copy.width;
      return;
    }
    const bool near_one =
        (is_norm(node.kernel) && position == 1) || values.domain == Domain::positive;
    values.centre = node.kernel == Kernel::prelu_forward ? 0.25 : near_one ? 1 : 0;
    values.width =
        view.shape.size() < 2 || near_one || is_norm(node.kernel)
            ? small_width
            : unit_width / std::sqrt(static_cast<double>(fan_in(at_batch(view.shape, batch_))));
  }

  /// Chosen so that the dequantised weights are about as wide as weights that are not quantised.
  void quantised(const KernelNode& node, std::size_t position, Distribution& values) const {
    values.bytes_of_weights = position == 0;
    values.centre = 0;
    values.width = 1;
    const bool scales = position == 1 && node.kernel != Kernel::dequantize_blocks;
    if (scales) {
      const double columns = static_cast<double>(fan_in(at_batch(node.writes[0].shape, batch_)));
      values.width = unit_width / std::sqrt(columns);
    }
  }

  std::int64_t batch_;
  std::vector<Distribution> distributions_;
};

std::vector<std::byte> random_bytes(const std::string& name, const Distribution& values,
                                    std::int64_t bytes) {
  std::vector<std::byte> value(static_cast<std::size_t>(bytes));
  RandomNumbers numbers(name);
  if (values.type == DataType::int64) {
    const bool limited = values.limit != std::numeric_limits<std::int64_t>::max();
    for (std::size_t at = 0; at + 8 <= value.size(); at += 8) {
      const auto number = static_cast<std::int64_t>(numbers.next() >> 1);
      const std::int64_t element = limited ? number % values.limit : 0;
      std::memcpy(value.data() + at, &element, sizeof element);
    }
  } else if (is_floating_point(values.type)) {
    const std::size_t elements = value.size() / static_cast<std::size_t>(element_size(values.type));
    for (std::size_t i = 0; i < elements; ++i) {
      set_element(value, values.type, i, values.centre + values.width * numbers.within_one());
    }
  } else if (values.bytes_of_weights) {
    constexpr std::uint64_t low_exponents = 0xbf;  // a float8 below 2
    for (std::byte& byte : value) byte = static_cast<std::byte>(numbers.next() & low_exponents);
  } else {
    std::fill(value.begin(), value.end(), std::byte{1});  // masks: nothing is masked out
  }
  return value;
}

/// Whether the node rounds the optimizer's float32 copy of a parameter to the parameter.
bool rounds_master(const StepGraph& graph, const KernelNode& node) {
  return node.phase == Phase::update && node.kernel == Kernel::cast &&
         graph.storage(node.reads[0].storage).storage_class == StorageClass::optimizer_state;
}

void copy_to_master(const KernelNode& node, std::vector<std::vector<std::byte>>& values) {
  const TensorView &master = node.reads[0], &parameter = node.writes[0];
  const FloatElements from(values[parameter.storage.index()], parameter.type);
  std::vector<std::byte>& to = values[master.storage.index()];
  for (std::size_t i = 0; i < from.size(); ++i) set_element(to, master.type, i, from[i]);
}

}  // namespace

std::vector<std::vector<std::byte>> initial_values(const StepGraph& graph, std::int64_t batch) {
  const Distributions distributions(graph, batch);
  std::vector<std::vector<std::byte>> values(graph.storages.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Storage& storage = graph.storages[i];
    if (storage.persistence == Persistence::transient) continue;
    values[i] =
        random_bytes(storage.name, distributions.of(StorageId::of(i)), storage.bytes.at(batch));
  }
  for (const KernelNode& node : graph.nodes) {
    if (rounds_master(graph, node)) copy_to_master(node, values);
  }
  return values;
}

}  // namespace stowage
