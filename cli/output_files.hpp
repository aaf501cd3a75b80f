#pragma once

#include <string>
#include <vector>

namespace quoin::cli {

/// Throws UnwritableFile where a file `path` cannot be created or replaced, so that no long computation is lost.
void require_writable(const std::string& path);

/// Writes a file of text, which appears complete or not at all. Throws UnwritableFile.
void write_text(const std::string& path, const std::string& text);

/// The folder of --out. Created if missing, with its parents; those it created are removed again unless `keep` is called.
class OutputDirectory {
public:
    /// Throws UnwritableFile.
    explicit OutputDirectory(const std::string& path);
    ~OutputDirectory();
    OutputDirectory(const OutputDirectory&) = delete;
    OutputDirectory& operator=(const OutputDirectory&) = delete;

    /// Path of the file `name` in it, known to be writable.
    std::string file(const std::string& name) const;
    void keep() { created_.clear(); }

private:
    std::string path_;
    std::vector<std::string> created_;  // innermost last
};

}  // namespace quoin::cli
