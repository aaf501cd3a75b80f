// The functions of quoin.h, by the C++ interface.

#include "c/call.hpp"
#include "io/json_text.hpp"
#include "quoin/batch.hpp"
#include "quoin/least_squares.hpp"
#include "quoin/plan_fields.hpp"
#include "quoin/qr.hpp"
#include "quoin/regression.hpp"
#include "quoin/streaming.hpp"
#include "quoin/svd.hpp"
#include "quoin/version.hpp"

struct quoin_factorization : quoin::c::Handle<quoin::QR> {};
struct quoin_stream : quoin::c::Handle<quoin::StreamingR> {};
struct quoin_plan {
    std::string text, json;
};

namespace quoin::c {

namespace {

thread_local std::string last_error;

quoin_status failed(int status, const char* sentence) {
    try {
        last_error = sentence;
    } catch (const std::bad_alloc&) {
        last_error.clear();
    }
    return static_cast<quoin_status>(status);
}

quoin_options default_options() {
    quoin_options all{};
    all.size = sizeof(all);
    all.check_finite = 1;
    all.rcond = -1;
    return all;
}

/// Returns the caller's options, with defaults for null and for the fields that an earlier version of the struct lacks.
quoin_options complete(const quoin_options* options) {
    quoin_options all = default_options();
    if (options) {
        require_size("options", options->size, sizeof(all));
        std::memcpy(&all, options, options->size);
    }
    return all;
}

LeastSquaresOptions solver_options(const quoin_options* options) {
    const quoin_options given = complete(options);
    return {.rcond = given.rcond, .refuse_deficient = given.refuse_deficient != 0};
}

Options factor_options(const quoin_options* options) {
    const quoin_options given = complete(options);
    Options all;
    all.method = enumerator<Method>("options.method", given.method, 8);
    all.method.set_panel_width(given.panel_width);
    all.method.set_tree({.leaf_rows = given.leaf_rows, .fan_in = given.fan_in});
    all.method.set_reorthogonalization(
        enumerator<Reorthogonalization>("options.reorthogonalize", given.reorthogonalize, 3));
    all.q = enumerator<QForm>("options.q", given.q, 4);
    const auto pivots = enumerator<int>("options.pivots", given.pivots, 5);
    if (pivots != QUOIN_PIVOTS_NONE) {
        all.pivoting = Pivoting{.kind = static_cast<Pivots>(pivots - QUOIN_PIVOTS_AUTO),
                                .max_rank = given.max_rank,
                                .tolerance = given.tolerance,
                                .relative_tolerance = given.relative_tolerance,
                                .relative_frobenius = given.relative_frobenius};
    } else if (given.max_rank != 0 || given.tolerance != 0 || given.relative_tolerance != 0 ||
               given.relative_frobenius != 0) {
        throw InvalidArgument("max_rank and tolerances belong to column pivoting, and options.pivots is 0 (none)");
    }
    all.positive_diagonal = given.positive_diagonal != 0;
    all.check_finite = given.check_finite != 0;
    all.verify = given.verify != 0;
    return all;
}

/// Returns the columns of the thin Q.
template <class T, class D>
Index thin_columns(const QR<T, D>& f) {
    const bool limited = f.plan().pivoting && f.plan().pivoting->has_limit();
    return limited ? f.report().rank : std::min(f.rows(), f.cols());
}

template <class T>
void put_numbers(const std::vector<T>& from, void* to) {
    if (to) std::copy(from.begin(), from.end(), static_cast<T*>(to));
}

template <class T, class D>
void put_solution(Context<D>& ctx, const LeastSquares<T, D>& found, InputView<T, D> X, void* residual_norms,
                  quoin_solution* solution) {
    put<T, D>(ctx, "X", found.X.view(), X);
    put_numbers(found.residual_norms, residual_norms);
    answer("solution", {sizeof(quoin_solution), found.rank, found.condition, found.tolerance}, solution);
}

/// Returns a view of the batch of `count` matrices whose first is `matrix`.
template <class T, class D>
BatchView<T, D> batch(const char* name, const quoin_matrix* matrix, Index count, bool written = false) {
    const InputView<T, D> first = view<T, D>(name, matrix);
    if (written && matrix->stride == 0 && count > 1) {
        throw InvalidArgument(fmt::format("{} has stride 0, and {} results to hold", name, count));
    }
    const MatrixView<T, D> stored = writable(first);
    const BatchView<T, D> all(stored.data, stored.rows, stored.cols, stored.ld, matrix->stride, count);
    return first.by_rows ? all.transposed() : all;
}

}  // namespace

quoin_status failure() noexcept {
    try {
        throw;
    } catch (const Error& e) {
        return failed(error_info(e.code()).exit_code, e.what());
    } catch (const std::bad_alloc&) {
        return failed(QUOIN_OUT_OF_MEMORY, "out of memory");
    } catch (const std::exception& e) {
        return failed(QUOIN_OTHER_FAILURE, e.what());
    } catch (...) {
        return failed(QUOIN_OTHER_FAILURE, "an exception that is none of the standard library's");
    }
}

}  // namespace quoin::c

using namespace quoin;
using namespace quoin::c;

const char* quoin_version() { return version(); }
const char* quoin_last_error() { return last_error.c_str(); }

quoin_status quoin_options_init(quoin_options* options, std::size_t size) {
    return guarded([&] {
        given("options", options).size = size;
        answer("options", default_options(), options);
    });
}

// ---- contexts -------------------------------------------------------------------------------------------------------

quoin_status quoin_context_create(std::int32_t device, std::int32_t threads, [[maybe_unused]] void* stream,
                                  quoin_context** ctx) {
    return guarded([&] {
        given("ctx", ctx) = nullptr;
        if (device < QUOIN_HOST) {
            throw InvalidArgument(
                fmt::format("device must be -1 (the host) or the number of a GPU, and is {}", device));
        }
        if (device == QUOIN_HOST) {
            *ctx = new quoin_context{device, Context<Host>(threads)};
            return;
        }
#ifdef QUOIN_HAVE_CUDA
        const OnDevice current(device);
        *ctx = new quoin_context{device, Context<Cuda>(static_cast<CudaStream>(stream))};
#else
        throw Error(ErrorCode::DeviceFailure,
                    fmt::format("device {} is a GPU, and Quoin was built without CUDA", device));
#endif
    });
}
void quoin_context_destroy(quoin_context* ctx) { destroy(ctx); }

quoin_status quoin_wait(quoin_context* ctx) {
    return guarded([&] {
        const OnDevice current(given("the context", ctx).device);
        std::visit([](auto& context) { context.wait(); }, ctx->of);
    });
}
void quoin_request_stop(quoin_context* ctx) {
    std::visit([](auto& context) { context.request_stop(); }, ctx->of);
}
void quoin_clear_stop(quoin_context* ctx) {
    std::visit([](auto& context) { context.clear_stop(); }, ctx->of);
}

// ---- factorizations -------------------------------------------------------------------------------------------------

quoin_status quoin_factor(quoin_context* ctx, const quoin_matrix* A, const quoin_options* options,
                          quoin_factorization** factorization) {
    return guarded([&] {
        given("factorization", factorization) = nullptr;
        with_type(ctx, given("A", A).type, [&]<class T, class D>(Context<D>& c, T) {
            *factorization =
                new quoin_factorization{{ctx->device, qr<T, D>(c, view<T, D>("A", A), factor_options(options))}};
        });
    });
}
void quoin_factorization_destroy(quoin_factorization* factorization) { destroy(factorization); }

quoin_status quoin_factorization_report(const quoin_factorization* factorization, quoin_report* report) {
    return guarded([&] {
        given("report", report);
        const auto write = [&](const auto& f) {
            const Report& r = f.report();
            answer("report",
                   {sizeof(quoin_report), f.rows(), f.cols(), thin_columns(f), r.rank, static_cast<int>(r.method),
                    r.fell_back, r.seconds, r.flops, r.orthogonality, r.residual},
                   report);
        };
        std::visit(write, given("factorization", factorization).of);
    });
}

quoin_status quoin_permutation(const quoin_factorization* factorization, std::int64_t* p) {
    return guarded([&] {
        given("p", p);
        const auto write = [&](const auto& f) {
            for (Index j = 0; j < f.cols(); ++j) p[j] = f.permutation().empty() ? j : f.permutation()[j];
        };
        std::visit(write, given("factorization", factorization).of);
    });
}

quoin_status quoin_r(quoin_context* ctx, const quoin_factorization* factorization, const quoin_matrix* R) {
    return with_object(ctx, "factorization", factorization, [&]<class T, class D>(Context<D>& c, const QR<T, D>& f) {
        put<T, D>(c, "R", f.r(c).view(), view<T, D>("R", R));
    });
}

quoin_status quoin_thin_q(quoin_context* ctx, const quoin_factorization* factorization, const quoin_matrix* Q) {
    return with_object(ctx, "factorization", factorization, [&]<class T, class D>(Context<D>& c, const QR<T, D>& f) {
        put<T, D>(c, "Q", f.form_q(c).view(), view<T, D>("Q", Q));
    });
}

quoin_status quoin_apply_q(quoin_context* ctx, const quoin_factorization* factorization, std::int32_t side,
                           std::int32_t op, const quoin_matrix* C) {
    return with_object(ctx, "factorization", factorization, [&]<class T, class D>(Context<D>& c, const QR<T, D>& f) {
        Side of_c = enumerator<Side>("side", side, 2);
        Op op_of_q = enumerator<Op>("op", op, 2);
        const InputView<T, D> given_c = view<T, D>("C", C);
        if ((of_c == Side::Left ? C->rows : C->cols) != f.rows()) {
            throw InvalidArgument(fmt::format("C is {} x {}, and Q is {} x {}", C->rows, C->cols, f.rows(), f.rows()));
        }
        if (given_c.by_rows) {
            // (op(Q) C)ᵀ = Cᵀ op(Q)ᵀ
            of_c = of_c == Side::Left ? Side::Right : Side::Left;
            op_of_q = op_of_q == Op::None ? Op::Transpose : Op::None;
        }
        f.apply_q(c, of_c, op_of_q, writable(given_c));
    });
}

quoin_status quoin_to_lapack(quoin_context* ctx, quoin_factorization* factorization, const quoin_matrix* V_R,
                             const quoin_matrix* tau) {
    const quoin_status status =
        with_object(ctx, "factorization", factorization, [&]<class T, class D>(Context<D>& c, QR<T, D>& f) {
            const InputView<T, D> to_v_r = view<T, D>("V_R", V_R), to_tau = view<T, D>("tau", tau);
            const LapackQR<T, D> exported = to_lapack<T, D>(c, std::move(f));
            put<T, D>(c, "V_R", exported.V_R.view(), to_v_r);
            put<T, D>(c, "tau", exported.tau.view(), to_tau);
        });
    destroy(factorization);
    return status;
}

quoin_status quoin_from_lapack(quoin_context* ctx, const quoin_matrix* V_R, const quoin_matrix* tau,
                               quoin_factorization** factorization) {
    return guarded([&] {
        given("factorization", factorization) = nullptr;
        with_type(ctx, given("V_R", V_R).type, [&]<class T, class D>(Context<D>& c, T) {
            const auto copied = [&](const char* name, const quoin_matrix* matrix) {
                const InputView<T, D> from = view<T, D>(name, matrix);
                Matrix<T, D> to(c, from.rows, from.cols);
                load<T, D>(c, from, to.view());
                return to;
            };
            *factorization =
                new quoin_factorization{{ctx->device, from_lapack<T, D>(c, {copied("V_R", V_R), copied("tau", tau)})}};
        });
    });
}

quoin_status quoin_solve(quoin_context* ctx, const quoin_factorization* factorization, const quoin_matrix* B,
                         const quoin_options* options, const quoin_matrix* X, void* residual_norms,
                         quoin_solution* solution) {
    return with_object(ctx, "factorization", factorization, [&]<class T, class D>(Context<D>& c, const QR<T, D>& f) {
        Matrix<T, D> memory;
        const MatrixView<const T, D> columns = by_columns(c, view<T, D>("B", B), memory);
        const InputView<T, D> to = view<T, D>("X", X);
        put_solution<T, D>(c, least_squares<T, D>(c, f, columns, solver_options(options)), to, residual_norms,
                           solution);
    });
}

// ---- one call -------------------------------------------------------------------------------------------------------

quoin_status quoin_qr(quoin_context* ctx, const quoin_matrix* A, const quoin_options* options, const quoin_matrix* Q,
                      const quoin_matrix* R) {
    return with_type_of(ctx, "A", A, [&]<class T, class D>(Context<D>& c, T) {
        Output<T, D> to_q(c, Q ? view<T, D>("Q", Q) : InputView<T, D>()), to_r(c, view<T, D>("R", R));
        qr<T, D>(c, view<T, D>("A", A), to_q.view(), to_r.view(), factor_options(options));
        to_q.deliver(c);
        to_r.deliver(c);
    });
}

quoin_status quoin_least_squares(quoin_context* ctx, const quoin_matrix* A, const quoin_matrix* B,
                                 const quoin_options* options, const quoin_matrix* X, void* residual_norms,
                                 quoin_solution* solution) {
    return with_type_of(ctx, "A", A, [&]<class T, class D>(Context<D>& c, T) {
        Matrix<T, D> memory;
        const MatrixView<const T, D> columns = by_columns(c, view<T, D>("B", B), memory);
        const InputView<T, D> to = view<T, D>("X", X);
        const auto found =
            least_squares<T, D>(c, view<T, D>("A", A), columns, solver_options(options), factor_options(options));
        put_solution<T, D>(c, found, to, residual_norms, solution);
    });
}

quoin_status quoin_regression(quoin_context* ctx, const quoin_matrix* A, const quoin_matrix* B, std::int32_t intercept,
                              double ridge, const double* weights, quoin_fit* fit) {
    return with_type_of(ctx, "A", A, [&]<class T, class D>(Context<D>& c, T) {
        require_size("fit", given("fit", fit).size, sizeof(quoin_fit));
        Matrix<T, D> memory;
        const InputView<T, D> input = view<T, D>("A", A);
        const MatrixView<const T, D> columns = by_columns(c, view<T, D>("B", B), memory);
        RegressionOptions options{.intercept = intercept != 0, .ridge = ridge};
        if (weights) options.weights = {weights, static_cast<std::size_t>(input.rows)};
        const Regression found = regression<T, D>(c, input, columns, options);
        quoin_fit to{};
        std::memcpy(&to, fit, fit->size);
        to.observations = found.observations;
        to.rank = found.rank;
        to.degrees_of_freedom = found.degrees_of_freedom;
        to.condition = found.condition;
        for (const auto& [from, array] : {std::pair(&found.coefficients, to.coefficients),
                                          {&found.standard_errors, to.standard_errors},
                                          {&found.t_values, to.t_values},
                                          {&found.p_values, to.p_values},
                                          {&found.error_bounds, to.error_bounds}})
            if (array) std::copy_n(from->data(), from->rows() * from->cols(), array);
        put_numbers(found.residual_norms, to.residual_norms);
        put_numbers(found.residual_standard_errors, to.residual_standard_errors);
        put_numbers(found.r_squared, to.r_squared);
        put_numbers(found.adjusted_r_squared, to.adjusted_r_squared);
        put_numbers(found.f_values, to.f_values);
        put_numbers(found.f_p_values, to.f_p_values);
        answer("fit", to, fit);
    });
}

quoin_status quoin_svd(quoin_context* ctx, const quoin_matrix* A, const quoin_options* options, void* s,
                       const quoin_matrix* U, const quoin_matrix* Vt, std::int64_t* k) {
    return with_type_of(ctx, "A", A, [&]<class T, class D>(Context<D>& c, T) {
        if (!U != !Vt) throw InvalidArgument("U and Vt must both be given or both be null");
        const InputView<T, D> input = view<T, D>("A", A);
        if (input.rows > 0 && input.cols > 0) given("s", static_cast<T*>(s));
        const SVD<T, D> found = svd<T, D>(c, input, U != nullptr, factor_options(options));
        const Index count = static_cast<Index>(found.s.size());
        if (U) {
            const auto first = [&](const char* name, const quoin_matrix* M, Index quoin_matrix::*size) {
                quoin_matrix part = *M;
                if (part.*size > count) part.*size = count;
                return view<T, D>(name, &part);
            };
            view<T, D>("U", U);
            view<T, D>("Vt", Vt);
            put<T, D>(c, "U", found.U.view(), first("U", U, &quoin_matrix::cols));
            put<T, D>(c, "Vt", found.Vt.view(), first("Vt", Vt, &quoin_matrix::rows));
        }
        put_numbers(found.s, s);
        if (k) *k = count;
    });
}

// ---- batches --------------------------------------------------------------------------------------------------------

quoin_status quoin_qr_batch(quoin_context* ctx, std::int64_t count, const quoin_matrix* A, const quoin_options* options,
                            const quoin_matrix* Q, const quoin_matrix* R) {
    return with_type_of(ctx, "A", A, [&]<class T, class D>(Context<D>& c, T) {
        qr<T, D>(c, batch<T, D>("A", A, count), Q ? batch<T, D>("Q", Q, count, true) : BatchView<T, D>(),
                 batch<T, D>("R", R, count, true), factor_options(options));
    });
}

quoin_status quoin_least_squares_batch(quoin_context* ctx, std::int64_t count, const quoin_matrix* A,
                                       const quoin_matrix* B, const quoin_options* options, const quoin_matrix* X) {
    return with_type_of(ctx, "A", A, [&]<class T, class D>(Context<D>& c, T) {
        const BatchView<T, D> to = batch<T, D>("X", X, count, true);
        auto found = least_squares<T, D>(c, batch<T, D>("A", A, count), batch<T, D>("B", B, count),
                                         solver_options(options), factor_options(options));
        const Index p = B->cols;
        const Matrix<T, D> all = std::move(found.X).take();  // [X_0 X_1 …]
        quoin_matrix one = *X;
        if (X->cols == p && X->order == QUOIN_COLUMN_MAJOR && X->stride == X->ld * p) {
            one.cols *= count;
            return put<T, D>(c, "X", all.view(), view<T, D>("X", &one));
        }
        for (Index b = 0; b < count; ++b) {
            one.data = to.data(b);
            put<T, D>(c, "X", all.view().col_block({b * p, (b + 1) * p}), view<T, D>("X", &one));
        }
    });
}

// ---- streams of rows ------------------------------------------------------------------------------------------------

quoin_status quoin_stream_create(quoin_context* ctx, std::int32_t type, std::int64_t cols,
                                 std::int64_t right_hand_sides, quoin_stream** stream) {
    return guarded([&] {
        given("stream", stream) = nullptr;
        with_type(ctx, type, [&]<class T, class D>(Context<D>& c, T) {
            *stream = new quoin_stream{{ctx->device, StreamingR<T, D>(c, cols, right_hand_sides)}};
        });
    });
}
void quoin_stream_destroy(quoin_stream* stream) { destroy(stream); }

quoin_status quoin_stream_append(quoin_context* ctx, quoin_stream* stream, const quoin_matrix* A,
                                 const quoin_matrix* B) {
    return with_object(ctx, "stream", stream, [&]<class T, class D>(Context<D>& c, StreamingR<T, D>& rows) {
        rows.append(c, view<T, D>("A", A), B ? view<T, D>("B", B) : InputView<T, D>());
    });
}

quoin_status quoin_stream_r(quoin_context* ctx, const quoin_stream* stream, const quoin_matrix* R) {
    return with_object(ctx, "stream", stream, [&]<class T, class D>(Context<D>& c, const StreamingR<T, D>& rows) {
        put<T, D>(c, "R", rows.r(c).view(), view<T, D>("R", R));
    });
}

quoin_status quoin_stream_solve(quoin_context* ctx, const quoin_stream* stream, const quoin_options* options,
                                const quoin_matrix* X, void* residual_norms, quoin_solution* solution) {
    return with_object(ctx, "stream", stream, [&]<class T, class D>(Context<D>& c, const StreamingR<T, D>& rows) {
        const InputView<T, D> to = view<T, D>("X", X);
        put_solution<T, D>(c, rows.solve(c, solver_options(options)), to, residual_norms, solution);
    });
}

// ---- plans ----------------------------------------------------------------------------------------------------------

quoin_status quoin_plan_create(quoin_context* ctx, std::int32_t type, std::int64_t m, std::int64_t n,
                               const quoin_options* options, quoin_plan** plan) {
    return guarded([&] {
        given("plan", plan) = nullptr;
        with_type(ctx, type, [&]<class T, class D>(Context<D>& c, T) {
            const Plan made = plan_qr<T>(c, m, n, factor_options(options));
            std::vector<std::pair<std::string, std::string>> members;
            for (const PlanField& field : plan_fields(made)) members.emplace_back(field.name, io::json_value(field));
            *plan = new quoin_plan{to_string(made), io::json_object(members)};
        });
    });
}
void quoin_plan_destroy(quoin_plan* plan) { delete plan; }
const char* quoin_plan_text(const quoin_plan* plan) { return plan->text.c_str(); }
const char* quoin_plan_json(const quoin_plan* plan) { return plan->json.c_str(); }
