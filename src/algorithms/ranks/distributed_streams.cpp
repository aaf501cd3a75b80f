// R of rows that are streamed on several ranks: their triangles meet in the tree of ranks.

#include <numeric>

#include "algorithms/ranks/distributed.hpp"

namespace quoin {

template <class T, class D>
StreamingR<T, D> merge(Context<D>& ctx, Communicator& comm, const StreamingR<T, D>& mine) {
    using State = typename StreamingR<T, D>::State;
    JointCall call(host_context(ctx), comm, RankOperation::Merge);
    State state;
    Matrix<T, D> packed;
    call.attempt([&] {
        state = mine.state(ctx);
        packed = Matrix<T, D>(ctx, packed_size(state.R.cols(), state.R.cols()), 1);
    });
    const Index n = mine.cols(), width = state.R.cols(), own = mine.rows();
    const auto rows = call.agree({{"the number of columns", n},
                                  {"the number of right-hand sides", width - n},
                                  {"the size of an element", sizeof(T)}},
                                 own);
    const Report report = state.report;
    StreamingR<T, D> stream(std::move(state));
    const auto message = [&](Index of_rows) {
        return packed.view().row_block({0, packed_size(std::min(of_rows, width), width)});
    };
    const auto pack = [&] {
        const State s = stream.state(ctx);
        pack_triangle<T>(ctx, s.R.view(), message(s.rows));
    };
    const auto unpack = [&](Index of_rows) {
        State s{n, of_rows, Matrix<T, D>(ctx, std::min(of_rows, width), width), report};
        set_zero(ctx, s.R.view());
        unpack_triangle<T>(ctx, message(of_rows), s.R.view());
        return s;
    };
    // R_ext := R factor of [R_ext; R_ext of a member], which has the rows of ranks [member, end)
    const RankTree tree(comm.rank(), comm.size());
    for (const int member : tree.members) {
        const int end = std::min(2 * member - comm.rank(), comm.size());
        const Index theirs = std::accumulate(rows.begin() + member, rows.begin() + end, Index{0});
        call.hear(comm.receive<T>(ctx, message(theirs), member));
        call.attempt([&] {
            throw_if_stopped(ctx);
            stream.merge(ctx, StreamingR<T, D>(unpack(theirs)));
        });
    }
    call.attempt(pack);
    if (tree.head >= 0) comm.send<T>(ctx, message(stream.rows()), tree.head, call.note());
    const Index all = std::accumulate(rows.begin(), rows.end(), Index{0});
    call.share<T>(ctx, message(all));
    return StreamingR<T, D>(unpack(all));
}

#define QUOIN_INSTANTIATE(T, D) \
    template StreamingR<T, D> merge<T, D>(Context<D>&, Communicator&, const StreamingR<T, D>&);
QUOIN_FOR_EACH_TYPE(QUOIN_INSTANTIATE)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
