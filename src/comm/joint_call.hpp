#pragma once

// A call that all ranks make together: it succeeds on all of them, or throws one error on all of them.

#include <initializer_list>
#include <vector>

#include "comm/rank_tree.hpp"

namespace quoin {

/// The calls that ranks make together.
enum class RankOperation : Index {
    Qr,
    R,
    FormQ,
    TakeQ,
    ApplyThinQ,
    LeastSquares,
    Svd,
    ChooseRange,
    ApplyQ,
    Solve,
    FromLapack,
    Redistribute,
    Merge,
    Append,
    FileQr,
    Gpus,
    Fail
};
/// "qr", "r", "form_q", …
const char* to_string(RankOperation operation);

/// A call in which all ranks learn of an error of one. A rank whose work throws keeps the exception. It continues to
/// send and receive, with a note in place of data, until all ranks have the note. So a call that fails has the same
/// messages as one that succeeds.
/// Memory for the messages themselves is allocated by a piece of work before the ranks `agree` to begin.
class JointCall {
public:
    JointCall(Context<Host>& ctx, Communicator& comm, RankOperation operation)
        : ctx_(ctx), comm_(comm), operation_(operation) {}

    Communicator& comm() const { return comm_; }
    /// 0, or 1 + the rank whose work failed, as far as this one knows.
    int& note() { return note_; }
    bool failed() const { return note_ != 0; }
    void hear(int note) {
        if (note_ == 0) note_ = note;
    }

    /// Does the work unless something has failed, and keeps its exception. A failure of work that one rank does for all
    /// is not reported as that rank's own.
    enum class Of { Rank, All };
    template <class F>
    void attempt(F&& work, Of of = Of::Rank) {
        if (note_ != 0) return;
        try {
            work();
        } catch (...) {
            if (settled_) throw;
            keep(of);
        }
    }

    struct Same {
        const char* name;
        Index value;
    };
    /// Returns `mine` of each rank. Throws on all ranks if one has failed, is in another operation, or differs in one
    /// of the values `same` (at most 23): InvalidArgument, which names two that differ. Sends `agreement_words` in each
    /// of 2⌈log₂ size⌉ messages, one after the other.
    std::vector<Index> agree(std::initializer_list<Same> same = {}, Index mine = 0);

    static constexpr Index max_same = 24;
    static Index agreement_words(int size) { return max_same + size; }

    /// A := A of `root` on every rank. Throws on all ranks if root knows of a failure.
    template <class T, class D>
    void share(Context<D>& ctx, View<T, D> A, int root = 0) {
        settle(comm_.broadcast<T>(ctx, A, root, note_));
    }

private:
    void keep(Of of);
    void settle(int note);

    /// One size on every rank. `text` is of the message, or of a matrix's name.
    struct Failure {
        Index code = 0, row = 0, col = 0;
        double number = 0;
        char text[480] = {};
    };

    Context<Host>& ctx_;
    Communicator& comm_;
    RankOperation operation_;
    int note_ = 0;
    bool settled_ = false;
    Failure failure_;
};

}  // namespace quoin
