// Agreement of ranks, and the message that carries the failure of one to all.

#include "comm/joint_call.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <new>

namespace quoin {

const char* to_string(RankOperation operation) {
    static constexpr const char* names[] = {"qr",
                                            "r",
                                            "form_q",
                                            "take_q",
                                            "apply_thin_q",
                                            "least_squares",
                                            "svd",
                                            "least_squares or svd",
                                            "apply_q",
                                            "solve",
                                            "from_lapack",
                                            "redistribute",
                                            "merge",
                                            "append",
                                            "FileQR",
                                            "a function of arrays on GPUs",
                                            "fail_on_all_ranks"};
    return names[static_cast<Index>(operation)];
}

void JointCall::keep(Of of) {
    note_ = 1 + comm_.rank();
    const auto set = [&](ErrorCode code, const char* text, Index row = 0, Index col = 0, double number = 0) {
        failure_ = {static_cast<Index>(code), row, col, number, {}};
        const auto prefix = of == Of::Rank ? fmt::format("rank {}: ", comm_.rank()) : "";
        *fmt::format_to_n(failure_.text, sizeof failure_.text - 1, "{}{}", prefix, text).out = '\0';
    };
    try {
        throw;
    } catch (const NonFiniteEntry& e) {
        set(e.code(), e.matrix.c_str(), e.row, e.col);
    } catch (const NumericalBreakdown& e) {
        set(e.code(), e.what(), 0, e.column);
    } catch (const RankDeficient& e) {
        set(e.code(), e.what(), 0, 0, e.rcond);
    } catch (const Error& e) {
        set(e.code(), e.what());
    } catch (const std::bad_alloc&) {
        set(ErrorCode::OutOfMemory, "out of memory");
    } catch (const std::exception& e) {
        set(ErrorCode::CommunicationFailure, e.what());
    } catch (...) {
        set(ErrorCode::CommunicationFailure, "an exception of unknown type");
    }
}

void JointCall::settle(int note) {
    if (note == 0) return;
    settled_ = true;
    auto words = std::bit_cast<std::array<Index, sizeof(Failure) / sizeof(Index)>>(failure_);
    comm_.broadcast<Index>(ctx_, {words.data(), static_cast<Index>(words.size()), 1}, note - 1);
    const auto failure = std::bit_cast<Failure>(words);
    switch (const auto code = static_cast<ErrorCode>(failure.code)) {
        case ErrorCode::InvalidArgument: throw InvalidArgument(failure.text);
        case ErrorCode::NonFiniteEntry: throw NonFiniteEntry(failure.row, failure.col, failure.text);
        case ErrorCode::NumericalBreakdown: throw NumericalBreakdown(failure.text, failure.col);
        case ErrorCode::RankDeficient: throw RankDeficient(failure.text, failure.number);
        case ErrorCode::OutOfMemory: throw OutOfMemory(failure.text);
        case ErrorCode::Interrupted: throw Interrupted();
        default: throw Error(code, failure.text);
    }
}

std::vector<Index> JointCall::agree(std::initializer_list<Same> same, Index mine) {
    std::vector<Index> values(agreement_words(comm_.size())), part(values.size());
    values[0] = static_cast<Index>(operation_);
    for (std::size_t i = 0; i < same.size(); ++i) values[i + 1] = same.begin()[i].value;
    values[max_same + comm_.rank()] = mine;
    const auto view = [](std::vector<Index>& v) {
        return MatrixView<Index>(v.data(), static_cast<Index>(v.size()), 1);
    };
    reduce<Index>(comm_, ctx_, view(values), view(part), 0, note_, [&](auto B, auto A, int member) {
        attempt(
            [&] {
                if (A(0, 0) != B(0, 0)) {
                    throw InvalidArgument(fmt::format("the ranks disagree: rank {} calls {} and rank {} {}",
                                                      comm_.rank(), to_string(operation_), member,
                                                      to_string(static_cast<RankOperation>(B(0, 0)))));
                }
                Index i = 1;
                for (const Same& value : same) {
                    if (A(i, 0) != B(i, 0)) {
                        throw InvalidArgument(fmt::format("the ranks disagree: {} is {} on rank {} and {} on rank {}",
                                                          value.name, A(i, 0), comm_.rank(), B(i, 0), member));
                    }
                    ++i;
                }
            },
            Of::All);
        for (Index i = max_same; i < A.rows; ++i) A(i, 0) += B(i, 0);
    });
    share<Index>(ctx_, view(values));
    return {values.begin() + max_same, values.end()};
}

void fail_on_all_ranks(Context<Host>& ctx, Communicator& comm, const std::string& why) {
    JointCall call(ctx, comm, RankOperation::Fail);
    call.attempt([&] { throw InvalidArgument(why); });
    call.agree();
    throw InvalidArgument(why);  // not reached: the ranks agree on the failure
}

std::vector<Index> agree_on_gpus(Context<Host>& ctx, Communicator& comm, const std::function<Index()>& mine) {
    JointCall call(ctx, comm, RankOperation::Gpus);
    Index value = 0;
    call.attempt([&] { value = mine(); });
    return call.agree({}, value);
}

}  // namespace quoin
