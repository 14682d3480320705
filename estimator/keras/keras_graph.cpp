#include "estimator/keras/keras_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "estimator/base/cure.hpp"

namespace stowage {

namespace {

constexpr std::size_t image_rank = 4;
constexpr int most_passes = 1000;

bool is_model_class(std::string_view name) {
  return name == "Sequential" || name == "Functional" || name == "Model";
}

// Keras 2 has "batch_input_shape", which 3 calls "batch_shape".
const YamlNode* input_shape_of(const KerasConfig& config) {
  const YamlNode* shape = config.find("batch_shape");
  return shape != nullptr ? shape : config.find("batch_input_shape");
}

class GraphTranslator {
 public:
  GraphTranslator(const YamlDocument& document, const ImportOptions& options,
                  KerasTranslation& translation)
      : source_(document.source),
        options_(options),
        translation_(translation),
        channels_first_(document.source->text.find("\"channels_first\"") != std::string::npos),
        keras_(KerasConfig(document.root).text("keras_version").starts_with('2') ||
                       document.source->text.find("\"registered_name\"") == std::string::npos
                   ? 2
                   : 3) {}

  Result<KerasGraph> run(const YamlNode& root) {
    const KerasConfig model(&root);
    graph_.outputs = translate_model(model, "", {}, true, 0);
    if (graph_.outputs.empty() && mistakes_.empty()) {
      mistake(nullptr, "no layer of the model makes an output");
    }
    for (const auto& [name, value] : options_.values) {
      if (!used_.contains(name)) {
        mistake(nullptr, fmt::format("the model has no open dimension '{}'", name));
      }
    }
    if (options_.seq && graph_.seq == 0 && mistakes_.empty()) {
      mistake(nullptr, "the model has no open dimension that is a sequence's");
    }
    if (!mistakes_.empty()) return tl::unexpected(std::move(mistakes_));
    return std::move(graph_);
  }

 private:
  using Tensors = std::vector<KerasTensor>;

  // A file on one line has no place to show.
  void mistake(const YamlNode* node, std::string message, std::string hint = {}) {
    constexpr std::size_t most = 20;
    constexpr int last_column = 200;
    if (mistakes_.size() >= most) return;
    const bool shown = node != nullptr && node->mark.column < last_column && node->mark.line > 1;
    mistakes_.push_back(
        {.message = std::move(message),
         .span = shown ? span_of(source_, node->mark) : SourceSpan{.source = source_},
         .hint = std::move(hint)});
  }

  Tensors translate_model(const KerasConfig& model, const std::string& prefix, Tensors inputs,
                          bool trains, int depth) {
    if (depth > deepest_keras_model) {
      mistake(model.node(),
              fmt::format("models stand more than {} deep in one another", deepest_keras_model));
      return {};
    }
    const std::string name = model.text("class_name");
    KerasConfig config = model.at("config");
    const YamlNode* layers = config.find("layers");
    // The oldest Sequential has the list itself for its config.
    if (layers == nullptr && config.node() != nullptr && config.node()->is_sequence()) {
      layers = config.node();
    }
    if (!is_model_class(name) || layers == nullptr || !layers->is_sequence()) {
      mistake(model.node(), is_model_class(name)
                                ? fmt::format("the {} has no 'layers'", name)
                                : fmt::format("a '{}' has no layers in its file: only Sequential "
                                              "and Functional models have",
                                              name));
      return {};
    }
    trains = trains && config.flag("trainable", true);
    if (name == "Sequential")
      return translate_chain(config, *layers, prefix, std::move(inputs), trains, depth);
    return translate_functional(config, *layers, prefix, std::move(inputs), trains, depth);
  }

  Tensors translate_chain(const KerasConfig& model, const YamlNode& layers,
                          const std::string& prefix, Tensors at, bool trains, int depth) {
    for (const YamlNode* node : layers.items) {
      const KerasConfig layer(node);
      const KerasConfig config = layer.at("config");
      if (layer.text("class_name") == "InputLayer") {
        if (at.empty()) at = {add_input(config, input_shape_of(config))};
        continue;
      }
      if (at.empty()) {
        const YamlNode* shape = input_shape_of(config);
        if (shape == nullptr) shape = model.find("build_input_shape");
        at = {add_input(config, shape)};
      }
      if (!mistakes_.empty()) return {};
      at = call(layer, prefix, std::move(at), KerasInbound(), nullptr, trains, depth);
      if (at.empty()) return {};
    }
    return at;
  }

  struct OpenCall {
    KerasConfig layer;
    std::string name;
    std::int64_t number = 0;
    KerasInbound inbound;
  };

  Tensors translate_functional(const KerasConfig& model, const YamlNode& layers,
                               const std::string& prefix, Tensors inputs, bool trains, int depth) {
    std::map<KerasHistory, KerasTensor> tensors;
    std::map<KerasHistory, const YamlNode*> shapes;
    const auto declared = histories_of(model.find("input_layers"));
    std::vector<OpenCall> open;
    for (const YamlNode* node : layers.items) {
      const KerasConfig layer(node);
      const KerasConfig config = layer.at("config");
      const std::string name = layer.text("name", config.text("name"));
      if (layer.text("class_name") == "InputLayer") {
        const auto place =
            std::ranges::find(declared, name, [](const auto& one) { return std::get<0>(one); });
        const auto number = static_cast<std::size_t>(place - declared.begin());
        const bool is_given = !inputs.empty() && number < inputs.size();
        tensors[{name, 0, 0}] =
            is_given ? inputs[number] : add_input(config, input_shape_of(config));
        continue;
      }
      std::int64_t number = 0;
      for (KerasInbound& inbound : inbound_calls(layer.find("inbound_nodes"))) {
        for (std::size_t i = 0; i < inbound.from.size(); ++i) {
          if (inbound.shapes[i] != nullptr) shapes[inbound.from[i]] = inbound.shapes[i];
        }
        open.push_back({layer, name, number++, std::move(inbound)});
      }
    }
    if (!mistakes_.empty()) return {};
    for (int pass = 0; !open.empty() && pass < most_passes; ++pass) {
      std::vector<OpenCall> later;
      for (OpenCall& one : open) {
        Tensors from;
        for (const KerasHistory& history : one.inbound.from) {
          const auto found = tensors.find(history);
          if (found != tensors.end()) from.push_back(found->second);
        }
        if (from.size() != one.inbound.from.size()) {
          later.push_back(std::move(one));
          continue;
        }
        const auto shape = shapes.find({one.name, one.number, 0});
        const Tensors made = call(one.layer, prefix, std::move(from), one.inbound,
                                  shape == shapes.end() ? nullptr : shape->second, trains, depth);
        if (!mistakes_.empty()) return {};
        for (std::size_t i = 0; i < made.size(); ++i) {
          tensors[{one.name, one.number, static_cast<std::int64_t>(i)}] = made[i];
        }
      }
      if (later.size() == open.size()) break;
      open = std::move(later);
    }
    Tensors outputs;
    for (const KerasHistory& history : histories_of(model.find("output_layers"))) {
      const auto found = tensors.find(history);
      if (found != tensors.end()) outputs.push_back(found->second);
    }
    if (outputs.empty()) {
      mistake(model.find("output_layers"),
              open.empty() ? std::string("no output of the model follows from its layers")
                           : fmt::format("layer '{}' reads what no layer makes", open[0].name));
    }
    return outputs;
  }

  Tensors call(const KerasConfig& layer, const std::string& prefix, Tensors inputs,
               const KerasInbound& inbound, const YamlNode* shape, bool trains, int depth) {
    if (++calls_ > most_keras_calls) {
      mistake(layer.node(),
              fmt::format("the model has more than {} calls of layers", most_keras_calls));
      return {};
    }
    const KerasConfig config = layer.at("config");
    const std::string class_name = layer.text("class_name");
    const std::string own = config.text("name", layer.text("name", class_name));
    KerasCall one{.class_name = class_name,
                  .name = prefix.empty() ? own : prefix + "/" + own,
                  .config = config,
                  .keywords = inbound.keywords,
                  .arguments = inbound.arguments,
                  .inputs = std::move(inputs),
                  .keras = keras_};
    if (one.inputs.empty()) {
      mistake(layer.node(), fmt::format("layer '{}' reads nothing", own));
      return {};
    }
    const int before = translation_.layers().count();
    if (is_model_class(class_name)) {
      return translate_model(layer, one.name, std::move(one.inputs), trains, depth + 1);
    }
    const KerasRule* rule = find_keras_rule(class_name);
    translation_.refuse("");
    bool made = false;
    try {
      made = rule != nullptr && rule->translate(translation_, one) && !one.outputs.empty();
    } catch (const NotAffine& e) {
      translation_.refuse(fmt::format("a size is not linear in the batch: {}", e.what()));
    } catch (const ArithmeticOverflow&) {
      translation_.refuse("a size leaves the 64-bit range");
    }
    if (!made) return foreign(one, shape);
    for (int i = before; !trains && i < translation_.layers().count(); ++i) {
      ImportedLayer& frozen = translation_.layers().at(i);
      frozen.frozen = !frozen.parameters.empty();
    }
    return std::move(one.outputs);
  }

  // A foreign layer of the size that a reader of it states, or the user (by the layer's name); else
  // of its input's size, which only serves to find further unknown layers.
  Tensors foreign(const KerasCall& one, const YamlNode* stated) {
    std::vector<LayerOutput> from;
    for (const KerasTensor& input : one.inputs) from.push_back(input.layer);
    Shape shape = one.inputs[0].shape;
    if (stated != nullptr && stated->is_sequence()) {
      shape = Shape();
      for (std::size_t i = 0; i < stated->items.size(); ++i) {
        const auto extent = integer_of(*stated->items[i]);
        shape.push_back(i == 0 ? batch_symbol : Affine(extent.value_or(graph_.seq)));
      }
    } else if (const auto given = options_.values.find(one.name); given != options_.values.end()) {
      used_.insert(one.name);
      const auto size = size_of(given->second);
      if (!size) {
        mistake(one.config.node(), fmt::format("layer '{}' takes a size such as 64x64x3, not '{}'",
                                               one.name, given->second));
        return {};
      }
      shape = *size;
    } else if (options_.allow_unknown) {
      std::string hint = hint_of(Cure::layer_size);
      mistake(one.config.node(),
              fmt::format("layer '{}' ({}) is unknown, and the file does not say "
                          "its output's size",
                          one.name, one.class_name),
              std::move(hint));
      return {};
    }
    const int made = translation_.layers().add_foreign(one.class_name, one.name, std::move(from),
                                                       {{shape, DataType::float32}});
    translation_.layers().at(made).trains = true;
    std::string reason = translation_.reason();
    if (one.class_name == "Lambda") reason = "it holds Python code, which only Keras can run";
    graph_.reasons[made] = std::move(reason);
    return {KerasTensor{{made, 0}, shape}};
  }

  // "64x64x3", without the batch.
  static std::optional<Shape> size_of(const std::string& text) {
    constexpr std::int64_t most = 1'000'000'000;
    Shape shape{batch_symbol};
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at != end) {
      std::int64_t extent = 0;
      const auto [next, code] = std::from_chars(at, end, extent);
      if (code != std::errc() || extent < 1 || extent > most) return std::nullopt;
      shape.push_back(extent);
      at = next;
      if (at == end) return shape;
      if (*at != 'x' || ++at == end) return std::nullopt;
    }
    return std::nullopt;
  }

  // The first extent is the batch. Open ones are a sequence's, or need a value.
  KerasTensor add_input(const KerasConfig& config, const YamlNode* written) {
    if (is_nothing(written) || !written->is_sequence() || written->items.empty()) {
      mistake(config.node(), "the model's input has no shape",
              "call the model on data, or build() it, before it is written");
      return {};
    }
    Shape shape{batch_symbol};
    graph_.has_fixed_batch = graph_.has_fixed_batch || integer_of(*written->items[0]).has_value();
    for (std::size_t i = 1; i < written->items.size(); ++i) {
      const auto extent = written->items[i]->kind == YamlNode::Kind::null
                              ? open_extent(config, i, written->items.size())
                              : integer_of(*written->items[i]);
      if (extent && *extent < 1) {
        mistake(written->items[i], fmt::format("an extent of {} is none", *extent));
      }
      shape.push_back(Affine(extent.value_or(1)));
    }
    const std::string type = config.text("dtype", "float32");
    TensorType held{shape, DataType::float32};
    if (const auto known = parse_data_type(type); known && !is_floating_point(*known)) {
      held.type = *known;
    }
    const bool as_image = shape.size() >= image_rank && !channels_first_;
    if (as_image) held.shape = channels_to_front(shape);
    const LayerOutput input = translation_.layers().add_input(config.text("name", "input"), held);
    return {input, shape, as_image};
  }

  std::optional<std::int64_t> open_extent(const KerasConfig& config, std::size_t axis,
                                          std::size_t rank) {
    const std::string name = fmt::format("axis{}", axis);
    if (const auto given = options_.values.find(name); given != options_.values.end()) {
      used_.insert(name);
      std::int64_t value = 0;
      const std::string& text = given->second;
      const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
      constexpr std::int64_t most = 1'000'000'000;
      if (code == std::errc() && end == text.data() + text.size() && value > 0 && value < most) {
        return value;
      }
      mistake(config.node(), fmt::format("dimension '{}' takes a size, not '{}'", name, text));
      return std::nullopt;
    }
    if (axis == 1 && rank <= 3) {
      if (!options_.seq) {
        mistake(config.node(), "the input's sequence has no length",
                hint_of(Cure::sequence_length));
        return std::nullopt;
      }
      graph_.seq = *options_.seq;
      return graph_.seq;
    }
    mistake(config.node(), fmt::format("dimension '{}' of the input is open", name),
            hint_of(Cure::dimension_size));
    return std::nullopt;
  }

  SourceTextPtr source_;
  const ImportOptions& options_;
  KerasTranslation& translation_;
  bool channels_first_;
  int keras_;
  std::size_t calls_ = 0;
  std::set<std::string> used_;
  KerasGraph graph_;
  Diagnostics mistakes_;
};

}  // namespace

Result<KerasGraph> translate_keras_graph(const YamlDocument& document, const ImportOptions& options,
                                         KerasTranslation& translation) {
  return GraphTranslator(document, options, translation).run(*document.root);
}

}  // namespace stowage
