// QR of rows spread over ranks: TSQR whose top levels are the ranks, and CholeskyQR2 whose Gram matrices are summed
// over them.

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <optional>

#include "algorithms/one_matrix/cholesky_qr.hpp"
#include "algorithms/ranks/distributed.hpp"
#include "algorithms/shared/matrix_checks.hpp"
#include "algorithms/shared/wall_seconds.hpp"

namespace quoin {

void require_offered(const Options& o) {
    const bool tree = o.method == Method::Auto || o.method == Method::TSQR;
    if (!tree && !is_cholesky(o.method)) {
        throw InvalidArgument(
            fmt::format("method {} is not available over ranks: use auto, tsqr, cholesky-qr2 or randomized-cholesky-qr",
                        to_string(o.method)));
    }
    if (o.q == QForm::Reflectors)
        throw InvalidArgument("LAPACK's format of Q is not available over ranks: q is any, none or explicit");
    if (o.pivoting) throw InvalidArgument("pivoting is not available over ranks");
    if (o.positive_diagonal) throw InvalidArgument("positive_diagonal is not available over ranks");
    if (o.verify) throw InvalidArgument("verify is not available over ranks: form Q and measure it");
}

namespace {

template <class T, class D>
class RankFactorizer {
public:
    RankFactorizer(Context<D>& ctx, Communicator& comm, MatrixView<const T, D> A, const Options& options)
        : ctx_(ctx), call_(host_context(ctx), comm, RankOperation::Qr), A_(A), n_(A.cols), options_(options) {
        f_.comm = &comm;
    }

    DistributedFactorization<T, D> factor() {
        const auto start = std::chrono::steady_clock::now();
        begin();
        const bool by_gram = is_cholesky(f_.plan.method);
        if (!by_gram || is_sketched() || !by_cholesky(false)) {
            scale();
            if (by_gram) {
                by_cholesky(true);
            } else {
                by_tree();
            }
            if (exponents_.rows() > 0 && f_.R.rows() > 0) {
                scale_columns<T>(ctx_, exponents_.view(), 1, Part::Upper, f_.R.view());
            }
        }
        f_.report.seconds = wall_seconds<D>(start);
        return std::move(f_);
    }

private:
    using Passes = CholeskyPasses<T, D>;
    using S = Sum<T, D>;
    int rank() const { return f_.comm->rank(); }
    bool wants_q() const { return options_.q != QForm::None; }
    /// `overwrites`: whether X is overwritten. Otherwise A may only be read.
    bool is_sketched() const { return options_.method == Method::RandomizedCholeskyQR; }
    bool overwrites() const { return wants_q() || is_sketched(); }
    MatrixView<const T, D> rows() const { return copied_ ? std::as_const(X_).view() : A_; }
    void copy_rows() {
        if (std::exchange(copied_, true)) return;
        if (X_.rows() != A_.rows || X_.cols() != A_.cols) X_ = Matrix<T, D>(ctx_, A_.rows, A_.cols);
        copy<T>(ctx_, A_, X_.view());
    }

    /// Makes the checks and the plan.
    void begin() {
        call_.attempt([&] {
            check_matrix(A_);
            require_offered(options_);
            packed_ = Matrix<T, D>(ctx_, packed_size(n_, n_), 1);
            sum_ = Matrix<S, D>(ctx_, packed_size(n_, n_) + certificate_size, 1);
            part_ = Matrix<S, D>(ctx_, packed_size(n_, n_), 1);
            certificate_ = Matrix<Certificate, D>(ctx_, 1, 1);
            if (overwrites()) X_ = Matrix<T, D>(ctx_, A_.rows, n_);
            if (is_sketched()) sketches_ = Matrix<S, D>(ctx_, sketch_rows(n_), 2 * n_);
        });
        const auto& o = options_;
        const auto heights = call_.agree({{"the number of columns", n_},
                                          {"the size of an element", sizeof(T)},
                                          {"Options::method", static_cast<Index>(o.method.index())},
                                          {"Options::q", static_cast<Index>(o.q.form)},
                                          {"Auto::panel_width", o.method.panel_width()},
                                          {"TreeOptions::leaf_rows", o.method.tree().leaf_rows},
                                          {"TreeOptions::fan_in", o.method.tree().fan_in},
                                          {"Options::arithmetic", static_cast<Index>(o.arithmetic)},
                                          {"Options::check_finite", o.check_finite}},
                                         A_.rows);
        // from here to the next message all ranks compute equal values
        f_.layout = RowGroups(heights, n_);
        f_.plan = plan_over_ranks<T>(ctx_, f_.layout.total, n_, options_);
        f_.report.method = is_cholesky(f_.plan.method) ? f_.plan.method : Method::TSQR;
        f_.report.flops = f_.plan.flops;
        f_.holds_q = wants_q();
    }

    /// Multiplies columns by powers of two, equal on all ranks, if one is out of range.
    void scale() {
        bool scaled = false;
        call_.attempt([&] {
            if (!is_cholesky(f_.plan.method)) lay_out_tree();
            exponents_ = Matrix<int, D>(ctx_, n_, 1);
            scaled = look(Scalar<T>::safe_exponent).scaled;
        });
        const auto found = call_.agree({}, scaled);
        if (std::none_of(found.begin(), found.end(), [](Index flag) { return flag != 0; })) {
            exponents_ = {};
            return;
        }
        call_.attempt([&] { copy_rows(); });
        choose_exponents<T, D>(ctx_, call_, *f_.comm, rows(), exponents_.view());
        scale_columns<T>(ctx_, exponents_.view(), -1, Part::All, X_.view());
    }

    /// Scans this rank's rows.
    Scan look(int safe) {
        Matrix<Scan, D> found(ctx_, 1, 1);
        scan<T>(ctx_, rows(), safe, exponents_.view(), found.view());
        const Scan seen = read_scan(ctx_, found.view());
        if (options_.check_finite && seen.bad_row >= 0) throw NonFiniteEntry(seen.bad_row, seen.bad_col);
        return seen;
    }

    // ---- Gram passes ------------------------------------------------------------------------------------------------

    /// Returns false, with A unchanged, if A's entries are not finite or out of range and were not `checked`.
    bool by_cholesky(bool checked) {
        using State = typename Passes::State;
        Passes passes;
        next_sum_ = n_ == 0 ? NextSum::None : is_sketched() ? NextSum::Sketch : NextSum::Gram;
        const GramOverRanks<T, D> over_ranks{
            [&](MatrixView<S, D> G, GramDemands demands, CertificateView<D> certificate, NextSum next) {
                factor_sum(G, demands, certificate);
                next_sum_ = next;
            },
            [&](MatrixView<S, D> B, SketchDemands demands, MatrixView<S, D> R0, CertificateView<D> certificate) {
                sum_sketches(B, demands, R0, certificate);
                next_sum_ = NextSum::GramUnlessRefused;
            },
            rank(), f_.plan.rows, rank_levels(f_.comm->size())};
        call_.attempt([&] {
            f_.R = Matrix<T, D>(ctx_, n_, n_);
            const auto Q1 = overwrites() ? X_.view() : MatrixView<T, D>();
            const auto chain = is_sketched() ? CholeskyChain::Sketched : CholeskyChain::OfA;
            passes = cholesky_passes<T, D>(ctx_, chain, wants_q(), rows(), Q1, f_.R.view(), {}, over_ranks);
        });
        // the other ranks wait for this rank's part of a sum, or for its message that it has finished
        if (call_.failed()) join_next_sum();
        call_.agree();
        f_.report.gram_departure = passes.gram_departure;
        f_.report.perturbed_condition = passes.perturbed_condition;
        if (passes.state == State::Certified) {
            f_.is_explicit = wants_q();
            if (wants_q()) f_.Q = std::move(X_);
            return true;
        }
        if (passes.state == State::Unusable && !checked) return false;
        if (f_.plan.fallback() == Method::Auto) report_breakdown(f_.plan.method, passes.column);
        f_.report.method = Method::TSQR;
        f_.report.fell_back = true;
        if (passes.state == State::Improved && overwrites()) {
            R1_ = std::move(f_.R);
            copied_ = true;  // Q₁ is factored now
        }
        by_tree();
        return true;
    }

    /// Takes part in the next sum of the passes, if there is one, without data of its own.
    void join_next_sum() {
        switch (next_sum_) {
            case NextSum::Sketch: return sum_sketches({}, {}, {}, {});
            case NextSum::Gram: return factor_sum({}, {}, {});
            case NextSum::GramIfRefused:
                if (shared_certificate().refused()) factor_sum({}, {}, {});
                return;
            case NextSum::GramUnlessRefused:
                if (!shared_certificate().refused()) factor_sum({}, {}, {});
                return;
            case NextSum::None: return;
        }
    }

    /// G := the Cholesky factor of the sum of G over the ranks. The sum goes up the tree of ranks; the factor and the
    /// certificate go down.
    void factor_sum(MatrixView<S, D> G, GramDemands demands, CertificateView<D> certificate) {
        const auto triangle = summed_triangle();
        call_.attempt([&] { pack_triangle<S>(ctx_, G, triangle); });
        reduce_sum<S, D>(*f_.comm, ctx_, triangle, part_.view(), 0, call_.note());
        if (rank() == 0) {
            call_.attempt(
                [&] {
                    unpack_triangle<S>(ctx_, triangle, G);
                    factor_gram<T>(ctx_, G, demands, G, certificate);
                    pack_triangle<S>(ctx_, G, triangle);
                    pack_certificate<S>(ctx_, certificate, numbers());
                },
                JointCall::Of::All);
        }
        share_factor(G, certificate);
    }

    /// Runs `factor_sketch` on the sum of B over the ranks.
    void sum_sketches(MatrixView<S, D> B, SketchDemands demands, MatrixView<S, D> R0, CertificateView<D> certificate) {
        const auto sum = sketches_.view().col_block({0, n_}), part = sketches_.view().col_block({n_, 2 * n_});
        call_.attempt([&] {
            copy<S>(ctx_, B, sum);
            set_zero(ctx_, R0);  // below its diagonal
        });
        reduce_sum<S, D>(*f_.comm, ctx_, sum, part, 0, call_.note());
        if (rank() == 0) {
            call_.attempt(
                [&] {
                    factor_sketch<T, D>(ctx_, copy_of<S, D>(ctx_, sum), demands, R0, certificate);
                    pack_triangle<S>(ctx_, R0, summed_triangle());
                    pack_certificate<S>(ctx_, certificate, numbers());
                },
                JointCall::Of::All);
        }
        share_factor(R0, certificate);
    }

    /// Sends R and the certificate of rank 0 to all ranks.
    void share_factor(MatrixView<S, D> R, CertificateView<D> certificate) {
        call_.share<S>(ctx_, sum_.view());
        unpack_triangle<S>(ctx_, summed_triangle(), R);
        unpack_certificate<S>(ctx_, numbers(), certificate);
    }
    /// Returns the certificate of the last message.
    Certificate shared_certificate() {
        unpack_certificate<S>(ctx_, numbers(), certificate_.view());
        return read_certificate(ctx_, certificate_.view());
    }

    MatrixView<S, D> summed_triangle() { return sum_.view().row_block({0, part_.rows()}); }
    MatrixView<S, D> numbers() { return sum_.view().row_block({part_.rows(), sum_.rows()}); }

    // ---- the tree ---------------------------------------------------------------------------------------------------

    /// Allocates all memory whose size does not depend on the entries of A.
    void lay_out_tree() {
        lent_ = LentRows<T, D>(ctx_, f_.layout, rank(), n_);
        if (lent_.is_shared()) copy_rows();
        if (!f_.leads()) return;
        const auto& groups = f_.layout.groups;
        const RankTree tree(f_.layout.index_of(rank()), static_cast<int>(groups.size()));
        for (const int member : tree.members) f_.nodes.emplace_back(ctx_, groups[member].leader, n_);
        if (tree.head >= 0) f_.head = groups[tree.head].leader;
        f_.R = Matrix<T, D>(ctx_, f_.k(), n_);
    }

    void by_tree() {
        if (is_cholesky(f_.plan.method)) {
            call_.attempt([&] { lay_out_tree(); });
            call_.agree();
        }
        factor_leaf();
        if (f_.leads()) {
            for (auto& node : f_.nodes) absorb(node);
            if (f_.head >= 0) {
                call_.attempt([&] { pack_triangle<T>(ctx_, f_.R.view(), triangle()); });
                f_.comm->template send<T>(ctx_, triangle(), f_.head, call_.note());
            }
        }
        call_.attempt([&] {
            // A = Q₁R₁ and Q₁ = QR, so R := R R₁
            if (f_.is_root() && R1_.rows() > 0) {
                multiply_upper<T>(ctx_, f_.R.view(), R1_.view(), R1_.view());
                f_.R = std::move(R1_);
            }
            if (!f_.is_root()) f_.R = {};
            if (!wants_q()) f_.nodes.clear();
        });
        call_.share<T>(ctx_, MatrixView<T, D>(), f_.layout.root());
        if (options_.q == QForm::Explicit) form_and_hold_q();
    }

    MatrixView<T, D> triangle() { return packed_.view().row_block({0, packed_size(f_.k(), n_)}); }

    /// Factors A_i = Q_i R_i, the leader's rows.
    void factor_leaf() {
        call_.attempt([&] {
            if (overwrites()) copy_rows();
        });
        Matrix<T, D> group = lent_.gather(ctx_, call_, std::move(X_));
        if (!f_.leads()) return;
        call_.attempt([&] {
            throw_if_stopped(ctx_);
            const bool is_copy = copied_;
            const Index h = f_.group().rows;
            const Plan plan = plan_reflectors<T>(ctx_, h, n_, options_.method.tree());
            if (!wants_q() && h >= n_ && plan.method == Method::TSQR) {
                const auto A = is_copy ? std::as_const(group).view() : A_;
                return static_cast<void>(tsqr_r_only<T, D>(ctx_, plan, A, true, f_.R.view()));
            }
            f_.leaf = LeafQ<T, D>(ctx_, plan, is_copy ? std::move(group) : copy_of<T, D>(ctx_, A_), f_.R.view());
            if (!wants_q()) f_.leaf = {};
        });
    }

    /// Factors [R; R_member] = H [R; 0].
    void absorb(RankNode<T, D>& node) {
        call_.hear(f_.comm->template receive<T>(ctx_, triangle(), node.member));
        call_.attempt([&] {
            throw_if_stopped(ctx_);
            const Span span(ctx_, "merge");
            copy<T>(ctx_, f_.R.view(), node.upper());
            set_zero(ctx_, node.lower());
            unpack_triangle<T>(ctx_, triangle(), node.lower());
            node.factor(ctx_);
            copy_triangle<T>(ctx_, node.upper(), f_.R.view());
        });
    }

    void form_and_hold_q();

    Context<D>& ctx_;
    JointCall call_;
    MatrixView<const T, D> A_;
    const Index n_;
    const Options options_;
    DistributedFactorization<T, D> f_;
    bool copied_ = false;       // X has A's rows, or the rows of a Q₁ in their place
    Matrix<T, D> X_;            // this rank's rows, until they are sent to a leader or held
    Matrix<T, D> R1_;           // R₁ of Gram passes whose Q₁ is factored once more
    Matrix<int, D> exponents_;  // of the scaling, if any
    Matrix<T, D> packed_;       // a triangle of the tree, as a message
    Matrix<S, D> sum_, part_;   // of Gram passes: a triangle and a certificate, and a triangle
    Matrix<Certificate, D> certificate_;
    Matrix<S, D> sketches_;  // a sketch, and one on its way
    NextSum next_sum_ = NextSum::None;
    LentRows<T, D> lent_;
};

/// Forms the thin Q from the root of the tree down: E = I there, and [E; E_member] := H [E; 0] in every node.
template <class T, class D>
class QFormer {
public:
    /// Allocates.
    QFormer(Context<D>& ctx, const DistributedFactorization<T, D>& f)
        : f_(f), lent_(ctx, f.layout, f.comm->rank(), f.k()), packed_(ctx, packed_size(f.plan.cols, f.plan.cols), 1) {
        if (f.layout.groups.size() > 1 && f.leads()) E_ = Matrix<T, D>(ctx, f.plan.cols, f.plan.cols);
        if (lent_.is_shared()) Q_ = Matrix<T, D>(ctx, f.own_rows(), f.k());
    }

    /// Returns this rank's rows of Q. `nodes` and `leaf`: f's own, or copies of them; both are lost.
    Matrix<T, D> form(Context<D>& ctx, JointCall& call, LeafQ<T, D>& leaf, std::vector<RankNode<T, D>>& nodes) {
        Matrix<T, D> C;
        if (f_.leads()) {
            if (f_.head >= 0) call.hear(f_.comm->template receive<T>(ctx, packed_.view(), f_.head));
            call.attempt([&] {
                set_identity<T>(ctx, 0, E_.view());
                if (f_.head >= 0) unpack_triangle<T>(ctx, packed_.view(), E_.view());
            });
            for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
                call.attempt([&] {
                    node->form(ctx, E_.view());
                    copy_triangle<T>(ctx, node->upper(), E_.view());
                    pack_triangle<T>(ctx, node->lower(), packed_.view());
                });
                f_.comm->template send<T>(ctx, packed_.view(), node->member, call.note());
            }
            call.attempt([&] {
                throw_if_stopped(ctx);
                C = std::move(leaf).form(ctx, E_.view());
            });
        }
        lent_.scatter(ctx, call, std::move(C), Q_);
        call.agree();
        return std::move(Q_);
    }

private:
    const DistributedFactorization<T, D>& f_;
    LentRows<T, D> lent_;
    Matrix<T, D> packed_, E_, Q_;
};

template <class T, class D>
void RankFactorizer<T, D>::form_and_hold_q() {
    std::optional<QFormer<T, D>> former;
    call_.attempt([&] { former.emplace(ctx_, f_); });
    call_.agree();
    f_.Q = former->form(ctx_, call_, f_.leaf, f_.nodes);
    f_.is_explicit = true;
    f_.leaf = {};
    f_.nodes.clear();
}

}  // namespace

// ---- products with the thin Q ---------------------------------------------------------------------------------------

template <class T, class D>
ThinProduct<T, D>::ThinProduct(Context<D>& ctx, const DistributedFactorization<T, D>& f, Index p)
    : f_(f), top_(ctx, f.k(), p), part_(ctx, f.k(), p) {
    if (f.is_explicit) return;
    lent_ = LentRows<T, D>(ctx, f.layout, f.comm->rank(), p);
    stack_ = Matrix<T, D>(ctx, 2 * f.k(), p);
    X_ = Matrix<T, D>(ctx, f.leads() ? f.group().rows : 0, p);
}

template <class T, class D>
Matrix<T, D> ThinProduct<T, D>::project(Context<D>& ctx, JointCall& call, Matrix<T, D>&& X,
                                        std::vector<Real<T>>* rest) {
    const Index k = f_.k(), p = top_.cols();
    // rest_j := ‖(rest_j, c_j)‖
    const auto add_norms = [&](MatrixView<const T, D> C) {
        if (!rest) return;
        std::vector<Real<T>> norms(p);
        column_norms<T>(ctx, C, norms);
        for (Index j = 0; j < p; ++j) (*rest)[j] = std::hypot((*rest)[j], norms[j]);
    };
    if (rest) rest->assign(p, Real<T>(0));
    if (f_.is_explicit) {
        // Q₁ᵀC, the sum over the ranks; the rest is C − Q₁ Q₁ᵀC
        call.attempt([&] { multiply_transposed<T>(ctx, f_.Q.view(), X.view(), top_.view()); });
        reduce_sum<T, D>(*f_.comm, ctx, top_.view(), part_.view(), f_.layout.root(), call.note());
        if (rest) {
            call.share<T>(ctx, top_.view(), f_.layout.root());
            call.attempt([&] {
                subtract_product<T>(ctx, f_.Q.view(), top_.view(), X.view());
                add_norms(X.view());
            });
        }
        return std::move(top_);
    }
    Matrix<T, D> C = lent_.gather(ctx, call, std::move(X));
    if (!f_.leads()) return std::move(top_);
    // [C₁; C₂] := Q_iᵀC
    call.attempt([&] {
        throw_if_stopped(ctx);
        f_.leaf.apply(ctx, Op::Transpose, C.view());
        copy<T>(ctx, C.view().row_block({0, k}), top_.view());
        add_norms(C.view().row_block({k, C.rows()}));
    });
    const auto upper = stack_.view().row_block({0, k}), lower = stack_.view().row_block({k, 2 * k});
    for (const auto& node : f_.nodes) {
        call.hear(f_.comm->template receive<T>(ctx, part_.view(), node.member));
        call.attempt([&] {
            copy<T>(ctx, top_.view(), upper);
            copy<T>(ctx, part_.view(), lower);
            node.apply(ctx, Op::Transpose, stack_.view());
            copy<T>(ctx, upper, top_.view());
            add_norms(lower);
        });
    }
    if (f_.head >= 0) f_.comm->template send<T>(ctx, top_.view(), f_.head, call.note());
    return std::move(top_);
}

template <class T, class D>
Matrix<T, D> ThinProduct<T, D>::expand(Context<D>& ctx, JointCall& call, MatrixView<const T, D> W) {
    const Index k = f_.k();
    Matrix<T, D> rows;
    call.attempt([&] {
        rows = Matrix<T, D>(ctx, f_.own_rows(), W.cols);
        copy<T>(ctx, W, top_.view());
        if (!f_.is_explicit) return;
        // 0 − Q₁(−W)
        set_zero(ctx, rows.view());
        negate<T>(ctx, top_.view());
        subtract_product<T>(ctx, f_.Q.view(), top_.view(), rows.view());
    });
    if (f_.is_explicit) return rows;
    call.agree();
    const auto upper = stack_.view().row_block({0, k}), lower = stack_.view().row_block({k, 2 * k});
    if (f_.leads()) {
        // from the root, where E = W, down: [E; E_member] := H [E; 0], and Q_i [E; 0]
        if (f_.head >= 0) call.hear(f_.comm->template receive<T>(ctx, top_.view(), f_.head));
        for (auto node = f_.nodes.rbegin(); node != f_.nodes.rend(); ++node) {
            call.attempt([&] {
                copy<T>(ctx, top_.view(), upper);
                set_zero(ctx, lower);
                node->apply(ctx, Op::None, stack_.view());
                copy<T>(ctx, upper, top_.view());
                copy<T>(ctx, lower, part_.view());
            });
            f_.comm->template send<T>(ctx, part_.view(), node->member, call.note());
        }
        call.attempt([&] {
            throw_if_stopped(ctx);
            copy<T>(ctx, top_.view(), X_.view().row_block({0, k}));
            set_zero(ctx, X_.view().row_block({k, X_.rows()}));
            f_.leaf.apply(ctx, Op::None, X_.view());
        });
    }
    lent_.scatter(ctx, call, std::move(X_), rows);
    return rows;
}

// ---- the interface --------------------------------------------------------------------------------------------------

template <class T, class D>
void DistributedQR<T, D>::over(Communicator& comm) {
    if (const auto ranks = inside_->layout.rows.size(); comm.size() != static_cast<int>(ranks))
        throw InvalidArgument(
            fmt::format("over: a factorization over {} ranks, and a communicator of {}", ranks, comm.size()));
    inside_->comm = &comm;
}

template <class T, class D>
Index DistributedQR<T, D>::rows() const {
    return inside_->plan.rows;
}
template <class T, class D>
Index DistributedQR<T, D>::cols() const {
    return inside_->plan.cols;
}
template <class T, class D>
const Plan& DistributedQR<T, D>::plan() const {
    return inside_->plan;
}
template <class T, class D>
const Report& DistributedQR<T, D>::report() const {
    return inside_->report;
}

template <class T, class D>
Matrix<T, D> DistributedQR<T, D>::r(Context<D>& ctx, Ranks where) const {
    const auto& f = *inside_;
    JointCall call(host_context(ctx), *f.comm, RankOperation::R);
    Matrix<T, D> R, packed;
    call.attempt([&] {
        R = Matrix<T, D>(ctx, f.k(), f.plan.cols);
        packed = Matrix<T, D>(ctx, packed_size(f.k(), f.plan.cols), 1);
        set_zero(ctx, R.view());
        if (f.R.cols() > 0) pack_triangle<T>(ctx, f.R.view(), packed.view());
    });
    call.agree({{"which ranks get R", static_cast<Index>(where)}});
    const int root = f.layout.root(), rank = f.comm->rank();
    if (where == Ranks::All) {
        call.share<T>(ctx, packed.view(), root);
    } else if (root != 0) {
        if (rank == root) f.comm->template send<T>(ctx, packed.view(), 0);
        if (rank == 0) f.comm->template receive<T>(ctx, packed.view(), root);
    }
    if (where == Ranks::Root && rank != 0) return {};
    unpack_triangle<T>(ctx, packed.view(), R.view());
    return R;
}

template <class T, class D>
Matrix<T, D> DistributedQR<T, D>::take_q(Context<D>& ctx) && {
    auto& f = *inside_;
    JointCall call(host_context(ctx), *f.comm, RankOperation::TakeQ);
    Matrix<T, D> Q;
    std::optional<QFormer<T, D>> former;
    call.attempt([&] {
        f.require_q("take_q");
        if (f.is_explicit) {
            Q = std::move(f.Q);
        } else {
            former.emplace(ctx, f);
        }
    });
    call.agree();
    if (former) Q = former->form(ctx, call, f.leaf, f.nodes);
    f.holds_q = false;
    f.leaf = {};
    f.nodes.clear();
    return Q;
}

template <class T, class D>
Matrix<T, D> DistributedQR<T, D>::form_q(Context<D>& ctx) const {
    const auto& f = *inside_;
    JointCall call(host_context(ctx), *f.comm, RankOperation::FormQ);
    Matrix<T, D> Q;
    LeafQ<T, D> leaf;
    std::vector<RankNode<T, D>> nodes;
    std::optional<QFormer<T, D>> former;
    call.attempt([&] {
        f.require_q("form_q");
        if (f.is_explicit) {
            Q = copy_of<T, D>(ctx, f.Q.view());
            return;
        }
        former.emplace(ctx, f);
        leaf = f.leaf.copy(ctx);
        for (const auto& node : f.nodes) nodes.push_back(node.copy(ctx));
    });
    call.agree();
    return former ? former->form(ctx, call, leaf, nodes) : std::move(Q);
}

template <class T, class D>
Matrix<T, D> DistributedQR<T, D>::apply_thin_q(Context<D>& ctx, Op op, MatrixView<const T, D> C) const {
    const auto& f = *inside_;
    JointCall call(host_context(ctx), *f.comm, RankOperation::ApplyThinQ);
    std::optional<ThinProduct<T, D>> product;
    Matrix<T, D> X;
    call.attempt([&] {
        f.require_q("apply_thin_q");
        check_matrix(C);
        const Index rows = op == Op::Transpose ? f.own_rows() : f.k();
        if (C.rows != rows)
            throw InvalidArgument(fmt::format("apply_thin_q: C has {} rows instead of {}", C.rows, rows));
        product.emplace(ctx, f, C.cols);
        if (op == Op::Transpose) X = copy_of<T, D>(ctx, C);
    });
    call.agree({{"op", static_cast<Index>(op)}, {"the number of columns of C", C.cols}});
    if (op == Op::Transpose) {
        X = product->project(ctx, call, std::move(X));
        call.share<T>(ctx, X.view(), f.layout.root());
    } else {
        X = product->expand(ctx, call, C);
    }
    call.agree();
    return X;
}

template <class T, class D>
DistributedQR<T, D> qr(Context<D>& ctx, Communicator& comm, MatrixView<const T, D> A, Options options) {
    auto f = detail::own<DistributedFactorization<T, D>>(RankFactorizer<T, D>(ctx, comm, A, options).factor());
    return DistributedQR<T, D>(std::move(f));
}

#define QUOIN_INSTANTIATE(T, D)         \
    template class ThinProduct<T, D>;   \
    template class DistributedQR<T, D>; \
    template DistributedQR<T, D> qr<T, D>(Context<D>&, Communicator&, MatrixView<const T, D>, Options);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
