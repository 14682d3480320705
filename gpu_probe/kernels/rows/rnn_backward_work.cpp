#include <algorithm>

#include "gpu_probe/kernels/rows/rnn_parts.hpp"

namespace stowage::kernels {
namespace {

template <class T>
class BackwardWork : RnnWork<T> {
 public:
  BackwardWork(const RnnBackwardCall& b, std::optional<RnnDropout> dropout)
      : RnnWork<T>(b.r, b.scratch),
        b_(b),
        dropout_(dropout),
        reserve_(reinterpret_cast<const T*>(b.reserve.data)) {}

  Work run() {
    const RnnShape& r = this->r_;
    const std::int64_t widest = std::max(r.in, r.width());
    this->first_states_ = this->values_of(b_.first_states);
    this->weights_ = this->values_of(b_.weights);
    T* const x = this->take(r.positions() * r.in);
    T* const y = this->take(r.positions() * r.width());
    T* const dropped = this->take(r.positions() * r.width());
    T* gradient = this->take(r.positions() * widest);
    T* d_argument = this->take(r.positions() * widest);
    d_input_ = this->take(r.positions() * r.gate_rows());
    d_recurrent_ = r.cell == RnnCell::gru ? this->take(r.positions() * r.gate_rows()) : d_input_;
    dh_ = this->take(r.batch * r.hidden);
    dc_ = this->take(r.batch * r.hidden);
    this->load_sequence(b_.x, r.in, x);
    this->load_sequence(b_.y, r.width(), y);
    this->load_sequence(b_.dy, r.width(), gradient);
    for (std::int64_t layer = r.layers; layer-- > 0;) {
      const T* argument = layer == 0 ? x : reserve_ + r.result_offset(layer - 1);
      const T* const result = layer + 1 < r.layers ? reserve_ + r.result_offset(layer) : y;
      const bool drops = dropout_ && layer > 0;
      if (drops) {
        this->drop(*dropout_, layer, argument, dropped);
        argument = dropped;
      }
      for (std::int64_t d = 0; d < r.directions; ++d) {
        const Lane lane = this->lane(layer, d);
        run_positions(lane, result, gradient);
        run_weights(lane, argument, result);
        add_to_argument(lane, d_argument);
      }
      if (drops) this->drop(*dropout_, layer, d_argument, d_argument);
      std::swap(gradient, d_argument);
    }
    this->store_sequence(gradient, r.in, b_.dx);
    return std::move(this->work_);
  }

 private:
  using Lane = typename RnnWork<T>::Lane;

  /// Goes from the last position to the first: computes the gradients of the gates, and of the
  /// first states.
  void run_positions(const Lane& lane, const T* result, const T* gradient) {
    const RnnShape& r = this->r_;
    const std::int64_t rows = r.gate_rows(), values = r.batch * r.hidden;
    const std::int64_t state = r.state_offset(lane.number, 0);
    for (std::size_t i = 0; i < b_.state_gradients.size(); ++i) {
      const bool is_given = i < b_.last_gradients.size();
      this->copy(is_given ? lane_of(b_.last_gradients[i], state) : no_floats,
                 this->floats_at(i == 0 ? dh_ : dc_), values);
    }
    for (std::int64_t i = r.seq; i-- > 0;) {
      const std::int64_t t = this->position(lane, i), at = t * r.batch * rows;
      this->launch(each_index(
          body::RnnBackward<T>{r.cell, r.hidden, r.gates(), this->half(gradient, lane, t), dh_, dc_,
                               this->h_before(result, lane, i), this->c_before(reserve_, lane, i),
                               this->half(result, lane, t), this->kept(reserve_, lane, t),
                               d_input_ + at, d_recurrent_ + at},
          values));
      this->multiply({.m = r.batch,
                      .n = r.hidden,
                      .k = rows,
                      .beta = 1,
                      .a = this->matrix(d_recurrent_ + at, rows),
                      .b = this->matrix(lane.w_hh, r.hidden),
                      .c = this->matrix(dh_, r.hidden)});
    }
    for (std::size_t i = 0; i < b_.state_gradients.size(); ++i) {
      this->copy(this->floats_at(i == 0 ? dh_ : dc_), lane_of(b_.state_gradients[i], state),
                 values);
    }
  }

  // Computes the gradients of a lane's weights and biases: w_ih from the layer's argument, w_hh
  // from the states before each position, the biases from sums over all positions.
  void run_weights(const Lane& lane, const T* argument, const T* result) {
    const RnnShape& r = this->r_;
    const std::int64_t in = r.in_of(lane.layer), rows = r.gate_rows(), hidden = r.hidden;
    const auto results = b_.weight_gradients.subspan(r.first_weight(lane.number));
    store_product(results[0], [&](T* dw) {
      this->multiply({.m = rows,
                      .n = in,
                      .k = r.positions(),
                      .a = this->matrix(d_input_, rows, true),
                      .b = this->matrix(argument, in),
                      .c = this->matrix(dw, in)});
    });
    store_product(results[1], [&](T* dw) {
      // All positions except the lane's first have a neighbour's result as their old state.
      const std::int64_t others = (r.seq - 1) * r.batch;
      const bool reversed = lane.direction == 1;
      const T* const gates = d_recurrent_ + (reversed ? 0 : r.batch * rows);
      if (others > 0) {
        this->multiply(
            {.m = rows,
             .n = hidden,
             .k = others,
             .a = this->matrix(gates, rows, true),
             .b = this->matrix(this->half(result, lane, reversed ? 1 : 0).data, r.width()),
             .c = this->matrix(dw, hidden)});
      }
      const std::int64_t first = this->position(lane, 0) * r.batch * rows;
      this->multiply({.m = rows,
                      .n = hidden,
                      .k = r.seq > 0 ? r.batch : 0,
                      .beta = others > 0 ? 1.0 : 0.0,
                      .a = this->matrix(d_recurrent_ + first, rows, true),
                      .b = this->matrix(this->first_state(0, lane).data, hidden),
                      .c = this->matrix(dw, hidden)});
    });
    if (r.tensors_per_layer == 2) return;
    for (const auto& [gradients, db] :
         {std::pair(d_input_, &results[2]), std::pair(d_recurrent_, &results[3])}) {
      this->launch(each_group(body::RnnBias<T>{gradients, any_floats(*db), r.positions(), rows},
                              body::tiles_of(rows), body::largest_group));
    }
  }

  /// Calls make(address of the product's result): the result itself, or scratch that is then
  /// rounded to it.
  template <class Make>
  void store_product(const TensorArgument& result, Make make) {
    if (result.type == data_type_of<T>) return make(elements<T>(result));
    T* const product = this->take(count(result.shape));
    make(product);
    this->copy(this->floats_at(product), any_floats(result), count(result.shape));
  }

  void add_to_argument(const Lane& lane, T* d_argument) {
    const RnnShape& r = this->r_;
    const std::int64_t in = r.in_of(lane.layer), rows = r.gate_rows();
    this->multiply({.m = r.positions(),
                    .n = in,
                    .k = rows,
                    .beta = lane.direction == 0 ? 0.0 : 1.0,
                    .a = this->matrix(d_input_, rows),
                    .b = this->matrix(lane.w_ih, in),
                    .c = this->matrix(d_argument, in)});
  }

  const RnnBackwardCall& b_;
  std::optional<RnnDropout> dropout_;
  const T* reserve_;
  T *d_input_ = nullptr, *d_recurrent_ = nullptr, *dh_ = nullptr, *dc_ = nullptr;
};

}  // namespace

Work rnn_backward_work(const RnnBackwardCall& call, std::optional<RnnDropout> dropout) {
  return rnn_format(call.x) == DataType::float64 ? BackwardWork<double>(call, dropout).run()
                                                 : BackwardWork<float>(call, dropout).run();
}

}  // namespace stowage::kernels
