// Principal component pursuit of bytes, in blocks of rows: L = F Vᵀ, and S and X are formed where they are needed.

#include "quoin/apps/robust_pca_of_frames.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "host/entry_norms.hpp"
#include "robust_pca/gram.hpp"
#include "robust_pca/pursuit_iteration.hpp"

namespace quoin {

using namespace host;

namespace {

template <class T>
const std::array<T, 256>& byte_values() {
    static const auto values = [] {
        std::array<T, 256> v;
        for (std::size_t i = 0; i < 256; ++i) v[i] = static_cast<T>(i) / T(255);
        return v;
    }();
    return values;
}

/// C(h×n) := A(h×k) B, for −B.
template <class T>
void multiply_block(Index h, Index n, Index k, const T* A, Index lda, const T* minus_B, T* C) {
    std::fill_n(C, h * n, T(0));
    if (k > 0) outer_blocked(h, n, k, A, lda, minus_B, k, C, h);
}

/// −A, column-major with ld = rows.
template <class T>
std::vector<T> negated(MatrixView<const T> A) {
    std::vector<T> minus;
    minus.reserve(static_cast<std::size_t>(A.rows * A.cols));
    for (Index j = 0; j < A.cols; ++j) {
        for (Index i = 0; i < A.rows; ++i) minus.push_back(-A(i, j));
    }
    return minus;
}

/// s = shrink(m − l + y/μ, t), x = m − s + y/μ.
template <class T>
struct Shrinkage {
    Shrinkage(double mu, double lambda) : inverse_mu(static_cast<T>(1 / mu)), t(static_cast<T>(lambda / mu)) {}
    T sparse(T m, T l, T y) const {
        const T r = m + inverse_mu * y - l;
        return r - std::max(-t, std::min(t, r));
    }
    T rest(T m, T s, T y) const { return m + inverse_mu * y - s; }
    T inverse_mu, t;
};

/// The first `cols` columns of a matrix of `rows` rows, which becomes a larger one where it has fewer.
template <class T>
void require_columns(Matrix<T>& A, Index rows, Index cols) {
    if (A.rows() == rows && A.cols() >= cols) return;
    A = {};
    A = Matrix<T>(rows, cols);
}

}  // namespace

/// The steps of `iterate`, each one pass over blocks of rows.
template <class T>
class RobustPcaOfFrames<T>::Steps {
public:
    Steps(Context<Host>& ctx, RobustPcaOfFrames& windows, const RobustPcaOptions<T>& options)
        : ctx_(ctx),
          w_(windows),
          stable_(options.pursuit == Pursuit::Stable),
          route_(route_in_use<Host>(options.route)),
          n_(windows.columns_in_window()),
          height_(block_height<double>(n_)),
          minus_C_(negated<T>(windows.coordinates_.view())),
          s_(static_cast<std::size_t>(n_)),
          Vt_(n_, n_),
          G_(n_, n_) {}

    Index rows() const { return w_.rows_; }
    Index cols() const { return n_; }
    void check() { throw_if_stopped(ctx_); }

    EntryNorms norms() {
        const RowChunks chunks(rows(), Tuning<Host>::short_chunk_rows);
        Arena::Frame frame(ctx_.state().arena);
        const ThreadBuffers<T> buffers(frame, ctx_.threads(), height_ * n_);
        const auto parts = over_chunks<EntryNorms>(ctx_, chunks, flops(10), [&](Range chunk) {
            EntryNorms part;
            T* const m = buffers.mine();
            for_blocks(chunk, [&](Range block) {
                read(block, m);
                for (Index i = 0; i < block.size() * n_; ++i) add_entry(part, static_cast<double>(m[i]));
            });
            return part;
        });
        return joined(parts);
    }

    const std::vector<T>& spectrum_of_M(SpectrumNeeds needs) {
        sweep(flops(10), [&](Range block, T* const* work, PursuitSums&) { read(block, work[x_]); });
        return spectrum(needs);
    }

    /// L = 0
    void start(double scale_of_Y, double mu) {
        w_.now_.rank = w_.next_.rank = 0;
        w_.has_Y_ = !stable_;
        if (w_.has_Y_) {
            require_columns(w_.Y_, rows(), n_);
        } else {
            w_.Y_ = {};
        }
        minus_Vt_.clear();
        w_.mu_ = mu;
        next_sums_ = sweep(flops(30), [&](Range block, T* const* work, PursuitSums& sums) {
            const Index h = block.size();
            read(block, work[m_]);
            const Shrinkage<T> shrink(mu, w_.lambda_);
            for (Index j = 0; j < n_; ++j) {
                T* const y = multipliers(block, j);
                const T* const m = work[m_] + j * h;
                T* const x = work[x_] + j * h;
                Column of;
                for (Index i = 0; i < h; ++i) {
                    if (y) y[i] = static_cast<T>(scale_of_Y) * m[i];
                    const T multiplier = y ? y[i] : T(0), s = shrink.sparse(m[i], T(0), multiplier);
                    x[i] = shrink.rest(m[i], s, multiplier);
                    of.add_sparse(s, T(0));
                }
                of.add_to(sums);
            }
        });
    }

    const std::vector<T>& spectrum(SpectrumNeeds needs) {
        const Span span(ctx_, "singular vectors");
        if (route_ == ThresholdRoute::Gram) {
            eigenvectors_of_gram<T>(ctx_, G_.view(), s_, Vt_.view());
        } else {
            Matrix<T> R = triangle_by_trees<T, Host>(ctx_, X_.view());
            right_singular_vectors<T>(ctx_, R.view(), needs, s_, Vt_.view());
        }
        return s_;
    }

    PursuitSums correct(std::span<const T> weights, double mu, double next_mu) {
        const Span span(ctx_, "L, Y and S");
        const Index r = static_cast<Index>(weights.size());
        Factor& next = w_.next_;
        require_columns(next.F, rows(), r);
        next.rank = r;
        next.Vt = Matrix<T>(r, n_);
        Matrix<T> VW(n_, r);
        for (Index i = 0; i < r; ++i) {
            for (Index j = 0; j < n_; ++j) {
                next.Vt(i, j) = Vt_(i, j);
                VW(j, i) = weights[static_cast<std::size_t>(i)] * Vt_(i, j);
            }
        }
        minus_VW_ = negated<T>(VW.view());
        minus_next_Vt_ = negated<T>(next.Vt.view());
        w_.mu_ = mu;
        PursuitSums found = next_sums_;
        const Shrinkage<T> shrink(mu, w_.lambda_), next_shrink(next_mu, w_.lambda_);
        const T step = static_cast<T>(mu);
        next_sums_ = sweep(flops(static_cast<double>(6 * r + 60)), [&](Range block, T* const* work, PursuitSums& sums) {
            const Index h = block.size();
            form_X(block, work, shrink);
            form_next_L(block, work);
            for (Index j = 0; j < n_; ++j) {
                const T* const y = multipliers(block, j);
                const T *const m = work[m_] + j * h, *const l = work[l_] + j * h;
                // S = M + Y/μ − X, then the next S; the next Y
                T *const x = work[x_] + j * h, *const s = work[f_], *const multiplier = work[f_] + h;
                Column of;
                if (y) {
                    for (Index i = 0; i < h; ++i) {
                        s[i] = shrink.rest(m[i], x[i], y[i]);
                        const T z = m[i] - l[i] - s[i];
                        multiplier[i] = y[i] + step * z;
                        of.residual += z * z;
                        of.multipliers += multiplier[i] * multiplier[i];
                    }
                } else {
                    for (Index i = 0; i < h; ++i) {
                        s[i] = m[i] - x[i];
                        const T z = m[i] - l[i] - s[i];
                        multiplier[i] = 0;
                        of.residual += z * z;
                    }
                }
                for (Index i = 0; i < h; ++i) {
                    const T before = s[i];
                    s[i] = next_shrink.sparse(m[i], l[i], multiplier[i]);
                    x[i] = next_shrink.rest(m[i], s[i], multiplier[i]);
                    of.change += (s[i] - before) * (s[i] - before);
                    of.sparse += std::abs(s[i]);
                }
                for (Index i = 0; i < h; ++i) of.nonzeros += s[i] != 0;
                of.add_to(sums);
            }
        });
        found.residual = next_sums_.residual;
        found.multipliers = next_sums_.multipliers;
        return found;
    }

    void go_on(double) {
        if (w_.has_Y_) {
            // Y += μ (M − L − S) = μ (X − L) for X = M − S + Y/μ
            const Shrinkage<T> shrink(w_.mu_, w_.lambda_);
            const T step = static_cast<T>(w_.mu_);
            Arena::Frame frame(ctx_.state().arena);
            const ThreadBuffers<T> buffers(frame, ctx_.threads(), buffer_size());
            over_chunks<int>(ctx_, RowChunks(rows(), n_), flops(static_cast<double>(6 * w_.next_.rank + 30)),
                             [&](Range chunk) {
                                 for_blocks(chunk, [&](Range block) {
                                     const Index h = block.size();
                                     T* work[buffers_used_];
                                     cut(buffers.mine(), work);
                                     form_X(block, work, shrink);
                                     form_next_L(block, work);
                                     for (Index j = 0; j < n_; ++j) {
                                         T* const y = multipliers(block, j);
                                         const T *const m = work[m_] + j * h, *const l = work[l_] + j * h,
                                                        *const x = work[x_] + j * h;
                                         for (Index i = 0; i < h; ++i)
                                             y[i] += step * (m[i] - l[i] - shrink.rest(m[i], x[i], y[i]));
                                     }
                                 });
                                 return 0;
                             });
        }
        std::swap(w_.now_, w_.next_);
        minus_Vt_ = minus_next_Vt_;
    }

private:
    // work of a thread: matrices of a block's rows and n columns
    static constexpr int m_ = 0, l_ = 1, x_ = 2, f_ = 3, buffers_used_ = 4;

    /// Sums of one column of a block. They are in T, as `robust_pca` sums a column of a chunk.
    struct Column {
        T sparse = 0, change = 0, residual = 0, multipliers = 0;
        Index nonzeros = 0;
        void add_sparse(T s, T before) {
            sparse += std::abs(s);
            change += (s - before) * (s - before);
            nonzeros += s != 0;
        }
        void add_to(PursuitSums& sums) const {
            sums.sparse += static_cast<double>(sparse);
            sums.change += static_cast<double>(change);
            sums.nonzeros += static_cast<double>(nonzeros);
            sums.residual += static_cast<double>(residual);
            sums.multipliers += static_cast<double>(multipliers);
        }
    };

    double flops(double per_entry) const { return per_entry * static_cast<double>(rows()) * static_cast<double>(n_); }
    template <class F>
    void for_blocks(Range chunk, F f) const {
        for (Index i = chunk.begin; i < chunk.end; i += height_) f(Range{i, std::min(i + height_, chunk.end)});
    }
    void cut(T* buffer, T** work) const {
        for (int k = 0; k < buffers_used_; ++k) work[k] = buffer + k * height_ * n_;
    }
    Index buffer_size() const { return height_ * (buffers_used_ * n_ + 2); }
    T* multipliers(Range block, Index j) const { return w_.has_Y_ ? &w_.Y_(block.begin, j) : nullptr; }

    /// The block's rows of M, packed.
    void read(Range block, T* m) const {
        const Index h = block.size(), c = w_.carried_in_;
        const MatrixView<const T> F = w_.carried_factor_.left();
        multiply_block(h, c, F.cols, F.at(block.begin, 0), F.ld, minus_C_.data(), m);
        const std::array<T, 256>& values = byte_values<T>();
        for (Index j = c; j < n_; ++j) {
            const std::uint8_t* const bytes = &w_.bytes_(block.begin, j - c);
            for (Index i = 0; i < h; ++i) m[j * h + i] = values[bytes[i]];
        }
    }
    /// M, and X of this iteration: L from F and V of the last one.
    void form_X(Range block, T* const* work, const Shrinkage<T>& shrink) const {
        const Index h = block.size();
        read(block, work[m_]);
        const MatrixView<const T> F = w_.now_.left();
        multiply_block(h, n_, F.cols, F.at(block.begin, 0), F.ld, minus_Vt_.data(), work[l_]);
        for (Index j = 0; j < n_; ++j) {
            const T* const y = multipliers(block, j);
            const T *const m = work[m_] + j * h, *const l = work[l_] + j * h;
            T* const x = work[x_] + j * h;
            if (y) {
                for (Index i = 0; i < h; ++i) x[i] = shrink.rest(m[i], shrink.sparse(m[i], l[i], y[i]), y[i]);
            } else {
                for (Index i = 0; i < h; ++i) x[i] = shrink.rest(m[i], shrink.sparse(m[i], l[i], T(0)), T(0));
            }
        }
    }
    /// F := X V diag(weights) and L = F Vᵀ of this iteration.
    void form_next_L(Range block, T* const* work) const {
        const Index h = block.size(), r = w_.next_.rank;
        multiply_block(h, r, n_, work[x_], h, minus_VW_.data(), work[f_]);
        for (Index k = 0; k < r; ++k) std::copy_n(work[f_] + k * h, h, &w_.next_.F(block.begin, k));
        multiply_block(h, n_, r, work[f_], h, minus_next_Vt_.data(), work[l_]);
    }

    /// f(block, work, sums) leaves X of a block in work[x_]; their XᵀX, or X itself, is what `spectrum` takes.
    template <class F>
    PursuitSums sweep(double work_flops, F f) {
        const bool gram = route_ == ThresholdRoute::Gram;
        if (!gram && X_.cols() == 0) {
            X_ = Matrix<T>(std::max(rows(), n_), n_);
            for (Index j = 0; j < n_; ++j) std::fill(X_.view().at(rows(), j), X_.view().at(0, j) + X_.rows(), T(0));
        }
        Arena::Frame frame(ctx_.state().arena);
        const RowChunks chunks(rows(), n_);
        double* const parts = frame.take<double>(gram ? chunks.count * n_ * n_ : 0);
        const ThreadBuffers<T> buffers(frame, ctx_.threads(), buffer_size());
        const ThreadBuffers<double> wide(frame, ctx_.threads(), std::is_same_v<T, double> ? 0 : height_ * n_);
        const auto sums =
            over_chunks<PursuitSums>(ctx_, chunks, work_flops + flops(static_cast<double>(n_)), [&](Range chunk) {
                PursuitSums part;
                double* const G = gram ? parts + chunk.begin / chunks.chunk_rows * n_ * n_ : nullptr;
                if (gram) std::fill_n(G, n_ * n_, 0.0);
                for_blocks(chunk, [&](Range block) {
                    const Index h = block.size();
                    T* work[buffers_used_];
                    cut(buffers.mine(), work);
                    f(block, work, part);
                    const T* const x = work[x_];
                    if (!gram) {
                        for (Index j = 0; j < n_; ++j) std::copy_n(x + j * h, h, &X_(block.begin, j));
                    } else if constexpr (std::is_same_v<T, double>) {
                        kernels<double>().inner_upper(n_, h, x, h, G, n_);
                    } else {
                        std::copy_n(x, h * n_, wide.mine());
                        kernels<double>().inner_upper(n_, h, wide.mine(), h, G, n_);
                    }
                });
                return part;
            });
        if (gram) sum_parts(ctx_, n_, n_, chunks.count, parts, G_.data(), n_);
        ctx_.state().add_flops(flops(static_cast<double>(n_)));
        PursuitSums total;
        for (const PursuitSums& part : sums) total.add(part);
        return total;
    }

    Context<Host>& ctx_;
    RobustPcaOfFrames& w_;
    bool stable_;
    ThresholdRoute route_;
    Index n_, height_;
    std::vector<T> minus_C_, minus_Vt_, minus_VW_, minus_next_Vt_;
    std::vector<T> s_;
    Matrix<T> Vt_;      // of X
    Matrix<double> G_;  // XᵀX
    Matrix<T> X_;       // of the route by QR
    PursuitSums next_sums_;
};

template <class T>
RobustPcaOfFrames<T>::RobustPcaOfFrames(Index rows, Index carried) : rows_(rows), carried_(carried) {
    check_window_sizes(rows, carried);
}

template <class T>
MatrixView<std::uint8_t> RobustPcaOfFrames<T>::columns(Index count) {
    check_window_columns(count);
    if (is_pursued_) {
        is_pursued_ = false;
        std::swap(carried_factor_, next_);
        coordinates_ = std::move(next_coordinates_);
        next_coordinates_ = {};
    }
    carried_in_ = coordinates_.cols();
    require_columns(bytes_, rows_, count);
    count_ = count;
    return bytes_.view().col_block({0, count});
}

template <class T>
auto RobustPcaOfFrames<T>::pursue(Context<Host>& ctx, RobustPcaOptions<T> options) -> Outcome {
    check_window(count_ > 0 && !is_pursued_, options);
    const Index n = columns_in_window();
    check_options(MatrixView<const T>(nullptr, rows_, n), options);
    Outcome f;
    f.carried = carried_in_;
    f.lambda = lambda_ = lambda_of(options, rows_, n);
    f.route = route_in_use<Host>(options.route);
    Steps steps(ctx, *this, options);
    const EntryNorms norms = steps.norms();
    mu_ = 1;
    if (norms.squares == 0) {
        now_.rank = next_.rank = 0;
        has_Y_ = false;
    } else {
        const PursuitOutcome outcome = iterate(steps, norms, options);
        f.last = outcome.last;
        f.end = outcome.end;
    }
    is_pursued_ = true;
    const Index kept = std::min(carried_, n);
    next_coordinates_ = Matrix<T>(next_.rank, kept);
    for (Index i = 0; i < kept; ++i) {
        const Index j = carried_column(i, n, kept);
        for (Index k = 0; k < next_.rank; ++k) next_coordinates_(k, i) = next_.Vt(k, j);
    }
    return f;
}

namespace {

/// Rows of column j of F Vt.
template <class T>
void column_of_product(MatrixView<const T> F, const Matrix<T>& Vt, Range rows, Index j, T* to) {
    std::fill_n(to, rows.size(), T(0));
    for (Index k = 0; k < F.cols; ++k) {
        const T v = Vt(k, j);
        const T* const f = F.at(rows.begin, k);
        for (Index i = 0; i < rows.size(); ++i) to[i] += f[i] * v;
    }
}

}  // namespace

template <class T>
void RobustPcaOfFrames<T>::low_rank_rows(Context<Host>& ctx, Range rows, MatrixView<T> L) const {
    for_parts(team(ctx, 2.0 * rows.size() * L.cols * (next_.rank + 5)), L.cols,
              [&](Index j) { column_of_product<T>(next_.left(), next_.Vt, rows, carried_in_ + j, L.at(0, j)); });
}

template <class T>
void RobustPcaOfFrames<T>::low_rank(Context<Host>& ctx, Index j, std::span<T> l) const {
    over_chunks<int>(ctx, RowChunks(rows_, Tuning<Host>::chunk_rows), 2.0 * rows_ * (next_.rank + 5), [&](Range rows) {
        column_of_product<T>(next_.left(), next_.Vt, rows, carried_in_ + j, l.data() + rows.begin);
        return 0;
    });
}

template <class T>
void RobustPcaOfFrames<T>::sparse(Context<Host>& ctx, Index j, std::span<T> s) const {
    const Shrinkage<T> shrink(mu_, lambda_);
    const std::array<T, 256>& values = byte_values<T>();
    over_chunks<int>(ctx, RowChunks(rows_, Tuning<Host>::chunk_rows), 2.0 * rows_ * (now_.rank + 10), [&](Range rows) {
        T* const to = s.data() + rows.begin;
        column_of_product<T>(now_.left(), now_.Vt, rows, carried_in_ + j, to);
        const std::uint8_t* const bytes = bytes_.view().at(rows.begin, j);
        const T* const y = has_Y_ ? Y_.view().at(rows.begin, carried_in_ + j) : nullptr;
        for (Index i = 0; i < rows.size(); ++i) to[i] = shrink.sparse(values[bytes[i]], to[i], y ? y[i] : T(0));
        return 0;
    });
}

template <class T>
void RobustPcaOfFrames<T>::release_sparse() {
    now_ = {};
    Y_ = {};
}

template <class T>
MatrixView<const T> RobustPcaOfFrames<T>::background() const {
    return next_.left();
}

template <class T>
void RobustPcaOfFrames<T>::set_background(Matrix<T> F, Matrix<T> C) {
    if (C.cols() > carried_ || C.rows() != F.cols() || (C.cols() > 0 && F.rows() != rows_)) {
        throw InvalidArgument(
            fmt::format("a background of {} x {} times {} x {} does not fit windows of {} rows that carry {}", F.rows(),
                        F.cols(), C.rows(), C.cols(), rows_, carried_));
    }
    is_pursued_ = true;
    next_.rank = F.cols();
    next_.F = std::move(F);
    next_coordinates_ = std::move(C);
    count_ = 0;
}

template class RobustPcaOfFrames<float>;
template class RobustPcaOfFrames<double>;

}  // namespace quoin
