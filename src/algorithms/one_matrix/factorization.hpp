#pragma once

// The data of a QR: its plan, its report, and the holder of Q.

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "algorithms/one_matrix/basis_kernel.hpp"
#include "algorithms/one_matrix/batch_tree.hpp"
#include "algorithms/one_matrix/full_t.hpp"
#include "primitives/small_batch.hpp"

namespace quoin {

/// R above V in the forest's A.
template <class T, class D>
struct ReflectorQ {
    ReflectorForest<T, D> forest;
    Matrix<T, D> full_t;  ///< T k×k, or with S m×k; empty if the only panel's T is all of it, or if not requested
};

/// A form of Q that a const factorization makes at its first use, once for all threads. Other contexts wait until it is
/// complete.
template <class Form, class D>
class LazyForm {
public:
    template <class Make>
    const Form& get(Context<D>& ctx, Make make) const {
        std::call_once(made_, [&] {
            form_ = make();
            ready_.record(ctx);
        });
        ready_.precede(ctx);
        return form_;
    }

private:
    mutable std::once_flag made_;
    mutable Form form_;
    mutable Event<D> ready_;
};

template <class T, class D>
struct ExplicitQ {
    ExplicitQ(Matrix<T, D>&& Q_, Matrix<T, D>&& R_) : Q(std::move(Q_)), R(std::move(R_)) {}
    /// Returns the kernel that the thin Q needs to act as the m×m Q. Made at the first call.
    const BasisKernel<T, D>& kernel(Context<D>& ctx) const {
        return kernel_.get(ctx, [&] { return basis_kernel_of<T, D>(ctx, Q.view()); });
    }

    Matrix<T, D> Q, R;  ///< m×k and k×n

private:
    LazyForm<BasisKernel<T, D>, D> kernel_;
};

/// Reflectors in a format of the device's own, which factored the whole matrix in one launch.
template <class T, class D>
struct SmallQ {
    SmallQ(std::unique_ptr<SmallBatch<T, D>> one, Matrix<T, D>&& memory_)
        : batch(std::move(one)), memory(std::move(memory_)) {}
    /// Returns the reflectors by panels in LAPACK's format. Made at the first call.
    const ReflectorQ<T, D>& reflectors(Context<D>& ctx, const Plan& plan) const;

    std::unique_ptr<SmallBatch<T, D>> batch;  ///< of one matrix
    Matrix<T, D> memory;  ///< A's memory (m×n) if A was moved in, for results that are taken; else empty

private:
    LazyForm<ReflectorQ<T, D>, D> reflectors_;
};

/// R without Q, for QForm::None.
template <class T, class D>
struct RAlone {
    Matrix<T, D> R;
};

/// R := D R for D = diag(signs), with exact zeros below the diagonal.
template <class T, class D>
void flip_triangle(Context<D>& ctx, MatrixView<const T, D> signs, MatrixView<T, D> R) {
    flip_rows<T>(ctx, signs, R);
    copy_triangle<T>(ctx, R, R);
}

/// The data of a QR.
template <class T, class D>
struct Factorization {
    Plan plan;
    Report report;
    std::vector<Index> order;   ///< with pivoting: column j of QR is column order[j] of A
    std::optional<Index> kept;  ///< columns of Q, if a limit of pivoting decided them
    /// With Options::positive_diagonal: D (k×1), if the reflectors factor A = (Q D)(D R). Otherwise empty.
    Matrix<T, D> signs;
    /// The holder of Q. std::monostate: not yet computed, or Q was taken.
    std::variant<std::monostate, ReflectorQ<T, D>, ExplicitQ<T, D>, SmallQ<T, D>, TreeQ<T, D>, RAlone<T, D>> holder;

    /// Returns the columns of the thin Q, and rows of R.
    Index k() const { return kept.value_or(std::min(plan.rows, plan.cols)); }
    ReflectorQ<T, D>* reflectors() { return std::get_if<ReflectorQ<T, D>>(&holder); }
    const ReflectorQ<T, D>* reflectors() const { return std::get_if<ReflectorQ<T, D>>(&holder); }
    /// Returns the reflectors, by panels for a small Q too.
    const ReflectorQ<T, D>* reflectors(Context<D>& ctx) const {
        const SmallQ<T, D>* small = small_q();
        return small ? &small->reflectors(ctx, plan) : reflectors();
    }
    SmallQ<T, D>* small_q() { return std::get_if<SmallQ<T, D>>(&holder); }
    const SmallQ<T, D>* small_q() const { return std::get_if<SmallQ<T, D>>(&holder); }
    TreeQ<T, D>* tree_q() { return std::get_if<TreeQ<T, D>>(&holder); }
    ExplicitQ<T, D>* explicit_q() { return std::get_if<ExplicitQ<T, D>>(&holder); }
    const ExplicitQ<T, D>* explicit_q() const { return std::get_if<ExplicitQ<T, D>>(&holder); }
    /// Returns the k rows that hold R, with V below its diagonal if there are reflectors. Without data once Q was
    /// taken, and for a small Q.
    MatrixView<T, D> r();
    /// Returns V, T and S if there is a full T; else V has no data.
    FullWY<T, D> full_wy() const;
    /// Throws InvalidArgument for `operation` if there is no Q.
    void require_q(const char* operation) const;
    /// Throws InvalidArgument for `operation` if the factorization holds nothing.
    void require_held(const char* operation) const;
};

/// Returns the factorization by `plan` that has given reflectors and R in LAPACK's format, k×1 tau.
template <class T, class D>
QR<T, D> of_reflectors(Context<D>& ctx, const Plan& plan, Matrix<T, D>&& V_R, View<const T, D> tau);

/// Access of Quoin's own sources to the data of a QR.
struct Inside {
    template <class T, class D>
    static Factorization<T, D>& of(QR<T, D>& f) {
        return *f.inside_;
    }
    template <class T, class D>
    static const Factorization<T, D>& of(const QR<T, D>& f) {
        return *f.inside_;
    }
    template <class T, class D>
    static QR<T, D> planned(const Plan& plan) {
        QR<T, D> f(detail::own<Factorization<T, D>>());
        of(f).plan = plan;
        return f;
    }
};

}  // namespace quoin
