// The steps of online robust PCA on the CPU: each one pass over chunks of rows, whose sums are added in order.

#include "robust_pca/online_steps.hpp"

#include <algorithm>
#include <cmath>

#include "host/device.hpp"
#include "host/parallel.hpp"

namespace quoin {

using namespace host;

namespace {

RowChunks chunks_of(Index rows) { return RowChunks(rows, 4096); }

/// Sorts each row of a block of h rows and n columns, a network's exchanges being column against column.
template <class T>
void sort_rows(Index h, Index n, T* block) {
    sorting_network(n, [=](Index c, Index d) {
        T *const low = block + c * h, *const high = block + d * h;
        for (Index i = 0; i < h; ++i) {
            const T a = low[i], b = high[i];
            low[i] = std::min(a, b);
            high[i] = std::max(a, b);
        }
    });
}

/// c := U(rows, :)ᵀx of a chunk of rows.
template <class T>
std::vector<double> products_of_chunk(MatrixView<const T> U, Range rows, const T* x) {
    std::vector<double> part(static_cast<std::size_t>(U.cols));
    for (Index k = 0; k < U.cols; ++k) {
        const T* const u = U.at(rows.begin, k);
        T sum = 0;
        for (Index i = 0; i < rows.size(); ++i) sum += u[i] * x[i];
        part[static_cast<std::size_t>(k)] = static_cast<double>(sum);
    }
    return part;
}
void add_parts(const std::vector<std::vector<double>>& parts, MatrixView<double> c) {
    for (const auto& part : parts) {
        for (Index k = 0; k < c.rows; ++k) c.data[k] += part[static_cast<std::size_t>(k)];
    }
}

/// low := U(rows, :) c.
template <class T>
void combine_chunk(MatrixView<const T> U, MatrixView<const double> c, Range rows, T* low) {
    const Index h = rows.size();
    std::fill_n(low, h, T(0));
    for (Index k = 0; k < U.cols; ++k) {
        const T* const u = U.at(rows.begin, k);
        const T weight = static_cast<T>(c.data[k]);
        for (Index i = 0; i < h; ++i) low[i] += weight * u[i];
    }
}

}  // namespace

template <>
std::vector<double> read_numbers(Context<Host>&, View<const double, Host> numbers) {
    return {numbers.data, numbers.data + numbers.rows};
}

template <class T, class D>
double start_from_column(Context<D>&, View<const T, D> m, float guess, View<T, D> u, RowRecords<T, D> rows) {
    double squares = 0;
    for (Index i = 0; i < m.rows; ++i) squares += static_cast<double>(m.data[i]) * static_cast<double>(m.data[i]);
    const double norm = std::sqrt(squares);
    for (Index i = 0; i < m.rows; ++i) {
        u.data[i] = norm > 0 ? static_cast<T>(static_cast<double>(m.data[i]) / norm) : T(0);
        rows.set(i, {0, guess, guess, 0, 0, 0});
    }
    return norm;
}

template <class T, class D>
double start_from_median(Context<D>& ctx, View<const T, D> M, EntryRules rules, Index step, View<T, D> median,
                         RowRecords<T, D> rows, View<T, D> R) {
    constexpr Index height = 128;
    const Index n = M.cols;
    const auto parts = over_chunks<double>(ctx, chunks_of(M.rows), 40.0 * M.rows * n, [&](Range chunk) {
        std::vector<T> r(static_cast<std::size_t>(height * n)), sorted(r.size());
        double squares = 0;
        for (Index first = chunk.begin; first < chunk.end; first += height) {
            const Index h = std::min(height, chunk.end - first);
            for (Index j = 0; j < n; ++j) std::copy_n(M.at(first, j), h, r.data() + j * height);
            sorted = r;
            sort_rows(height, n, sorted.data());
            T* const of_row = median.at(first, 0);
            std::copy_n(sorted.data() + n / 2 * height, h, of_row);
            for (Index j = 0; j < n; ++j) {
                for (Index i = 0; i < h; ++i) r[j * height + i] -= of_row[i];
            }
            for (std::size_t k = 0; k < r.size(); ++k) sorted[k] = std::abs(r[k]);
            sort_rows(height, n, sorted.data());
            std::copy_n(sorted.data() + quantile_at(0.5, n) * height, h, rows.size.data + first);
            for (Index k = 0; k < (n - 1) * height; ++k) sorted[k] = std::abs(r[k + height] - r[k]);
            sort_rows(height, n - 1, sorted.data());
            std::copy_n(sorted.data() + quantile_at(0.9, n - 1) * height, h, rows.change.data + first);
            std::copy_n(r.data() + (n - 1) * height, h, rows.last.data + first);
            for (Index i = 0; i < h; ++i) {
                const Index row = first + i;
                const float noise = noise_of(rows.size.data[row], rows.change.data[row]);
                rows.noise.data[row] = noise;
                rows.votes.data[row] = rules.votes<T>(n, noise, [&](Index j) { return r[j * height + i]; });
                squares += static_cast<double>(of_row[i]) * static_cast<double>(of_row[i]);
                if (row % step != 0) continue;
                const T scale = static_cast<T>(1 / std::max(noise, rules.min_noise)), most = static_cast<T>(outlier);
                for (Index j = 0; j < n; ++j) R(row / step, j) = std::clamp(scale * r[j * height + i], -most, most);
            }
        }
        return squares;
    });
    double squares = 0;
    for (const double part : parts) squares += part;
    return squares;
}

template <class T, class D>
void start_from_factors(Context<D>& ctx, View<const T, D> M, View<const T, D> A, View<const T, D> Vt, EntryRules rules,
                        RowRecords<T, D> rows) {
    const Index n = M.cols, r = A.cols;
    over_chunks<int>(ctx, chunks_of(M.rows), 2.0 * M.rows * n * (r + 10), [&](Range chunk) {
        std::vector<T> residual(static_cast<std::size_t>(n));
        std::vector<float> values;
        for (Index i = chunk.begin; i < chunk.end; ++i) {
            for (Index j = 0; j < n; ++j) {
                T low = 0;
                for (Index k = 0; k < r; ++k) low += A(i, k) * Vt(k, j);
                residual[static_cast<std::size_t>(j)] = M(i, j) - low;
            }
            const auto quantile = [&](double q) {
                const auto at = values.begin() + quantile_at(q, static_cast<Index>(values.size()));
                std::nth_element(values.begin(), at, values.end());
                return *at;
            };
            values.clear();
            for (const T value : residual) values.push_back(static_cast<float>(std::abs(value)));
            rows.size.data[i] = quantile(0.5);
            values.clear();
            for (std::size_t j = 1; j < residual.size(); ++j)
                values.push_back(static_cast<float>(std::abs(residual[j] - residual[j - 1])));
            rows.change.data[i] = quantile(0.9);
            rows.noise.data[i] = noise_of(rows.size.data[i], rows.change.data[i]);
            rows.last.data[i] = residual[static_cast<std::size_t>(n - 1)];
            rows.votes.data[i] =
                rules.votes<T>(n, rows.noise.data[i], [&](Index j) { return residual[static_cast<std::size_t>(j)]; });
        }
        return 0;
    });
}

template <class T, class D>
std::vector<double> fourth_powers(Context<D>&, View<const T, D> U) {
    std::vector<double> sums;
    for (Index k = 0; k < U.cols; ++k) {
        double sum = 0;
        for (Index i = 0; i < U.rows; ++i) sum += std::pow(static_cast<double>(U(i, k)), 4);
        sums.push_back(sum);
    }
    return sums;
}

template <class T, class D>
void project_column(Context<D>& ctx, View<const T, D> U, View<const T, D> m, View<double, D> c) {
    std::fill_n(c.data, c.rows, 0.0);
    add_parts(over_chunks<std::vector<double>>(
                  ctx, chunks_of(U.rows), 2.0 * U.rows * U.cols,
                  [&](Range rows) { return products_of_chunk<T>(U, rows, m.data + rows.begin); }),
              c);
}

template <class T, class D>
void refine_projection(Context<D>& ctx, View<const T, D> U, View<const T, D> m, View<const float, D> noise,
                       EntryRules rules, bool leaves_out, View<T, D> work, View<double, D> c) {
    add_parts(over_chunks<std::vector<double>>(ctx, chunks_of(U.rows), 4.0 * U.rows * U.cols,
                                               [&](Range rows) {
                                                   T* const clipped = work.data + rows.begin;
                                                   combine_chunk<T>(U, c, rows, clipped);
                                                   for (Index i = 0; i < rows.size(); ++i) {
                                                       const Index at = rows.begin + i;
                                                       clipped[i] = rules.clipped(m.data[at] - clipped[i],
                                                                                  noise.data[at], leaves_out);
                                                   }
                                                   return products_of_chunk<T>(U, rows, clipped);
                                               }),
              c);
}

template <class T, class D>
void separate_column(Context<D>& ctx, View<T, D> U, View<const double, D> c, View<const T, D> m, EntryRules rules,
                     View<const Scan, D> found, RowRecords<T, D> rows, View<T, D> l, View<T, D> s, View<T, D> e,
                     View<double, D> numbers) {
    struct Sums {
        double sparse = 0, noise = 0, replaced = 0;
    };
    numbers.data[BadRow] = static_cast<double>(found.data->bad_row);
    if (found.data->bad_row >= 0) return;
    const RowChange<T> change(c);
    const auto parts = over_chunks<Sums>(ctx, chunks_of(U.rows), (2.0 * U.cols + 30) * U.rows, [&](Range chunk) {
        Sums part;
        combine_chunk<T>(U, c, chunk, l.data + chunk.begin);
        for (Index i = chunk.begin; i < chunk.end; ++i) {
            RowRecord<T> row = rows.get(i);
            const T r = m.data[i] - l.data[i];
            const Entry entry = rules.separate(r, row, s.data[i], e.data[i], change.possible());
            part.sparse += entry == Entry::Sparse;
            if (entry == Entry::Replaced) {
                change.apply(U, i, r);
                l.data[i] = m.data[i];
                ++part.replaced;
            }
            part.noise += static_cast<double>(row.noise) * static_cast<double>(row.noise);
            rows.set(i, row);
        }
        return part;
    });
    Sums sums;
    for (const Sums& part : parts) {
        sums.sparse += part.sparse;
        sums.noise += part.noise;
        sums.replaced += part.replaced;
    }
    numbers.data[SparseCount] = sums.sparse;
    numbers.data[NoiseSquares] = sums.noise;
    numbers.data[ReplacedCount] = sums.replaced;
}

template <class T, class D>
void take_whole_difference(Context<D>&, double most, View<const T, D> r, View<const double, D> numbers, View<T, D> e) {
    if (numbers.data[SparseCount] > most) std::copy_n(r.data, r.rows, e.data);
}

template <class T, class D>
void remove_projection(Context<D>& ctx, View<const T, D> U, View<T, D> e, View<double, D> c, View<double, D> numbers) {
    Matrix<double> h(U.cols, 1);
    for (int pass = 0; pass < 2; ++pass) {
        project_column<T>(ctx, U, e, h.view());
        for (Index k = 0; k < U.cols; ++k) c.data[k] += h(k, 0);
        const auto parts = over_chunks<double>(ctx, chunks_of(U.rows), 2.0 * U.rows * U.cols, [&](Range rows) {
            T* const left = e.data + rows.begin;
            for (Index k = 0; k < U.cols; ++k) {
                const T* const u = U.at(rows.begin, k);
                const T weight = static_cast<T>(h(k, 0));
                for (Index i = 0; i < rows.size(); ++i) left[i] -= weight * u[i];
            }
            T sum = 0;
            for (Index i = 0; i < rows.size(); ++i) sum += left[i] * left[i];
            return static_cast<double>(sum);
        });
        numbers.data[LeftSquares] = 0;
        for (const double part : parts) numbers.data[LeftSquares] += part;
    }
}

template <class T, class D>
void rotate_basis(Context<D>& ctx, View<const T, Host> W, View<T, D> U) {
    const Index r = W.rows - 1, kept = W.cols;
    over_chunks<int>(ctx, chunks_of(U.rows), 2.0 * U.rows * (r + 1) * kept, [&](Range rows) {
        constexpr Index height = 256;
        Matrix<T> block(height, kept);
        for (Index first = rows.begin; first < rows.end; first += height) {
            const Index h = std::min(height, rows.end - first);
            for (Index k = 0; k < kept; ++k) {
                T* const to = block.view().at(0, k);
                const T* const e = U.at(first, r);
                for (Index i = 0; i < h; ++i) to[i] = W(r, k) * e[i];
                for (Index j = 0; j < r; ++j) {
                    const T* const u = U.at(first, j);
                    const T weight = W(j, k);
                    for (Index i = 0; i < h; ++i) to[i] += weight * u[i];
                }
            }
            for (Index k = 0; k < kept; ++k) std::copy_n(block.view().at(0, k), h, U.at(first, k));
        }
        return 0;
    });
}

template <class T, class D>
void column_of_bytes(Context<D>& ctx, std::span<const std::uint8_t> bytes, View<T, D> m) {
    over_chunks<int>(ctx, chunks_of(m.rows), 10.0 * m.rows, [&](Range rows) {
        for (Index i = rows.begin; i < rows.end; ++i) m.data[i] = value_of_byte<T>(bytes[static_cast<std::size_t>(i)]);
        return 0;
    });
}

template <class T, class D>
void bytes_of_column(Context<D>& ctx, View<const T, D> x, std::span<std::uint8_t> bytes) {
    over_chunks<int>(ctx, chunks_of(x.rows), 10.0 * x.rows, [&](Range rows) {
        for (Index i = rows.begin; i < rows.end; ++i) bytes[static_cast<std::size_t>(i)] = byte_of_value(x.data[i]);
        return 0;
    });
}

QUOIN_IMPLEMENT(Host, start_from_column, start_from_median, start_from_factors, fourth_powers, project_column,
                refine_projection, separate_column, take_whole_difference, remove_projection, rotate_basis,
                column_of_bytes, bytes_of_column)

}  // namespace quoin
