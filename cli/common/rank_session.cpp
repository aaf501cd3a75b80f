#include "rank_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "quoin/error.hpp"

namespace quoin::cli {

std::string RankSession::text_of(int of, std::string text) {
    Index length = static_cast<Index>(text.size());
    comm_.broadcast<Index>(host_, {&length, 1, 1}, of);
    text.resize(static_cast<std::size_t>(length));
    constexpr Index word = sizeof(Index);
    std::vector<Index> words(static_cast<std::size_t>((length + word - 1) / word));
    std::memcpy(words.data(), text.data(), text.size());
    comm_.broadcast<Index>(host_, {words.data(), static_cast<Index>(words.size()), 1}, of);
    std::memcpy(text.data(), words.data(), text.size());
    return text;
}

bool RankSession::everywhere(bool here) {
    Index not_here = !here;
    comm_.all_reduce<Index>(host_, {&not_here, 1, 1}, Reduction::Max);
    return not_here == 0;
}

void RankSession::together(const std::function<void()>& work) {
    constexpr Index none = -1;
    Index code = none;
    std::string text;
    try {
        work();
    } catch (const Error& e) {
        code = static_cast<Index>(e.code());
        text = e.what();
    } catch (const std::bad_alloc&) {
        code = static_cast<Index>(ErrorCode::OutOfMemory);
        text = "out of memory";
    } catch (const std::exception& e) {
        code = static_cast<Index>(ErrorCode::CommunicationFailure);
        text = e.what();
    }
    // the code of every rank
    std::vector<Index> codes(static_cast<std::size_t>(size()), none);
    codes[static_cast<std::size_t>(rank())] = code;
    comm_.all_reduce<Index>(host_, {codes.data(), size(), 1}, Reduction::Max);
    const auto first = std::find_if(codes.begin(), codes.end(), [](Index c) { return c != none; });
    if (first == codes.end()) return;
    const int failed = static_cast<int>(first - codes.begin());
    text = text_of(failed, text);
    if (static_cast<ErrorCode>(*first) == ErrorCode::Interrupted) throw Interrupted();
    const bool all = std::all_of(codes.begin(), codes.end(), [&](Index c) { return c == *first; });
    throw Error(static_cast<ErrorCode>(*first), all ? text : fmt::format("rank {}: {}", failed, text));
}

}  // namespace quoin::cli
