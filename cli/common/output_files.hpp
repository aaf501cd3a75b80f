#pragma once

#include <span>
#include <string>
#include <vector>

#include "io/atomic_file.hpp"

namespace quoin::cli {

/// Throws UnwritableFile where a file `path` cannot be created or replaced, so that no long computation is lost, or is
/// one of the `inputs`, by whatever path or link.
void require_writable(const std::string& path, const std::vector<std::string>& inputs = {});

using io::write_text;

/// Writes what stdout still holds. Throws UnwritableFile where a write to stdout has failed, now or earlier.
void flush_output();

/// The folder of --out. Created if missing, with its parents; those it created are removed again unless `keep` is
/// called.
class OutputDirectory {
public:
    /// `inputs`: paths of files that are read. Throws UnwritableFile.
    explicit OutputDirectory(const std::string& path, std::vector<std::string> inputs = {});
    ~OutputDirectory();
    OutputDirectory(const OutputDirectory&) = delete;
    OutputDirectory& operator=(const OutputDirectory&) = delete;

    /// Path of the file `name` in it, known to be writable and none of the inputs. Throws UnwritableFile.
    std::string file(const std::string& name);
    /// Throws where `file` would for one of `names`, before the computation whose results they are for.
    void require(std::span<const char* const> names) {
        for (const char* name : names) file(name);
    }
    /// Throws UnwritableFile where one of `names`, all that the command may write, is there and `file` was not asked
    /// for it: it was left by a run with other options, and would pass for a part of this one's result.
    void refuse_leftovers(const std::vector<std::string>& names) const;
    void keep() { created_.clear(); }

private:
    std::string path_;
    std::vector<std::string> inputs_;
    std::vector<std::string> names_;    // that `file` was asked for
    std::vector<std::string> created_;  // innermost last
};

}  // namespace quoin::cli
