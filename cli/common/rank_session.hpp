#pragma once

#include <functional>
#include <string>

#include "quoin/communicator.hpp"

namespace quoin::cli {

/// The ranks of one run of a program, processes or threads, and operations that they perform together.
class RankSession {
public:
    /// `comm` must outlive the session.
    explicit RankSession(Communicator& comm) : comm_(comm) {}

    Communicator& comm() const { return comm_; }
    int rank() const { return comm_.rank(); }
    int size() const { return comm_.size(); }

    /// Every rank calls it and does its work; if one throws, the first by rank, all throw an Error with its code and
    /// message, which names the rank unless all have failed with the same code.
    void together(const std::function<void()>& work);
    /// Returns the text of rank `of` on every rank.
    std::string text_of(int of, std::string text);
    /// Whether `here` is true on every rank.
    bool everywhere(bool here);

private:
    Communicator& comm_;
    Context<Host> host_{1};
};

}  // namespace quoin::cli
