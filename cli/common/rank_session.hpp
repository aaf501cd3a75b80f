#pragma once

#include <functional>
#include <string>

#include "quoin/communicator.hpp"

namespace quoin::cli {

/// The ranks of one run of a program, processes or threads, and what they do together.
class RankSession {
public:
    /// `comm` outlives this one.
    explicit RankSession(Communicator& comm) : comm_(comm) {}

    Communicator& comm() const { return comm_; }
    int rank() const { return comm_.rank(); }
    int size() const { return comm_.size(); }

    /// Every rank calls it and does its work; if one throws, the first by rank, all throw an Error with its code and message, which
    /// names the rank unless all have failed with the same code.
    void together(const std::function<void()>& work);
    /// The text of rank `of` on every rank.
    std::string text_of(int of, std::string text);
    /// Whether it is so on every rank.
    bool everywhere(bool here);

private:
    Communicator& comm_;
    Context<Host> host_{1};
};

}  // namespace quoin::cli
