#pragma once

// The record of finished steps, for a computation over files that was interrupted.

#include <map>
#include <string>
#include <vector>

namespace quoin::io {

/// The finished steps of a computation over files: lines in the file `journal` of the folder of its unfinished files.
/// Each line has a checksum, and is on the disk when `append` returns. The caller must flush the data of a step to the
/// disk before it appends the step's line. So the lines are true however the program ends.
///
/// Throws UnwritableFile, naming the file.
class Journal {
public:
    /// Opens the folder, and creates it if missing. Reads the lines before the first torn one. Throws also if another
    /// program has it open.
    explicit Journal(const std::string& folder);
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;
    ~Journal();

    const std::string& folder() const { return folder_; }
    std::string path(const std::string& name) const { return folder_ + "/" + name; }
    const std::vector<std::string>& lines() const { return lines_; }

    /// Flushes the names of the files in the folder to the disk.
    void flush_names() const;
    /// Appends `line`, which must not have a line break.
    void append(const std::string& line);
    /// Throws InvalidArgument unless the first line is `identity`, "key=value key=value". The message has the
    /// difference, and says that a restart deletes the folder `and_then` from the start, such as " and factor".
    void require_run(const std::string& identity, const char* and_then) const;
    /// Starts again: removes the other files and folders in the folder, and then the lines.
    void clear();
    /// Removes the folder.
    void remove();

private:
    [[noreturn]] void fail(int error) const;
    void read();

    std::string folder_, path_;
    int fd_ = -1;
    std::vector<std::string> lines_;
};

/// Returns the fields of a line "key=value key=value".
std::map<std::string, std::string> fields_of(const std::string& line);

}  // namespace quoin::io
