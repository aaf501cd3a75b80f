#pragma once

#include <string>

#include "io/journal.hpp"
#include "rpca.hpp"

namespace quoin::cli {

/// The finished work of `quoin rpca`. The folder quoin-journal in --out has the films of each finished window, the
/// state of the run after the last one, and a journal with a line for each.
class WindowJournal {
public:
    /// Throws UnwritableFile. Throws InvalidArgument if the folder is from a run with other options or of another
    /// input, unless --restart deletes it.
    explicit WindowJournal(const RpcaArguments& arguments);
    /// Removes the folder if no window is finished.
    ~WindowJournal();

    const std::string& folder() const { return journal_.folder(); }
    Index windows() const { return static_cast<Index>(journal_.lines().size()) - 1; }
    /// Returns the number of frames in the finished windows.
    Index frames() const;
    /// Returns the path of the state after `windows` windows.
    std::string state_path(Index windows) const;

    /// Notes that one more window is finished, with `frames` frames in all. Its files and its state are in the folder.
    void append(Index frames);
    /// Returns "40 frames are kept in d/quoin-journal".
    std::string in_words() const;
    void remove();

private:
    io::Journal journal_;
    bool removed_ = false;
};

}  // namespace quoin::cli
