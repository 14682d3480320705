"""The cases of kernels/*.json by family: a name, and what builds tensors and calls."""

import kernel_cases_indexing
import kernel_cases_pointwise
import kernel_cases_quantised
import kernel_cases_recurrent
import kernel_cases_shapes
import kernel_cases_windows

FAMILIES = {
    "pointwise": kernel_cases_pointwise.CASES,
    "losses": kernel_cases_pointwise.LOSSES,
    "shapes": kernel_cases_shapes.CASES,
    "normalisations": kernel_cases_shapes.NORMALISATIONS,
    "convolutions": kernel_cases_windows.CONVOLUTIONS,
    "windows": kernel_cases_windows.CASES,
    "statistics": kernel_cases_indexing.STATISTICS,
    "indexing": kernel_cases_indexing.INDEXING,
    "recurrent": kernel_cases_recurrent.CASES,
    "positions": kernel_cases_recurrent.POSITIONS,
    "quantised": kernel_cases_quantised.CASES,
}
