// The table of kernel_choice.hpp in words.

#include "primitives/kernel_names.hpp"

#include <fmt/format.h>

#include "cuda/kernel_choice.hpp"
#include "cuda/tuning.hpp"
#include "quoin/cuda.hpp"

namespace quoin {

namespace {

using namespace cuda;

std::string strips_in_words(Index m, ScalarKind scalar, const Kernels& kernels) {
    const auto in_words = [](const StripShape& s) {
        return fmt::format("{} columns, {} x {} warps", s.columns(), s.cluster, s.warps);
    };
    const auto [few, many, lean] = strip_shapes(scalar)[strip_row(m, scalar, kernels)];
    if (few == many || !fits(many, scalar, kernels))
        return fmt::format("strips of {} (strips/strips.cuh)", in_words(fits(few, scalar, kernels) ? few : lean));
    return fmt::format("strips of {}; for many, {} (strips/strips.cuh)", in_words(few), in_words(many));
}
std::string in_words(SquareKernel kernel, const char* file, const char* library) {
    return kernel == SquareKernel::OneBlock ? fmt::format("one block ({})", file) : library;
}
std::string in_words(ProductKernel kernel, const char* few_columns) {
    switch (kernel) {
        case ProductKernel::Halves: return "operands of 16 bits over cuBLAS (products/products_by_halves.cu)";
        case ProductKernel::FewColumns: return fmt::format("f64 tensor cores ({})", few_columns);
        case ProductKernel::Library: break;
    }
    return "cuBLAS (products/tall.cu)";
}

}  // namespace

template <>
std::string KernelNames<Cuda>::batch(Index m, Index n, ScalarKind scalar, BatchOf of) const {
    const auto [kernel, row] = choose_batch(m, n, scalar, of, tuning.kernels);
    switch (kernel) {
        case BatchKernel::None: break;
        case BatchKernel::Plain: return "cuSOLVER's geqrf, one matrix after the other (plain/householder.cpp)";
        case BatchKernel::ThreadPerMatrix: return "a thread a matrix (small/thread_per_matrix.cuh)";
        case BatchKernel::ThreadPerColumn:
            return fmt::format("a thread a column, up to {} x {} (small/thread_per_column.cuh)", column_lanes[row].rows,
                               column_lanes[row].lanes);
        case BatchKernel::ClusterPerMatrix: {
            const ClusterRows& shape = cluster_rows(scalar)[row];
            return fmt::format("a cluster a matrix, {} x {} a thread (small/cluster_per_matrix.cuh)", shape.rows,
                               shape.cols);
        }
        case BatchKernel::Strips: return strips_in_words(m, scalar, tuning.kernels);
    }
    return "";
}
template <>
std::string KernelNames<Cuda>::panel(Index m, Index, ScalarKind scalar) const {
    return choose_panel(m, scalar, tuning.kernels) == PanelKernel::Strips ? strips_in_words(m, scalar, tuning.kernels)
                                                                          : "cuSOLVER's geqrf (plain/householder.cpp)";
}
template <>
std::string KernelNames<Cuda>::update(Index m, Index k, Index p, ScalarKind scalar, Arithmetic arithmetic) const {
    switch (choose_update(m, k, p, scalar, arithmetic, tuning.kernels)) {
        case UpdateKernel::Corrected: return "three products of f16 for one of f32 (products/products_by_halves.cu)";
        case UpdateKernel::Halves: return "three products of f16 for one of f32 over cuBLAS (panels/panels.cu)";
        case UpdateKernel::Gemm: return "cuBLAS (panels/panels.cu)";
        case UpdateKernel::GemmByBlocks: return "cuBLAS, triangles by blocks (panels/panels.cu)";
    }
    return "";
}
template <>
std::string KernelNames<Cuda>::gram(Index n, ScalarKind scalar) const {
    switch (choose_gram(n, 1, scalar, tuning.kernels)) {
        case GramKernel::ThreadPerRow: return "a thread a row (cholesky/few_columns.cuh)";
        case GramKernel::WarpTiles: return "tiles of rows (cholesky/narrow.cuh)";
        case GramKernel::Slabs: return "slabs of rows (products/gram.cuh)";
        case GramKernel::Blocks: return "blocks of columns: slabs of rows, and cuBLAS (cholesky/solve_and_gram.cu)";
    }
    return "";
}
template <>
std::string KernelNames<Cuda>::solve(Index m, Index n, ScalarKind scalar) const {
    const std::string corrected = "f16 if the condition allows it (cholesky/solve_corrected.cuh), or ";
    switch (choose_solve(m, n, 1, true, scalar, tuning.kernels)) {
        case SolveKernel::ThreadPerRow:
        case SolveKernel::WarpTiles: return "one pass with the product: " + gram(n, scalar);
        case SolveKernel::Corrected: return corrected + "f64 tensor cores (cholesky/solve_right.cuh)";
        case SolveKernel::Columns: return "f64 tensor cores (cholesky/solve_right.cuh)";
        case SolveKernel::CorrectedOrBlocks: return corrected + "blocks of columns (cholesky/solve_and_gram.cu)";
        case SolveKernel::Blocks: return "blocks of columns (cholesky/solve_and_gram.cu)";
    }
    return "";
}
template <>
std::string KernelNames<Cuda>::cholesky(Index n) const {
    return in_words(choose_cholesky(n, tuning.kernels), "cholesky/factor_gram.cuh",
                    "cuSOLVER's potrf (cholesky/factor_gram.cu)");
}
template <>
std::string KernelNames<Cuda>::reconstruction(Index n) const {
    return in_words(choose_reconstruction(n, tuning.kernels), "cholesky/reconstruct_top.cuh",
                    "steps of 32 columns and cuBLAS (cholesky/reconstruct_householder.cu)");
}
template <>
std::string KernelNames<Cuda>::sketch() const {
    return "segments of rows (cholesky/sketch.cuh)";
}
template <>
std::string KernelNames<Cuda>::orthonormalization() const {
    return "a launch a column (gram_schmidt/orthonormalize.cuh)";
}
template <>
std::string KernelNames<Cuda>::inner_product(Index m, Index k, Index p, ScalarKind scalar,
                                             Arithmetic arithmetic) const {
    return in_words(choose_inner_product(m, k, p, scalar, arithmetic, tuning.kernels), "products/gram.cuh");
}
template <>
std::string KernelNames<Cuda>::subtracted_product(Index m, Index k, Index p, ScalarKind scalar,
                                                  Arithmetic arithmetic) const {
    return in_words(choose_subtracted_product(m, k, p, scalar, arithmetic, tuning.kernels),
                    "products/subtract_product.cuh");
}

}  // namespace quoin
