#include "gpu_probe/run/initial_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "gpu_probe/run/float_elements.hpp"

namespace stowage {
namespace {

/// Where a reader's function is defined, as far as it matters.
enum class Domain { any, positive, probability };

/// Uniform values of a given centre and width, or whole numbers below `limit`.
struct Law {
  double centre = 0;
  double width = 0;  // half of the interval's
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  DataType type = DataType::float32;
  Domain domain = Domain::any;
  bool bytes_of_weights = false;  // of 8 bits or less each, and no float8 among them that is NaN
};

constexpr double unit_width = 1.7320508075688772;  // sqrt(3): variance 1
constexpr double small_width = 0.1;

/// Splitmix64 of a counter that starts at a hash (FNV-1a) of the name.
class Numbers {
 public:
  explicit Numbers(const std::string& name) {
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

/// Its bytes, then what they are scaled by.
bool dequantizes_weight(Kernel kernel) {
  return kernel == Kernel::dequantize_4bit || kernel == Kernel::dequantize_rows ||
         kernel == Kernel::dequantize_blocks;
}

bool wants_classes(Kernel kernel) {
  return kernel == Kernel::cross_entropy_forward || kernel == Kernel::nll_loss_forward;
}

/// Its first argument's places along an axis are named by the next ones.
bool indexes_along_axis(Kernel kernel) {
  return kernel == Kernel::take_forward || kernel == Kernel::gather_forward ||
         kernel == Kernel::index_add || kernel == Kernel::scatter_add;
}

/// Of a unary function.
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

/// How the reads of a storage say what it is.
class Laws {
 public:
  Laws(const StepGraph& graph, std::int64_t batch) : batch_(batch), laws_(graph.storages.size()) {
    // Backwards, so that what a copy of a storage is taken for is known before the storage's own
    // readers are asked, and the first reader has the last word.
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {
      const KernelNode& node = graph.nodes[i];
      for (std::size_t position = 0; position < node.reads.size(); ++position) {
        read(graph, node, position);
      }
    }
  }
  [[nodiscard]] const Law& of(StorageId id) const { return laws_[id.index()]; }

 private:
  void read(const StepGraph& graph, const KernelNode& node, std::size_t position) {
    const TensorView& view = node.reads[position];
    Law& law = laws_[view.storage.index()];
    law.type = view.type;
    if (view.type == DataType::int64) {
      law.limit = std::min(law.limit, limit(node, position));
      return;
    }
    law.domain = domain(node, position);
    const StorageClass storage_class = graph.storage(view.storage).storage_class;
    if (storage_class == StorageClass::input) input(law);
    if (storage_class == StorageClass::buffer) {
      const bool variance = position + 1 == node.reads.size();  // ..., mean, variance
      law.centre = is_batch_norm(node.kernel) && variance ? 1 : 0;
      law.width = is_batch_norm(node.kernel) ? 0 : unit_width;
    }
    if (dequantizes_weight(node.kernel)) return quantised(node, position, law);
    if (storage_class == StorageClass::parameter || storage_class == StorageClass::parameter_copy) {
      parameter(graph, node, position, law);
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
    if (moves_elements(node.kernel)) return laws_[node.writes[0].storage.index()].limit;
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
        return moves_elements(node.kernel) ? laws_[node.writes[0].storage.index()].domain
                                           : Domain::any;
    }
  }

  static bool is_parameter_copy(const StepGraph& graph, const TensorView& view) {
    return graph.storage(view.storage).storage_class == StorageClass::parameter_copy;
  }

  static void input(Law& law) {
    law.centre = law.domain == Domain::any ? 0 : law.domain == Domain::positive ? 1 : 0.5;
    law.width = law.domain == Domain::any ? unit_width : 0.95 * law.centre;
  }

  void parameter(const StepGraph& graph, const KernelNode& node, std::size_t position,
                 Law& law) const {
    const TensorView& view = node.reads[position];
    if (node.kernel == Kernel::cast && is_parameter_copy(graph, node.writes[0])) {
      const Law& copy = laws_[node.writes[0].storage.index()];
      law.centre = copy.centre;
      law.width = copy.width;
      return;
    }
    const bool near_one = (is_norm(node.kernel) && position == 1) || law.domain == Domain::positive;
    law.centre = node.kernel == Kernel::prelu_forward ? 0.25 : near_one ? 1 : 0;
    law.width =
        view.shape.size() < 2 || near_one || is_norm(node.kernel)
            ? small_width
            : unit_width / std::sqrt(static_cast<double>(fan_in(at_batch(view.shape, batch_))));
  }

  /// Weights come out about as wide as those that are not quantised.
  void quantised(const KernelNode& node, std::size_t position, Law& law) const {
    law.bytes_of_weights = position == 0;
    law.centre = 0;
    law.width = 1;
    const bool scales = position == 1 && node.kernel != Kernel::dequantize_blocks;
    if (scales) {
      const double columns = static_cast<double>(fan_in(at_batch(node.writes[0].shape, batch_)));
      law.width = unit_width / std::sqrt(columns);
    }
  }

  std::int64_t batch_;
  std::vector<Law> laws_;
};

std::vector<std::byte> drawn(const std::string& name, const Law& law, std::int64_t bytes) {
  std::vector<std::byte> value(static_cast<std::size_t>(bytes));
  Numbers numbers(name);
  if (law.type == DataType::int64) {
    const bool limited = law.limit != std::numeric_limits<std::int64_t>::max();
    for (std::size_t at = 0; at + 8 <= value.size(); at += 8) {
      const auto number = static_cast<std::int64_t>(numbers.next() >> 1);
      const std::int64_t element = limited ? number % law.limit : 0;
      std::memcpy(value.data() + at, &element, sizeof element);
    }
  } else if (is_floating_point(law.type)) {
    const std::size_t elements = value.size() / static_cast<std::size_t>(element_size(law.type));
    for (std::size_t i = 0; i < elements; ++i) {
      set_element(value, law.type, i, law.centre + law.width * numbers.within_one());
    }
  } else if (law.bytes_of_weights) {
    constexpr std::uint64_t low_exponents = 0xbf;  // a float8 below 2
    for (std::byte& byte : value) byte = static_cast<std::byte>(numbers.next() & low_exponents);
  } else {
    std::fill(value.begin(), value.end(), std::byte{1});  // masks: everything takes part
  }
  return value;
}

/// The parameter becomes what its float32 copy, the optimizer's, rounds to.
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
  const Laws laws(graph, batch);
  std::vector<std::vector<std::byte>> values(graph.storages.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Storage& storage = graph.storages[i];
    if (storage.persistence == Persistence::transient) continue;
    values[i] = drawn(storage.name, laws.of(StorageId::of(i)), storage.bytes.at(batch));
  }
  for (const KernelNode& node : graph.nodes) {
    if (rounds_master(graph, node)) copy_to_master(node, values);
  }
  return values;
}

}  // namespace stowage
