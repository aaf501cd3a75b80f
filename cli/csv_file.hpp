#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

namespace quoin::cli {

/// Lines of results in a file, each there as soon as it is known. Without a path nothing is written.
class CsvFile {
public:
    /// Throws UnwritableFile.
    explicit CsvFile(const std::string& path);

    /// Throws UnwritableFile.
    template <class... Arguments>
    void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
        if (file_) write(fmt::format(format, std::forward<Arguments>(arguments)...));
    }

private:
    void write(const std::string& text) const;

    std::string path_;
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, std::fclose};
};

}  // namespace quoin::cli
