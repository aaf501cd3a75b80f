// p?geqrf, p?geqpf, p?orgqr, p?ormqr and p?gels. The next ScaLAPACK after this library checks the arguments and returns
// the sizes of workspace, and computes the calls that Quoin does not take.

#include <mpi.h>

#include <algorithm>
#include <exception>
#include <vector>

#include "lapack/abi.hpp"
#include "lapack/pivoted.hpp"
#include "quoin/block_cyclic.hpp"
#include "quoin/mpi.hpp"

namespace quoin::scalapack {
namespace {

using lapack::Call;
using lapack::is;
using lapack::next_symbol;
using lapack::PassOn;

/// Indices in a descriptor.
enum { Type, Ctxt, Rows, Cols, RowBlock, ColBlock, RowSource, ColSource, Ld };

/// The grid of a BLACS context: its communicator and this process's position.
struct Blacs {
    explicit Blacs(int context) {
        using Info = void(int, int*, int*, int*, int*);
        static const auto info = reinterpret_cast<Info*>(next_symbol("Cblacs_gridinfo"));
        static const auto get = reinterpret_cast<void (*)(int, int, int*)>(next_symbol("Cblacs_get"));
        static const auto system = reinterpret_cast<MPI_Comm (*)(int)>(next_symbol("Cblacs2sys_handle"));
        if (!info || !get || !system) return;
        info(context, &rows, &cols, &row, &col);
        if (row < 0 || col < 0) return;
        int handle = 0;
        constexpr int communicator_of_context = 10;
        get(context, communicator_of_context, &handle);
        comm = system(handle);
    }
    MPI_Comm comm = MPI_COMM_NULL;
    int rows = 0, cols = 0, row = -1, col = -1;
};

/// Whether a matrix, and its submatrix from row `ia` and column `ja` (one-based) on, can be a block-cyclic one.
bool is_valid(const int* ia, const int* ja, const int* desc) {
    return desc[RowBlock] > 0 && desc[ColBlock] > 0 && *ia > 0 && *ja > 0;
}

/// sub(A) = A(ia : ia + m, ja : ja + n), ia and ja one-based. `layout` is valid if sub(A) begins with whole blocks
/// (`aligned`).
template <class T>
struct SubMatrix {
    SubMatrix(const Blacs& blacs, T* A, Index m, Index n, const int* ia, const int* ja, const int* desc)
        : rows{*ia - 1 + m, desc[RowBlock], blacs.rows, desc[RowSource]},
          cols{*ja - 1 + n, desc[ColBlock], blacs.cols, desc[ColSource]} {
        const Index i = *ia - 1, j = *ja - 1;
        aligned = i % rows.block == 0 && j % cols.block == 0;
        first_row = rows.before(blacs.row, i);
        first_col = cols.before(blacs.col, j);
        layout = {m, n, rows.block, cols.block, rows.owner(i), cols.owner(j)};
        local = {A + first_row + first_col * Index{desc[Ld]}, rows.local_size(blacs.row) - first_row,
                 cols.local_size(blacs.col) - first_col, desc[Ld]};
    }
    BlockCyclicView<T> view() const { return {layout, local}; }
    /// tau of this process's columns of the first k.
    MatrixView<T> tau_of(const Blacs& blacs, T* tau, Index k) const {
        const CyclicAxis first{k, layout.col_block, blacs.cols, layout.first_col};
        return {tau + first_col, first.local_size(blacs.col), 1};
    }

    CyclicAxis rows, cols;
    bool aligned = false;
    Index first_row = 0, first_col = 0;  ///< this process's rows and columns before it
    BlockCyclic layout;
    MatrixView<T> local;
};

/// Runs only `pass_on`, which sets info, for a query and for an illegal argument. Otherwise runs `compute(ctx, grid)`
/// if Quoin takes the call on every process, and `pass_on` if not. An exception of `compute` is thrown on every
/// process. After NaN and a singular R the caller's arrays are unchanged, and `pass_on` continues. Other failures are
/// reported.
/// The last arguments of the call are work, lwork and info.
template <class T, class... Argument, class Compute>
void serve(Call&& call, const Blacs& blacs, bool takes, const PassOn<Argument...>& pass_on, Compute compute) {
    constexpr std::size_t last = sizeof...(Argument) - 1;
    T* const work = std::get<last - 2>(pass_on.arguments);
    const int* const lwork = std::get<last - 1>(pass_on.arguments);
    int* const info = std::get<last>(pass_on.arguments);
    if (*lwork == -1) {
        call.by("workspace");
        return pass_on();
    }
    T wanted = 0;
    const int asks = -1;
    PassOn query = pass_on;
    std::get<last - 2>(query.arguments) = &wanted;
    std::get<last - 1>(query.arguments) = &asks;
    query();
    if (*info != 0) return;
    int rank = -1, size = 0;
    MPI_Comm_rank(blacs.comm, &rank);
    MPI_Comm_size(blacs.comm, &size);
    int mine = takes && static_cast<T>(*lwork) >= wanted && rank == blacs.row * blacs.cols + blacs.col &&
               size == blacs.rows * blacs.cols;
    int all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_LAND, blacs.comm);
    if (!all) return pass_on();
    try {
        MpiCommunicator comm(blacs.comm);
        const ProcessGrid grid(comm, blacs.rows, blacs.cols);
        Context<Host> ctx(lapack::threads());
        compute(ctx, grid);
        work[0] = wanted;
        call.by("by Quoin");
    } catch (const NonFiniteEntry&) {
        pass_on();
    } catch (const RankDeficient&) {
        pass_on();
    } catch (const std::exception& failure) {
        call.by("failed");
        *info = lapack::report_failure<int>(call.routine(), failure);
    }
}

template <class T, class Next>
void geqrf(const char* name, const Next& pass_on, const int* m, const int* n, T* A, const int* ia, const int* ja,
           const int* desca, T* tau, T*, const int*, int*) {
    const Blacs blacs(desca[Ctxt]);
    if (blacs.comm == MPI_COMM_NULL || !is_valid(ia, ja, desca) || !(*m > 0 && *n > 0)) return pass_on();
    const SubMatrix<T> sub(blacs, A, *m, *n, ia, ja, desca);
    serve<T>(Call(name, *m, *n), blacs, sub.aligned, pass_on, [&](Context<Host>& ctx, const ProcessGrid& grid) {
        const Matrix<T> computed = qr_in_place<T>(ctx, grid, sub.view()).tau(ctx);
        copy<T>(ctx, computed.view(), sub.tau_of(blacs, tau, std::min(*m, *n)));
    });
}

bool can_allocate(double bytes) {
    try {
        detail::free_host(detail::allocate_host(static_cast<std::size_t>(bytes)));
        return true;
    } catch (const OutOfMemory&) {
        return false;
    }
}

/// Returns the greedy pivots of A, one-based, on every rank. Rank 0 finds them in R of A, whose columns have the norms
/// and angles of A's.
template <class T>
std::vector<Index> pivots_of(Context<Host>& ctx, const ProcessGrid& grid, BlockCyclicView<const T> A) {
    Communicator& comm = grid.comm();
    const Index n = A.layout.cols, k = std::min(A.layout.rows, n);
    const Matrix<T> part = qr<T>(ctx, grid, A).r(ctx);
    BlockCyclic layout = A.layout;
    layout.rows = k;
    Matrix<T> R(comm.rank() == 0 ? k : 0, n);
    redistribute<T, Host>(ctx, grid, {layout, part.view()}, R.view());
    std::vector<Index> order(static_cast<std::size_t>(n));
    std::exception_ptr failure;
    try {
        std::vector<T> tau(static_cast<std::size_t>(k));
        if (comm.rank() == 0) lapack::factor_with_pivots_in_place<T>(ctx, R.view(), order.data(), tau.data());
    } catch (...) {
        failure = std::current_exception();
    }
    const int note = comm.broadcast<Index, Host>(ctx, {order.data(), n, 1}, 0, failure ? 1 : 0);
    if (failure) std::rethrow_exception(failure);
    if (note != 0) throw OutOfMemory("rank 0 could not find the pivots");
    return order;
}

/// A(:, j) := A(:, order[j] − 1), by way of blocks of rows.
template <class T>
void permute_columns(Context<Host>& ctx, const ProcessGrid& grid, const std::vector<Index>& order,
                     BlockCyclicView<T> A) {
    const Index m = A.layout.rows, n = A.layout.cols, P = grid.comm().size(), r = grid.comm().rank();
    const Index mine = (r + 1) * m / P - r * m / P;
    Matrix<T> rows(mine, n), moved(mine, n);
    redistribute<T, Host>(ctx, grid, A, rows.view());
    for (Index j = 0; j < n; ++j) std::copy_n(rows.view().at(0, order[j] - 1), mine, moved.view().at(0, j));
    redistribute<T, Host>(ctx, grid, std::as_const(moved).view(), A);
}

template <class T, class Next>
void geqpf(const char* name, const Next& pass_on, const int* m, const int* n, T* A, const int* ia, const int* ja,
           const int* desca, int* ipiv, T* tau, T*, const int*, int*) {
    const Blacs blacs(desca[Ctxt]);
    if (blacs.comm == MPI_COMM_NULL || !is_valid(ia, ja, desca) || !(*m > 0 && *n > 0)) return pass_on();
    const SubMatrix<T> sub(blacs, A, *m, *n, ia, ja, desca);
    const Index k = std::min(*m, *n), ranks = std::max(1, blacs.rows * blacs.cols);
    // R with its pivoted QR, and the blocks of rows
    const double bytes = sizeof(T) * 1.0 * *n * (3.0 * static_cast<double>(k) + 2.0 * (*m / ranks + 1));
    serve<T>(Call(name, *m, *n), blacs, sub.aligned && can_allocate(bytes), pass_on,
             [&](Context<Host>& ctx, const ProcessGrid& grid) {
                 const std::vector<Index> order = pivots_of<T>(ctx, grid, sub.view());
                 permute_columns<T>(ctx, grid, order, sub.view());
                 const Matrix<T> computed = qr_in_place<T>(ctx, grid, sub.view()).tau(ctx);
                 copy<T>(ctx, computed.view(), sub.tau_of(blacs, tau, k));
                 const CyclicAxis columns = sub.layout.col_axis(grid);
                 for (Index l = 0; l < sub.local.cols; ++l)
                     ipiv[sub.first_col + l] = static_cast<int>(*ja - 1 + order[columns.global(blacs.col, l)]);
             });
}

template <class T, class Next>
void orgqr(const char* name, const Next& pass_on, const int* m, const int* n, const int* k, T* A, const int* ia,
           const int* ja, const int* desca, T* tau, T*, const int*, int*) {
    const Blacs blacs(desca[Ctxt]);
    if (blacs.comm == MPI_COMM_NULL || !is_valid(ia, ja, desca) || !(*m >= *n && *n > 0)) return pass_on();
    const SubMatrix<T> sub(blacs, A, *m, *n, ia, ja, desca);
    serve<T>(Call(name, *m, *n, *k), blacs, sub.aligned && *k == *n, pass_on,
             [&](Context<Host>& ctx, const ProcessGrid& grid) {
                 from_lapack<T>(ctx, grid, sub.view(), sub.tau_of(blacs, tau, *k)).form_q_in_place(ctx);
             });
}

template <class T, class Next>
void ormqr(const char* name, const Next& pass_on, const char* side, const char* trans, const int* m, const int* n,
           const int* k, T* A, const int* ia, const int* ja, const int* desca, T* tau, T* C, const int* ic,
           const int* jc, const int* descc, T*, const int*, int*) {
    const Blacs blacs(desca[Ctxt]);
    const bool valid = is_valid(ia, ja, desca) && is_valid(ic, jc, descc) && *m > 0 && *n > 0 && *k > 0 && *k <= *m;
    if (!valid || !is(side, 'L') || blacs.comm == MPI_COMM_NULL) return pass_on();
    const SubMatrix<T> a(blacs, A, *m, *k, ia, ja, desca), c(blacs, C, *m, *n, ic, jc, descc);
    const bool alike = a.layout.row_block == c.layout.row_block && a.layout.first_row == c.layout.first_row;
    serve<T>(Call(name, *m, *n, *k), blacs, a.aligned && c.aligned && alike, pass_on,
             [&](Context<Host>& ctx, const ProcessGrid& grid) {
                 const auto f = from_lapack<T>(ctx, grid, a.view(), a.tau_of(blacs, tau, *k));
                 f.apply_q(ctx, lapack::op_of(trans), c.view());
             });
}

template <class T, class Next>
void gels(const char* name, const Next& pass_on, const char* trans, const int* m, const int* n, const int* nrhs, T* A,
          const int* ia, const int* ja, const int* desca, T* B, const int* ib, const int* jb, const int* descb, T*,
          const int*, int*) {
    const Blacs blacs(desca[Ctxt]);
    const bool valid = is_valid(ia, ja, desca) && is_valid(ib, jb, descb) && *m >= *n && *n > 0 && *nrhs > 0;
    if (!valid || !is(trans, 'N') || blacs.comm == MPI_COMM_NULL) return pass_on();
    const SubMatrix<T> a(blacs, A, *m, *n, ia, ja, desca), b(blacs, B, *m, *nrhs, ib, jb, descb);
    const bool alike = a.layout.row_block == b.layout.row_block && a.layout.first_row == b.layout.first_row;
    serve<T>(Call(name, *m, *n, *nrhs), blacs, a.aligned && b.aligned && alike, pass_on,
             [&](Context<Host>& ctx, const ProcessGrid& grid) {
                 const auto f = qr<T>(ctx, grid, a.view());
                 Matrix<T> X(b.local.rows, b.local.cols);
                 copy<T>(ctx, b.local, X.view());
                 f.solve(ctx, {b.layout, X.view()});
                 copy<T>(ctx, X.view(), b.local);
                 copy<T>(ctx, f.v_and_r(), a.local);
             });
}

}  // namespace

/// Defines a routine with `parameters`. Both lists are in parentheses.
#define QUOIN_SCALAPACK_ROUTINE(p, routine, parameters, arguments)                  \
    QUOIN_LAPACK_ABI void p##routine##_ parameters {                                \
        static void* const next = next_symbol(#p #routine "_");                     \
        std::apply(                                                                 \
            [](auto... given) {                                                     \
                routine(#p #routine, PassOn{next, std::tuple(given...)}, given...); \
            },                                                                      \
            std::tuple arguments);                                                  \
    }
#define QUOIN_SCALAPACK(T, p)                                                                                          \
    QUOIN_SCALAPACK_ROUTINE(p, geqrf,                                                                                  \
                            (const int* m, const int* n, T* A, const int* ia, const int* ja, const int* desca, T* tau, \
                             T* work, const int* lwork, int* info),                                                    \
                            (m, n, A, ia, ja, desca, tau, work, lwork, info))                                          \
    QUOIN_SCALAPACK_ROUTINE(p, geqpf,                                                                                  \
                            (const int* m, const int* n, T* A, const int* ia, const int* ja, const int* desca,         \
                             int* ipiv, T* tau, T* work, const int* lwork, int* info),                                 \
                            (m, n, A, ia, ja, desca, ipiv, tau, work, lwork, info))                                    \
    QUOIN_SCALAPACK_ROUTINE(p, orgqr,                                                                                  \
                            (const int* m, const int* n, const int* k, T* A, const int* ia, const int* ja,             \
                             const int* desca, T* tau, T* work, const int* lwork, int* info),                          \
                            (m, n, k, A, ia, ja, desca, tau, work, lwork, info))                                       \
    QUOIN_SCALAPACK_ROUTINE(p, ormqr,                                                                                  \
                            (const char* side, const char* trans, const int* m, const int* n, const int* k, T* A,      \
                             const int* ia, const int* ja, const int* desca, T* tau, T* C, const int* ic,              \
                             const int* jc, const int* descc, T* work, const int* lwork, int* info),                   \
                            (side, trans, m, n, k, A, ia, ja, desca, tau, C, ic, jc, descc, work, lwork, info))        \
    QUOIN_SCALAPACK_ROUTINE(p, gels,                                                                                   \
                            (const char* trans, const int* m, const int* n, const int* nrhs, T* A, const int* ia,      \
                             const int* ja, const int* desca, T* B, const int* ib, const int* jb, const int* descb,    \
                             T* work, const int* lwork, int* info),                                                    \
                            (trans, m, n, nrhs, A, ia, ja, desca, B, ib, jb, descb, work, lwork, info))
QUOIN_SCALAPACK(float, ps)
QUOIN_SCALAPACK(double, pd)
#undef QUOIN_SCALAPACK
#undef QUOIN_SCALAPACK_ROUTINE

}  // namespace quoin::scalapack
