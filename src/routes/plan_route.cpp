// How a matrix passes through memory: its routes and the memory that each takes.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "algorithms/one_matrix/panel_layout.hpp"
#include "algorithms/one_matrix/plan.hpp"
#include "devices.hpp"
#include "quoin/plan_fields.hpp"

namespace quoin {

namespace {

/// Memory of a stream of an m×n matrix with b rows a block: fixed + a_row·b + a_block·m/b, in bytes.
struct StreamMemory {
    double fixed = 0;
    double a_row = 0;
    double a_block = 0;  ///< node of the tree that every block has, if Q is wanted

    double bytes(Index m, Index block_rows) const {
        return fixed + a_row * number(block_rows) + a_block * std::ceil(number(m) / number(block_rows));
    }
    /// Returns the rows of the blocks, at least max(n, 64), that need the least memory.
    Index cheapest_rows(Index m, Index n) const {
        // f(b) = a_row b + a_block m/b is least at b² = a_block m / a_row, and only grows from there on
        const Index lowest = std::min(m, std::max<Index>(n, 64));
        return std::clamp(static_cast<Index>(std::sqrt(a_block * number(m) / a_row)), lowest, m);
    }
};

/// Plans the routes of one matrix on one device.
template <class T, class D>
class Router {
public:
    Router(Index m, Index n, const RouteOptions& given)
        : m_(m), n_(n), given_(given), reader_(on_host ? given.reader_bytes : 0), available_(given.memory - reader_) {
        if (const auto memory = stream_memory()) {
            stream_ = memory;
            min_bytes_ = memory->bytes(m_, memory->cheapest_rows(m_, n_));
        }
    }

    RoutePlan route(const Context<D>& ctx) {
        const Plan plan = given_.work == Work::Factor
                              ? plan_qr<T>(ctx, m_, n_, given_.options)
                              : plan_qr<T>(ctx, std::max(m_, n_), std::min(m_, n_), given_.options);
        const double bytes = bytes_in_memory(plan);
        min_bytes_ = std::min(min_bytes_, bytes);
        const RoutePlan in_memory = on_device(plan, bytes);
        if (in_memory.fits() || given_.options.pivoting) return in_memory;
        if (const auto stream = in_blocks()) return *stream;
        if (given_.work != Work::Factor) return in_memory;
        if constexpr (!on_host) {
            const auto options = beside();
            return options ? beyond_gpu(*options) : in_memory;
        } else {
            const Method method = given_.options.method;
            const bool by_reflectors =
                method == Method::Auto || method == Method::TSQR || method == Method::BlockedHouseholder;
            if (!given_.files || !by_reflectors || given_.options.q.full_t || m_ == 0 || n_ == 0) return in_memory;
            return from_file_to_file(*given_.files, given_.memory, bytes,
                                     [&](const FileOptions& o) { return plan_file_qr<T>(ctx, m_, n_, o); });
        }
    }

    /// Returns the largest blocks of at least max(n, 64) rows that fit. They have at most `enough_rows`, unless longer
    /// blocks need less memory. Returns nothing if no blocks fit.
    std::optional<RoutePlan> in_blocks() const {
        if (!stream_) return {};
        const Index cheapest = stream_->cheapest_rows(m_, n_);
        if (stream_->bytes(m_, cheapest) > available_) return {};
        Index fits = cheapest, too_many = std::max(cheapest, std::min(m_, enough_rows())) + 1;
        while (too_many - fits > 1) {
            const Index b = fits + (too_many - fits) / 2;
            (stream_->bytes(m_, b) <= available_ ? fits : too_many) = b;
        }
        const double m = number(m_), cols = number(n_ + given_.right_hand_sides), A = sizeof(T) * m * cols;
        StreamPlan plan;
        plan.cols = n_;
        plan.right_hand_sides = given_.right_hand_sides;
        plan.scalar = scalar_kind<T>;
        plan.with_q = with_q();
        plan.blocks = {m_, fits};
        plan.memory_bytes = given_.memory;
        plan.bytes_in = plan.with_q ? 2 * A : A;
        plan.bytes_out = (plan.with_q ? A : 0) + sizeof(T) * cols * cols;
        plan.flops = (plan.with_q ? 8 : 2) * m * cols * cols;
        plan.seconds = plan.bytes_in / OutOfCoreRates().link;
        return on_device(plan, stream_->bytes(m_, fits));
    }

private:
    static constexpr bool on_host = std::is_same_v<D, Host>;

    bool with_q() const { return given_.work == Work::Factor && given_.options.q != QForm::None; }

    double bytes_in_memory(const Plan& plan) const {
        const double m = number(m_), n = number(n_), k = std::min(m, n), p = number(given_.right_hand_sides);
        double numbers = 0;
        switch (given_.work) {
            case Work::Factor: {
                // A, which Q replaces, and beside Q, R on its way to the file; to verify, A once more, and again in the
                // order of the pivots; V, T and S on their way
                const double R = plan.q == QForm::None ? 0 : k * n, full_t = plan.q.full_t ? 2 * m * k : 0;
                numbers = (!given_.verify ? 1 : plan.pivoting ? 3 : 2) * m * n + R + full_t;
                break;
            }
            case Work::LeastSquares:  // A, the copy that is factored, b and Qᵀb, R twice
                numbers = 2 * m * n + 2 * std::max(m, n) * p + 2 * k * k;
                break;
            case Work::SVD:  // A, the copy that is factored, U; of R: R, its singular vectors, and LAPACK's workspace
                numbers = 3 * m * n + 7 * k * k;
                break;
            case Work::SingularValues: numbers = 2 * m * n + 2 * k * k;
        }
        return sizeof(T) * numbers + plan.workspace_bytes + Tuning<D>::library_bytes;
    }

    /// Returns nothing if the matrix cannot be streamed.
    std::optional<StreamMemory> stream_memory() const {
        const Method method = given_.options.method;
        const bool streams =
            given_.work == Work::LeastSquares || given_.work == (on_host ? Work::SingularValues : Work::Factor);
        if (!streams || given_.options.pivoting || m_ <= n_ || n_ == 0 ||
            (method != Method::Auto && method != Method::TSQR))
            return {};
        const double cols = number(n_ + given_.right_hand_sides), width = sizeof(T) * cols;
        // the rows read, and those that are factored with the triangles above them
        if constexpr (on_host) return StreamMemory{8 * width * cols, 3 * width, 0};
        if (given_.options.q.full_t) return {};
        // two blocks, the copy of one that is factored, and its T, a quarter of that; with Q its rows too, and for
        // every block an R and its part of the stack of them
        return with_q() ? StreamMemory{8 * width * cols, 4.5 * width, 3.5 * width * cols}
                        : StreamMemory{8 * width * cols, 3.5 * width, 0};
    }

    /// Returns the rows of a block beyond which longer blocks gain nothing. On a GPU: 256 MiB, which travel in some 5
    /// ms, and at least 8n rows, so that the triangle above them takes at most an eighth of the flops.
    Index enough_rows() const {
        if constexpr (on_host) return std::numeric_limits<Index>::max();
        const Index cols = n_ + given_.right_hand_sides;
        return std::max(8 * cols, (Index{256} << 20) / (cols * Index{sizeof(T)}));
    }

    RoutePlan on_device(std::variant<Plan, StreamPlan, OutOfCoreRoute, FilesRoute> by, double bytes) const {
        return {std::move(by), bytes + reader_, given_.memory, min_bytes_ + reader_};
    }

    /// Returns the options for a matrix in the host's memory, or nothing if the method needs all of it on the GPU.
    std::optional<OutOfCoreOptions> beside() const {
        const Options& o = given_.options;
        const bool by_householder = o.method == Method::Auto || o.method == Method::BlockedHouseholder;
        if (o.q.full_t || (!by_householder && o.method != Method::ClassicalGramSchmidt)) return {};
        OutOfCoreOptions options;
        options.method = by_householder ? OutOfCoreMethod::Householder : OutOfCoreMethod::Recursive;
        options.arithmetic = o.arithmetic;
        options.reorthogonalize = o.method.reorthogonalization() != Reorthogonalization::Off;
        options.check_finite = o.check_finite;
        options.memory_bytes = given_.block_memory > 0 ? given_.block_memory : given_.memory;
        return options;
    }

    RoutePlan beyond_gpu(const OutOfCoreOptions& options) const {
        const double bytes = bytes_beside_gpu(m_, n_, sizeof(T), given_.verify);
        if (bytes > given_.host_memory && given_.files && options.method == OutOfCoreMethod::Householder) {
            FileOptions files = *given_.files;
            files.device_memory = options.memory_bytes;
            files.arithmetic = options.arithmetic;
            return from_file_to_file(files, given_.host_memory, std::numeric_limits<double>::infinity(),
                                     [&](const FileOptions& o) { return plan_file_qr<T, D>(m_, n_, o); });
        }
        return {OutOfCoreRoute{options, plan_out_of_core<T, D>(m_, n_, options)}, bytes, given_.host_memory, bytes};
    }

    /// `in_memory`: the bytes of another route.
    template <class Planned>
    static RoutePlan from_file_to_file(FileOptions options, double memory, double in_memory, Planned planned) {
        options.memory = 0;
        const double least = std::min(planned(options).memory_bytes, in_memory);
        options.memory = memory;
        const FilePlan plan = planned(options);
        return {FilesRoute{options, plan}, plan.memory_bytes, memory, least};
    }

    Index m_, n_;
    const RouteOptions& given_;
    double reader_, available_;  // bytes of the device's memory
    std::optional<StreamMemory> stream_;
    double min_bytes_ = std::numeric_limits<double>::infinity();
};

}  // namespace

const char* RoutePlan::name() const {
    static constexpr const char* names[] = {"memory", "row-blocks", "out-of-core", "files"};
    return names[by.index()];
}

const char* to_string(Work work) {
    static constexpr const char* names[] = {"factor", "least-squares", "svd", "singular-values"};
    return names[static_cast<int>(work)];
}

double bytes_beside_gpu(Index m, Index n, int element_bytes, bool verify) {
    const double rows = number(m), cols = number(n);
    return element_bytes * (rows * cols * (verify ? 2 : 1) + std::min(rows, cols) * cols);
}

template <class T, class D>
RoutePlan plan_route(const Context<D>& ctx, Index m, Index n, const RouteOptions& options) {
    if (options.right_hand_sides < 0) {
        throw InvalidArgument(
            fmt::format("right_hand_sides must not be negative, and are {}", options.right_hand_sides));
    }
    return Router<T, D>(m, n, options).route(ctx);
}

template <class T, class D>
std::optional<RoutePlan> plan_stream(Index m, Index n, const RouteOptions& options) {
    return Router<T, D>(m, n, options).in_blocks();
}

std::string to_string(const StreamPlan& plan) {
    return fmt::format("{}, streaming-tsqr, {} blocks of {} rows",
                       plan.with_q ? "R in one pass over A, Q in a second one" : "R in one pass over A",
                       plan.blocks.count(), plan.blocks.block_rows);
}

namespace {

const Plan& plan_in(const Plan& plan) { return plan; }
const StreamPlan& plan_in(const StreamPlan& plan) { return plan; }
const OutOfCorePlan& plan_in(const OutOfCoreRoute& route) { return route.plan; }
const FilePlan& plan_in(const FilesRoute& route) { return route.plan; }

}  // namespace

std::string to_string(const RoutePlan& route) {
    return std::visit([](const auto& by) { return to_string(plan_in(by)); }, route.by);
}

std::vector<PlanField> plan_fields(const RoutePlan& route) {
    return std::visit([](const auto& by) { return plan_fields(plan_in(by)); }, route.by);
}

#define QUOIN_INSTANTIATE(T, D)                                                                \
    template RoutePlan plan_route<T, D>(const Context<D>&, Index, Index, const RouteOptions&); \
    template std::optional<RoutePlan> plan_stream<T, D>(Index, Index, const RouteOptions&);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
