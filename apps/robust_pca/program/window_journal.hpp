#pragma once

#include <string>

#include "io/journal.hpp"
#include "rpca.hpp"

namespace quoin::cli {

/// What `quoin rpca` has finished: the folder quoin-journal in --out, with the films of each finished window, the state of the run
/// after the last one, and a line for each in its journal.
class WindowJournal {
public:
    /// Throws UnwritableFile; InvalidArgument where the folder is that of a run with other options or of another input, unless
    /// --restart deletes it.
    explicit WindowJournal(const RpcaArguments& arguments);
    /// Without a finished window the folder goes.
    ~WindowJournal();

    const std::string& folder() const { return journal_.folder(); }
    Index windows() const { return static_cast<Index>(journal_.lines().size()) - 1; }
    /// Of the finished windows.
    Index frames() const;
    /// The state after `windows` windows.
    std::string state_path(Index windows) const;

    /// One more window is finished, `frames` frames in all, and its files and its state are in the folder.
    void append(Index frames);
    /// "40 frames are kept in d/quoin-journal".
    std::string in_words() const;
    void remove();

private:
    io::Journal journal_;
    bool removed_ = false;
};

}  // namespace quoin::cli
