#pragma once

#include <map>
#include <string>
#include <vector>

namespace quoin::io {

/// What a computation over files has finished, in the folder that holds its unfinished files: lines that are appended to the
/// file `journal` there, each under a checksum, and each on the disk when `append` returns. The caller has what a line
/// claims on the disk before it appends the line, so that whatever ends the program the lines are true.
///
/// Throws UnwritableFile, naming the file.
class Journal {
public:
    /// Opens the folder, creating it; its lines end before the first one that is torn. Throws also where another program has
    /// it open.
    explicit Journal(const std::string& folder);
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;
    ~Journal();

    const std::string& folder() const { return folder_; }
    std::string path(const std::string& name) const { return folder_ + "/" + name; }
    const std::vector<std::string>& lines() const { return lines_; }

    /// Flushes the names of the files in the folder to the disk.
    void flush_names() const;
    /// `line` has no line break.
    void append(const std::string& line);
    /// Throws InvalidArgument where the first line is not `identity`, "key=value key=value": it says what differs, and that a restart
    /// deletes the folder `and_then` from the start, such as " and factor".
    void require_run(const std::string& identity, const char* and_then) const;
    /// Begins anew: the other files and folders in the folder go, and then the lines.
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

/// Of a line "key=value key=value".
std::map<std::string, std::string> fields_of(const std::string& line);

}  // namespace quoin::io
