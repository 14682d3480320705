#include "gpu_probe/kernels/rows/rnn_work.hpp"

#include "gpu_probe/kernels/rows/rnn_parts.hpp"

namespace stowage::kernels {
namespace {

using body::RnnRows;

std::optional<RnnDropout> dropout_of(const KernelCall& call) {
  const double p = real(call, "dropout", 0);
  if (p == 0) return std::nullopt;
  return RnnDropout{mask_draw(p, integer(call, "seed", 0)), mask_scale(p)};
}

template <class T>
class ForwardWork : RnnWork<T> {
 public:
  ForwardWork(const RnnForwardCall& f, std::optional<RnnDropout> dropout)
      : RnnWork<T>(f.r, f.scratch), f_(f), dropout_(dropout) {
    require(f.reserve != nullptr, "a GPU takes a reserve for a recurrent layer");
    reserve_ = reinterpret_cast<T*>(f.reserve->data);
  }

  Work run() {
    const RnnShape& r = this->r_;
    this->first_states_ = this->values_of(f_.first_states);
    this->weights_ = this->values_of(f_.weights);
    T* const x = this->take(r.positions() * r.in);
    T* const y = this->take(r.positions() * r.width());
    T* const dropped = this->take(r.positions() * r.width());
    gates_ = this->take(r.positions() * r.gate_rows());
    recurrent_ = this->take(r.batch * r.gate_rows());
    this->load_sequence(f_.x, r.in, x);
    for (std::int64_t layer = 0; layer < r.layers; ++layer) {
      const T* argument = layer == 0 ? x : reserve_ + r.result_offset(layer - 1);
      if (dropout_ && layer > 0) {
        this->drop(*dropout_, layer, argument, dropped);
        argument = dropped;
      }
      T* const result = layer + 1 < r.layers ? reserve_ + r.result_offset(layer) : y;
      for (std::int64_t d = 0; d < r.directions; ++d) {
        run_lane(this->lane(layer, d), argument, result);
      }
    }
    this->store_sequence(y, r.width(), f_.y);
    return std::move(this->work_);
  }

 private:
  using Lane = typename RnnWork<T>::Lane;

  void run_lane(const Lane& lane, const T* argument, T* result) {
    const RnnShape& r = this->r_;
    const std::int64_t in = r.in_of(lane.layer), rows = r.gate_rows();
    this->multiply({.m = r.positions(),
                    .n = rows,
                    .k = in,
                    .a = this->matrix(argument, in),
                    .b = this->matrix(lane.w_ih, in, true),
                    .c = this->matrix(gates_, rows)});
    for (std::int64_t i = 0; i < r.seq; ++i) {
      const std::int64_t t = this->position(lane, i);
      const RnnRows<const T> h_before = this->h_before(result, lane, i);
      this->multiply({.m = r.batch,
                      .n = rows,
                      .k = r.hidden,
                      .a = this->matrix(h_before.data, h_before.row),
                      .b = this->matrix(lane.w_hh, r.hidden, true),
                      .c = this->matrix(recurrent_, rows)});
      const bool is_last = i + 1 == r.seq;
      const std::int64_t state = r.state_offset(lane.number, 0);
      this->launch(each_index(
          body::RnnForward<T>{
              r.cell, r.hidden, r.gates(), gates_ + t * r.batch * rows, recurrent_, lane.b_ih,
              lane.b_hh, h_before, this->c_before(reserve_, lane, i), this->half(result, lane, t),
              this->kept(reserve_, lane, t),
              is_last ? lane_of(f_.last_states[0], state) : no_floats,
              is_last && this->has_cell_state() ? lane_of(f_.last_states[1], state) : no_floats},
          r.batch * r.hidden));
    }
  }

  const RnnForwardCall& f_;
  std::optional<RnnDropout> dropout_;
  T *reserve_ = nullptr, *gates_ = nullptr, *recurrent_ = nullptr;
};

}  // namespace

bool is_recurrent(Kernel kernel) {
  return kernel == Kernel::rnn_forward || kernel == Kernel::rnn_backward;
}

std::vector<std::variant<Product, Launch>> rnn_work(const KernelCall& call) {
  const auto dropout = dropout_of(call);
  if (call.kernel == Kernel::rnn_backward) {
    return rnn_backward_work(rnn_backward_call(call), dropout);
  }
  const RnnForwardCall f = rnn_forward_call(call);
  return rnn_format(f.x) == DataType::float64 ? ForwardWork<double>(f, dropout).run()
                                              : ForwardWork<float>(f, dropout).run();
}

}  // namespace stowage::kernels
