// S A, column by column: a column of B stays in the L1 cache while a column of A passes.

#include "primitives/sketch.hpp"

#include "host/device.hpp"
#include "host/parallel.hpp"

namespace quoin {
namespace {

using namespace host;

constexpr Index rows_of_group = sketch_group_rows;
/// Groups whose signs stay in cache while the columns of a strip pass, and the most columns of a strip.
constexpr Index groups_of_block = 64, most_strip_cols = 8;

/// Where a group goes, ready for use: `place` in a window of a segment and its repetition, so that no rotation wraps.
template <class T>
struct Placed {
    Index place[sketch_parts];
    Real<T> sign[sketch_parts];
};

}  // namespace

template <class T, class D>
void sketch(Context<D>& ctx, View<const T, D> A, Index seed, View<Sum<T, D>, D> B) {
    const Index m = A.rows, n = A.cols, segments = sketch_segments(n);
    const Index groups = (m + rows_of_group - 1) / rows_of_group, window = 2 * rows_of_group;
    Arena::Frame frame(ctx.state().arena);
    const int threads = team(ctx, 10.0 * static_cast<double>(m) * static_cast<double>(n));
    const Index strip = std::clamp<Index>(n / 64, 1, most_strip_cols), strips = (n + strip - 1) / strip;
    const Index sums_of_col = sketch_parts * segments * window;
    ThreadBuffers<T> sums(frame, threads, strip * sums_of_col), padded(frame, threads, rows_of_group);
    ThreadBuffers<Real<T>> signs(frame, threads, groups_of_block * rows_of_group);
    for_tasks(threads, strips, [&](Index s) {
        const Range cols{s * strip, std::min(n, (s + 1) * strip)};
        T* const acc = sums.mine();
        Real<T>* const sign = signs.mine();
        std::fill_n(acc, cols.size() * sums_of_col, T(0));
        for (Index first = 0; first < groups; first += groups_of_block) {
            const Index count = std::min(groups_of_block, groups - first);
            Placed<T> placed[groups_of_block];
            for (Index g = 0; g < count; ++g) {
                const SketchGroup to = sketch_group(first + g, seed, segments);
                for (Index k = 0; k < sketch_parts; ++k) {
                    placed[g].place[k] = (k * segments + to.segment[k]) * window + to.rotation[k];
                    placed[g].sign[k] = to.part_signs >> k & 1 ? Real<T>(-1) : Real<T>(1);
                }
                for (Index i = 0; i < rows_of_group; ++i)
                    sign[g * rows_of_group + i] = to.row_signs >> i & 1 ? Real<T>(-1) : Real<T>(1);
            }
            for (Index j = cols.begin; j < cols.end; ++j) {
                T* const column = acc + (j - cols.begin) * sums_of_col;
                for (Index g = 0; g < count; ++g) {
                    const Index row = (first + g) * rows_of_group;
                    const T* a = A.at(row, j);
                    if (m - row < rows_of_group) {
                        T* const rest = padded.mine();
                        std::fill(std::copy(a, a + (m - row), rest), rest + rows_of_group, T(0));
                        a = rest;
                    }
                    const Real<T>* const s_of = sign + g * rows_of_group;
                    T* const to[] = {column + placed[g].place[0], column + placed[g].place[1],
                                     column + placed[g].place[2], column + placed[g].place[3]};
                    const Real<T>* const p = placed[g].sign;
                    // the four windows lie in different parts
#pragma omp simd
                    for (Index i = 0; i < rows_of_group; ++i) {
                        const T x = a[i] * s_of[i];
                        to[0][i] += p[0] * x;
                        to[1][i] += p[1] * x;
                        to[2][i] += p[2] * x;
                        to[3][i] += p[3] * x;
                    }
                }
            }
        }
        for (Index j = cols.begin; j < cols.end; ++j) {
            const T* const column = acc + (j - cols.begin) * sums_of_col;
            for (Index r = 0; r < sketch_parts * segments; ++r) {
                for (Index i = 0; i < rows_of_group; ++i) {
                    const T* const p = column + r * window + i;
                    B(r * rows_of_group + i, j) = Real<T>(0.5) * (p[0] + p[rows_of_group]);
                }
            }
        }
    });
    ctx.state().add_flops(static_cast<double>(sketch_parts) * m * n);
}

QUOIN_IMPLEMENT(Host, sketch)

}  // namespace quoin
