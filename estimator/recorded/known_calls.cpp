// Calls that allocate nothing but their results.
//
// Those that go element by element and the reductions are ATen's own tags of its schemas
// (pointwise, reduction), read off PyTorch 2.15; the others are creations, copies, resampling and
// losses, whose CUDA kernels write into their results. Reductions of many elements hand partial
// sums on through a buffer (ATen/native/cuda/Reduce.cuh), which is counted of sums over axes, on
// the card (runtime/sum_workspaces.hpp), and not of others: some kilobytes of most.
#include <algorithm>

#include "estimator/recorded/aten_table.hpp"

namespace stowage {

namespace {

// clang-format off
constexpr std::string_view known_names[] = {
    "__ilshift__", "__ixor__", "__lshift__", "__rshift__", "__xor__",
    "_amp_foreach_non_finite_check_and_unscale", "_amp_update_scale", "_conj_physical",
    "_foreach_abs", "_foreach_acos", "_foreach_add", "_foreach_addcdiv", "_foreach_addcmul",
    "_foreach_asin", "_foreach_atan", "_foreach_ceil", "_foreach_clamp_max",
    "_foreach_clamp_min", "_foreach_clone", "_foreach_copy", "_foreach_cos", "_foreach_cosh",
    "_foreach_div", "_foreach_erf", "_foreach_erfc", "_foreach_exp", "_foreach_expm1",
    "_foreach_floor", "_foreach_frac", "_foreach_lerp", "_foreach_lgamma", "_foreach_log",
    "_foreach_log10", "_foreach_log1p", "_foreach_log2", "_foreach_max", "_foreach_maximum",
    "_foreach_minimum", "_foreach_mul", "_foreach_neg", "_foreach_norm", "_foreach_pow",
    "_foreach_powsum", "_foreach_reciprocal", "_foreach_round", "_foreach_rsqrt",
    "_foreach_sigmoid", "_foreach_sign", "_foreach_sin", "_foreach_sinh", "_foreach_sqrt",
    "_foreach_sub", "_foreach_tan", "_foreach_tanh", "_foreach_trunc", "_foreach_zero",
    "_prelu_kernel", "_prelu_kernel_backward", "_thnn_fused_gru_cell",
    "_thnn_fused_gru_cell_backward", "_thnn_fused_lstm_cell", "_thnn_fused_lstm_cell_backward",
    "_to_copy", "_unsafe_index", "_unsafe_masked_index", "_upsample_bicubic2d_aa",
    "_upsample_bicubic2d_aa_backward", "_upsample_bilinear2d_aa",
    "_upsample_bilinear2d_aa_backward", "_upsample_nearest_exact1d",
    "_upsample_nearest_exact1d_backward", "_upsample_nearest_exact2d",
    "_upsample_nearest_exact2d_backward", "_upsample_nearest_exact3d",
    "_upsample_nearest_exact3d_backward", "_weight_norm_interface",
    "_weight_norm_interface_backward", "abs", "acos", "acosh", "add", "addcdiv", "addcmul",
    "all", "amax", "amin", "aminmax", "angle", "any", "arange", "argmax", "argmin",
    "as_strided_scatter", "asin", "asinh", "atan", "atan2", "atanh", "bernoulli",
    "binary_cross_entropy", "binary_cross_entropy_backward", "binary_cross_entropy_with_logits",
    "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "bucketize", "ceil", "celu", "channel_shuffle", "clamp", "clamp_max",
    "clamp_min", "clip", "col2im", "complex", "conj_physical", "constant_pad_nd", "copy",
    "copysign", "cos", "cosh", "count_nonzero", "deg2rad", "diagonal_backward", "digamma",
    "div", "elu", "elu_backward", "empty", "empty_like", "empty_strided", "eq", "equal", "erf",
    "erfc", "erfinv", "exp", "exp2", "expm1", "exponential", "eye", "fill", "flip",
    "float_power", "floor", "fmax", "fmin", "fmod", "frac", "frexp", "full", "full_like",
    "gather", "gcd", "ge", "grid_sampler_2d", "grid_sampler_2d_backward", "grid_sampler_3d",
    "grid_sampler_3d_backward", "gt", "hardshrink", "hardshrink_backward", "hardsigmoid",
    "hardsigmoid_backward", "hardswish", "hardswish_backward", "hardtanh", "hardtanh_backward",
    "heaviside", "huber_loss", "huber_loss_backward", "hypot", "i0", "igamma", "igammac",
    "im2col", "index", "index_add", "index_fill", "index_select", "isfinite", "isinf", "isnan",
    "isneginf", "isposinf", "l1_loss", "lcm", "ldexp", "le", "leaky_relu",
    "leaky_relu_backward", "lerp", "lgamma", "lift_fresh_copy", "linalg__powsum",
    "linalg_vector_norm", "linspace", "log", "log10", "log1p", "log2", "log_sigmoid_backward",
    "log_sigmoid_forward", "logaddexp", "logaddexp2", "logical_and", "logical_not",
    "logical_or", "logical_xor", "logit", "logit_backward", "logsumexp", "lt", "masked_fill",
    "max", "max_unpool2d", "max_unpool3d", "maximum", "mean", "min", "minimum", "mish",
    "mish_backward", "mse_loss", "mse_loss_backward", "mul", "mvlgamma", "nan_to_num", "nansum",
    "native_channel_shuffle", "ne", "neg", "new_empty", "new_empty_strided", "new_full",
    "new_ones", "new_zeros", "nextafter", "norm", "normal", "ones", "ones_like",
    "pixel_shuffle", "pixel_unshuffle", "polar", "polygamma", "positive", "pow", "prod",
    "rad2deg", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like",
    "reciprocal", "reflection_pad1d", "reflection_pad1d_backward", "reflection_pad2d",
    "reflection_pad2d_backward", "reflection_pad3d", "reflection_pad3d_backward", "relu",
    "relu6", "remainder", "repeat", "replication_pad1d", "replication_pad1d_backward",
    "replication_pad2d", "replication_pad2d_backward", "replication_pad3d",
    "replication_pad3d_backward", "round", "rrelu", "rrelu_with_noise",
    "rrelu_with_noise_backward", "rsqrt", "rsub", "scalar_tensor", "scatter", "scatter_add",
    "scatter_reduce", "searchsorted", "select_backward", "select_scatter", "selu", "sgn",
    "sigmoid", "sigmoid_backward", "sign", "signbit", "silu", "silu_backward", "sin", "sinc",
    "sinh", "slice_backward", "slice_scatter", "smooth_l1_loss", "smooth_l1_loss_backward",
    "soft_margin_loss", "soft_margin_loss_backward", "softplus", "softplus_backward",
    "softshrink", "softshrink_backward", "special_airy_ai", "special_bessel_j0",
    "special_bessel_j1", "special_bessel_y0", "special_bessel_y1",
    "special_chebyshev_polynomial_t", "special_chebyshev_polynomial_u",
    "special_chebyshev_polynomial_v", "special_chebyshev_polynomial_w", "special_entr",
    "special_erfcx", "special_hermite_polynomial_h", "special_hermite_polynomial_he",
    "special_i0e", "special_i1", "special_i1e", "special_laguerre_polynomial_l",
    "special_legendre_polynomial_p", "special_log_ndtr", "special_modified_bessel_i0",
    "special_modified_bessel_i1", "special_modified_bessel_k0", "special_modified_bessel_k1",
    "special_ndtri", "special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1",
    "special_shifted_chebyshev_polynomial_t", "special_shifted_chebyshev_polynomial_u",
    "special_shifted_chebyshev_polynomial_v", "special_shifted_chebyshev_polynomial_w",
    "special_spherical_bessel_j0", "special_xlog1py", "special_zeta", "sqrt", "square", "stack",
    "std", "std_mean", "sub", "sum", "take_along_dim", "tan", "tanh", "tanh_backward",
    "threshold", "threshold_backward", "tile", "tril", "tril_indices", "triu", "triu_indices",
    "true_divide", "trunc", "unfold_backward", "uniform", "upsample_bicubic2d",
    "upsample_bicubic2d_backward", "upsample_bilinear2d", "upsample_bilinear2d_backward",
    "upsample_linear1d", "upsample_linear1d_backward", "upsample_nearest1d",
    "upsample_nearest1d_backward", "upsample_nearest2d", "upsample_nearest2d_backward",
    "upsample_nearest3d", "upsample_nearest3d_backward", "upsample_trilinear3d",
    "upsample_trilinear3d_backward", "var", "var_mean", "view_as_complex_copy", "where",
    "xlogy", "zero", "zeros", "zeros_like",
};
// clang-format on
static_assert(std::ranges::is_sorted(known_names));

}  // namespace

bool allocates_only_results(std::string_view kernel) {
  constexpr std::string_view aten = "aten::";
  std::string_view name = schema_name(kernel);
  if (!name.starts_with(aten)) return false;
  name.remove_prefix(aten.size());
  return std::ranges::binary_search(known_names, name);
}

}  // namespace stowage
