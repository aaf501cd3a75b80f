// The table of a GPU's kernels (src/cuda/kernel_choice.hpp) is whole and has no kernel for what it cannot hold, and
// src/cuda/README.md shows it as it is. Needs no GPU and no CUDA.

#include "cuda/kernel_choice.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cuda/tuning.hpp"

namespace quoin::cuda {
namespace {

constexpr ScalarKind types[] = {ScalarKind::F32, ScalarKind::F64};
constexpr Kernels hopper;

/// Returns 0 … 70 and the neighbours of 2^i and 3·2^i, up to `last`.
std::vector<Index> sizes(Index last) {
    std::vector<Index> all;
    for (Index i = 0; i <= 70; ++i) all.push_back(i);
    for (Index power = 128; power <= last; power *= 2) {
        for (Index d : {-1, 0, 1}) all.insert(all.end(), {power + d, power / 4 * 3 + d});
    }
    return all;
}

TEST(KernelChoice, MatricesOfABatchFitTheFirstKernelThatHoldsThem) {
    for (ScalarKind type : types) {
        const Index bytes = bytes_of(type);
        for (Index m : sizes(1 << 17)) {
            for (Index n : sizes(1 << 14)) {
                SCOPED_TRACE(testing::Message() << m << "x" << n << ", " << to_string(type));
                const auto [kernel, row] = choose_batch(m, n, type, BatchOf::Matrices, hopper);
                const bool empty = m == 0 || n == 0, thread = m <= 4 && n <= 4;
                const bool columns = (m <= 16 && n <= 16) || (m <= 64 && n <= 32);
                const bool cluster = m <= max_rows_in_cluster(n, type);
                const bool strips = m <= 65536 / bytes && std::min(m, n) <= 16384 / bytes;
                EXPECT_EQ(kernel, empty     ? BatchKernel::None
                                  : thread  ? BatchKernel::ThreadPerMatrix
                                  : columns ? BatchKernel::ThreadPerColumn
                                  : cluster ? BatchKernel::ClusterPerMatrix
                                  : strips  ? BatchKernel::Strips
                                            : BatchKernel::None);
                switch (kernel) {
                    case BatchKernel::None:
                    case BatchKernel::Plain:
                    case BatchKernel::ThreadPerMatrix: break;
                    case BatchKernel::ThreadPerColumn:
                        EXPECT_TRUE(m <= column_lanes[row].rows && n <= column_lanes[row].lanes);
                        break;
                    case BatchKernel::ClusterPerMatrix: {
                        const ClusterRows& shape = cluster_rows(type)[row];
                        EXPECT_TRUE(m <= shape.max_rows() && n <= shape.cols);
                        for (Index p : {1, 7, 32, 1000})
                            EXPECT_GE(cluster_row(m, cluster_cols_at_once(m, p, type), type), 0);
                        break;
                    }
                    case BatchKernel::Strips: {
                        const StripShape& few = strip_shapes(type)[row].few;
                        EXPECT_LE(m, few.rows());
                        EXPECT_TRUE(row == 0 || m > strip_shapes(type)[row - 1].few.rows()) << "a smaller one holds it";
                        break;
                    }
                }
                const BatchKernel of_level = choose_batch(m, n, type, BatchOf::TreeLevel, hopper).kernel;
                EXPECT_EQ(of_level, cluster && !columns && !empty && n > 16 ? BatchKernel::Strips : kernel);
                EXPECT_EQ(is_batch(m, n, type, Arithmetic::Auto), kernel != BatchKernel::None);
                EXPECT_EQ(is_batch(m, n, type, Arithmetic::FP16), !empty && (columns || cluster)) << "strips are exact";
                EXPECT_LE(is_batch_of_one(m, n, type, Arithmetic::Auto), is_batch(m, n, type, Arithmetic::Auto));
            }
        }
    }
}

TEST(KernelChoice, StripsForFewAndForManyHaveTheSameBits) {
    for (ScalarKind type : types) {
        const Index bytes = bytes_of(type);
        Index last = 0;
        for (const StripShapes& shapes : strip_shapes(type)) {
            const auto& [few, many, lean] = shapes;
            // rows, tiles a warp and columns of a panel decide the order of the sums
            EXPECT_EQ(few.rows(), many.rows());
            EXPECT_EQ(few.tiles, many.tiles);
            EXPECT_EQ(few.width, many.width);
            EXPECT_GT(few.rows(), last);
            last = few.rows();
            for (const StripShape& shape : {few, many}) EXPECT_TRUE(shape.cluster >= 1 && shape.cluster <= 8);
            EXPECT_FALSE(takes_strips_for_many(shapes, 132, 1));
            EXPECT_TRUE(takes_strips_for_many(shapes, 132, 1 << 20));
        }
        EXPECT_EQ(last, 65536 / bytes) << "registers of a cluster of 8";
        EXPECT_EQ(max_rows_in_strips(type), last);
    }
}

TEST(KernelChoice, PanelsThatStripsDoNotHoldAreReconstructedOrFactoredByCusolver) {
    for (ScalarKind type : types) {
        for (Index m : sizes(1 << 24))
            EXPECT_EQ(choose_panel(m, type, hopper) == PanelKernel::Strips, m <= 65536 / bytes_of(type)) << m;
    }
}

TEST(KernelChoice, PlainKernelsServeEveryShape) {
    const Kernels plain = plain_kernels;
    for (ScalarKind type : types) {
        for (Index m : sizes(1 << 14)) {
            EXPECT_EQ(choose_panel(m, type, plain), PanelKernel::Plain);
            for (Index n : sizes(1 << 11)) {
                EXPECT_EQ(choose_batch(m, n, type, BatchOf::Matrices, plain).kernel,
                          m * n > 0 ? BatchKernel::Plain : BatchKernel::None);
                const UpdateKernel update = choose_update(m, n, 4096, type, Arithmetic::Corrected, plain);
                EXPECT_TRUE(update == UpdateKernel::Gemm || update == UpdateKernel::GemmByBlocks);
                for (Arithmetic arithmetic : {Arithmetic::Native, Arithmetic::Corrected, Arithmetic::FP16}) {
                    EXPECT_EQ(choose_inner_product(m, n, 64, type, arithmetic, plain), ProductKernel::Library);
                    EXPECT_EQ(choose_subtracted_product(m, n, 64, type, arithmetic, plain), ProductKernel::Library);
                }
            }
        }
    }
    for (Index n : sizes(1 << 11)) {
        EXPECT_EQ(choose_cholesky(n, plain), SquareKernel::Library);
        EXPECT_EQ(choose_reconstruction(n, plain), SquareKernel::Library);
    }
}

TEST(KernelChoice, SumsInF64AreLeftToGpusThatAreFastAtThem) {
    for (const Kernels& kernels : {hopper, ampere_kernels, rtx_kernels}) {
        const bool slow = kernels == rtx_kernels;
        const Tuning<Cuda> tuning(kernels);
        for (const Index n : {1, 256, 257}) {
            EXPECT_EQ(tuning.tall_method(n, ScalarKind::F64), Method::CholeskyQR2);
            const Method tree = n <= 256 ? Method::TSQR : Method::CAQR;
            EXPECT_EQ(tuning.tall_method(n, ScalarKind::F32), slow ? tree : Method::CholeskyQR2);
        }
    }
}

TEST(KernelChoice, SmallerGpusGetKernelsThatTheyHold) {
    for (const Kernels& kernels : {ampere_kernels, rtx_kernels}) {
        SCOPED_TRACE(kernels.shared_bytes);
        for (ScalarKind type : types) {
            for (Index m : sizes(65536 / bytes_of(type))) {
                if (m == 0 || m > max_rows_in_strips(type)) continue;
                const int row = strip_row(m, type, kernels);
                ASSERT_GE(row, 0) << m;
                const auto& [few, many, lean] = strip_shapes(type)[row];
                EXPECT_EQ(lean.rows(), few.rows());
                EXPECT_LE(m, few.rows());
                EXPECT_TRUE(fits(few, type, kernels) || fits(lean, type, kernels)) << m;
            }
            for (Index n : sizes(1 << 11)) {
                for (int factors = 0; factors <= max_factors && n > 0; ++factors) {
                    const GramKernel gram = choose_gram(n, factors, type, kernels);
                    EXPECT_TRUE(gram != GramKernel::WarpTiles ||
                                narrow_bytes(n, factors, type) <= kernels.shared_bytes);
                    EXPECT_TRUE(gram != GramKernel::Slabs || gram_bytes(n, type) <= kernels.shared_bytes);
                    const SolveKernel solve = choose_solve(1 << 20, n, factors, true, type, kernels);
                    EXPECT_TRUE(solve != SolveKernel::Corrected && solve != SolveKernel::CorrectedOrBlocks);
                    if (solve != SolveKernel::Columns) continue;
                    EXPECT_LE(solve_right_bytes(n), kernels.shared_bytes);
                    EXPECT_EQ(gram, GramKernel::Slabs) << n << " columns: one call makes X and its Gram matrix";
                }
                EXPECT_NE(choose_update(5000, 512, n, type, Arithmetic::Corrected, kernels), UpdateKernel::Corrected);
                EXPECT_EQ(choose_panel(4096, type, kernels), PanelKernel::Strips);
                EXPECT_EQ(choose_batch(4096, n, type, BatchOf::Matrices, kernels).kernel,
                          choose_batch(4096, n, type, BatchOf::Matrices, hopper).kernel);
            }
        }
    }
}

TEST(KernelChoice, SizesFitTheNumberOfMultiprocessors) {
    for (const Kernels& kernels : {hopper, ampere_kernels}) {
        const Tuning<Cuda> tuning(kernels);
        for (ScalarKind type : types) {
            EXPECT_EQ(tuning.beside_an_update(type, 512, 512), kernels.multiprocessors / 2);
            for (Index n = 500; n < 40000; n += 500) {
                const Index width = tuning.pivoted_width(false, n, n, false, type), sketch = (width + 8) * n;
                EXPECT_TRUE(width <= 128 || sketch * bytes_of(type) < kernels.multiprocessors * kernels.shared_bytes);
            }
        }
    }
}

TEST(KernelChoice, OnlyProductsOfF32AreCorrectedOrForFewColumns) {
    for (Index m : {100, 20000, 70000}) {
        for (Index k : {8, 63, 64, 256, 257, 1024}) {
            for (Index p : {8, 64, 65, 104, 105, 512, 4096}) {
                for (Arithmetic arithmetic :
                     {Arithmetic::Native, Arithmetic::Corrected, Arithmetic::FP16, study::TF32}) {
                    EXPECT_EQ(choose_inner_product(m, k, p, ScalarKind::F64, arithmetic, hopper),
                              ProductKernel::Library);
                    EXPECT_EQ(choose_subtracted_product(m, k, p, ScalarKind::F64, arithmetic, hopper),
                              ProductKernel::Library);
                    EXPECT_NE(choose_update(m, k, p, ScalarKind::F64, arithmetic, hopper), UpdateKernel::Corrected);
                    EXPECT_EQ(
                        choose_inner_product(m, k, p, ScalarKind::F32, arithmetic, hopper) == ProductKernel::Halves,
                        takes_halves(arithmetic) && std::min({m, k, p}) >= 256);
                    EXPECT_TRUE(arithmetic != study::TF32 || choose_inner_product(m, k, p, ScalarKind::F32, arithmetic,
                                                                                  hopper) == ProductKernel::Library);
                }
            }
        }
    }
}

TEST(KernelChoice, ComplexNumbersAreNotTakenForRealOnesOfAsManyBytes) {
    static_assert(bytes_of(ScalarKind::C64) == bytes_of(ScalarKind::F64));
    for (ScalarKind type : {ScalarKind::C64, ScalarKind::C128}) {
        SCOPED_TRACE(to_string(type));
        // 3×3 would be a thread's, 20×20 a warp's, 1000×8 a cluster's, 1000×300 strips'
        for (auto [m, n] : {std::pair<Index, Index>{3, 3}, {20, 20}, {1000, 8}, {1000, 300}, {1 << 20, 300}})
            EXPECT_THROW(choose_batch(m, n, type, BatchOf::Matrices, hopper), InvalidArgument) << m << "x" << n;
        EXPECT_THROW(is_batch_of_one(3, 3, type, Arithmetic::Auto), InvalidArgument);
        EXPECT_THROW(cluster_rows(type), InvalidArgument);
        EXPECT_THROW(strip_shapes(type), InvalidArgument);
        EXPECT_THROW(choose_panel(100, type, hopper), InvalidArgument);
        EXPECT_THROW(choose_update(100, 8, 8, type, Arithmetic::Native, hopper), InvalidArgument);
        EXPECT_THROW(choose_gram(4, 1, type, hopper), InvalidArgument);
        EXPECT_THROW(choose_solve(100, 4, 1, true, type, hopper), InvalidArgument);
        EXPECT_THROW(choose_svd(100, type, false), InvalidArgument);
        EXPECT_THROW(choose_svd(100, type, true), InvalidArgument);
        EXPECT_THROW(choose_inner_product(100, 8, 8, type, Arithmetic::Native, hopper), InvalidArgument);
        EXPECT_THROW(choose_subtracted_product(100, 8, 8, type, Arithmetic::Native, hopper), InvalidArgument);
    }
}

// README.md's tables

std::string grouped(Index n) {
    std::string text = std::to_string(n);
    for (Index at = static_cast<Index>(text.size()) - 3; at > 0 && n > 9999; at -= 3) text.insert(at, " ");
    return text;
}
/// Returns the least and the most of a run of sizes.
std::string range(Index first, Index last, Index end) {
    return last == end     ? fmt::format("from {}", first)
           : first == last ? grouped(first)
                           : fmt::format("{} to {}", first, last);
}

/// Returns a row for each run of sizes 1 … `end` whose `cells` are alike.
template <class Cells>
std::string table_by(const std::string& head, Index end, Cells cells) {
    const auto columns = std::count(head.begin(), head.end(), '|');
    std::string text = head + "\n";
    for (Index i = 1; i < columns; ++i) text += "|---";
    text += "|\n";
    for (Index first = 1, last; first <= end; first = last + 1) {
        const std::string here = cells(first);
        for (last = first; last < end && cells(last + 1) == here;) ++last;
        text += "| " + range(first, last, end) + " " + here + "|\n";
    }
    return text;
}

/// Returns the most rows that each kernel of a batch has for n columns, as cells.
std::string rows_by_kernel(Index n, ScalarKind type) {
    std::string text;
    for (BatchKernel kernel : {BatchKernel::ThreadPerMatrix, BatchKernel::ThreadPerColumn,
                               BatchKernel::ClusterPerMatrix, BatchKernel::Strips}) {
        Index most = 0;
        // every kernel ends at a power of two
        for (Index m = 1; m <= 1 << 17; m *= 2) {
            if (choose_batch(m, n, type, BatchOf::Matrices, hopper).kernel == kernel) most = m;
        }
        EXPECT_NE(choose_batch(most + 1, n, type, BatchOf::Matrices, hopper).kernel, kernel);
        text += most > 0 ? fmt::format("| {} ", grouped(most)) : std::string("| – ");
    }
    return text;
}
std::string batch_table(ScalarKind type) {
    return table_by("| columns | a thread a matrix | a thread a column | a cluster a matrix | strips |", 40,
                    [&](Index n) { return rows_by_kernel(n, type); });
}

std::string strip_table(ScalarKind type) {
    std::string text = "| rows | columns | warps | the same for many |\n|---|---|---|---|\n";
    for (const auto& [few, many, lean] : strip_shapes(type)) {
        const auto cells = [](const StripShape& s) {
            return fmt::format("{} | {}", s.columns(),
                               s.cluster == 1 ? std::to_string(s.warps) : fmt::format("{} × {}", s.cluster, s.warps));
        };
        std::string other = "–";
        if (few != many) {
            other = fmt::format(
                "{} columns, {} warps", many.columns(),
                many.cluster == 1 ? std::to_string(many.warps) : fmt::format("{} × {}", many.cluster, many.warps));
            if (many.blocks != few.blocks) other += fmt::format(", {} blocks a multiprocessor", many.blocks);
        }
        text += fmt::format("| {} | {} | {} |\n", grouped(few.rows()), cells(few), other);
    }
    return text;
}

std::string cholesky_table(ScalarKind type) {
    constexpr std::array grams{"few_columns", "narrow", "gram", "gram, cuBLAS"};
    constexpr std::array solves{"few_columns",         "narrow",
                                "solve_right",         "solve_corrected or solve_right",
                                "solve_right, cuBLAS", "solve_corrected or solve_right, cuBLAS"};
    constexpr std::array squares{"one block", "cuSOLVER"}, tops{"one block", "cuBLAS"};
    return table_by("| columns | AᵀA | A R⁻¹ | Cholesky factor | V and T |", 400, [&](Index n) {
        return fmt::format("| {} | {} | {} | {} ", grams.at(static_cast<int>(choose_gram(n, 1, type, hopper))),
                           solves.at(static_cast<int>(choose_solve(1000000, n, 1, true, type, hopper))),
                           squares.at(static_cast<int>(choose_cholesky(n, hopper))),
                           tops.at(static_cast<int>(choose_reconstruction(n, hopper))));
    });
}

TEST(KernelChoice, ReadmeShowsTheTables) {
    const auto path = std::filesystem::path(__FILE__).parent_path().parent_path() / "src/cuda/README.md";
    std::ostringstream readme;
    readme << std::ifstream(path).rdbuf();
    for (ScalarKind type : types) {
        for (const std::string& table : {batch_table(type), strip_table(type), cholesky_table(type)}) {
            EXPECT_NE(readme.str().find("\n" + table), std::string::npos) << "src/cuda/README.md lacks:\n" << table;
        }
    }
}

}  // namespace
}  // namespace quoin::cuda
