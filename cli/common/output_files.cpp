#include "output_files.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "quoin/error.hpp"

namespace quoin::cli {

namespace fs = std::filesystem;

namespace {

/// Whether `path` is one of the files, by device and inode.
bool is_one_of(const std::string& path, const std::vector<std::string>& files) {
    std::error_code none;  // of what does not exist
    return std::any_of(files.begin(), files.end(),
                       [&](const std::string& file) { return fs::equivalent(path, file, none); });
}

}  // namespace

void require_writable(const std::string& path, const std::vector<std::string>& inputs) {
    std::error_code error;
    if (fs::is_directory(path, error)) throw UnwritableFile(path, "is a directory");
    if (is_one_of(path, inputs))
        throw UnwritableFile(path, "is an input file, and the output would overwrite it: write to another folder");
    const fs::path parent = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
    if (access(parent.c_str(), W_OK | X_OK) != 0) throw UnwritableFile(path, std::strerror(errno));
}

void flush_output() {
    errno = 0;
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
        throw UnwritableFile("standard output", errno != 0 ? std::strerror(errno) : "a write failed");
}

OutputDirectory::OutputDirectory(const std::string& path, std::vector<std::string> inputs)
    : path_(path), inputs_(std::move(inputs)) {
    std::vector<fs::path> missing;
    std::error_code error;
    for (fs::path p = path; !p.empty() && !fs::exists(p, error) && !error; p = p.parent_path()) missing.push_back(p);
    if (missing.empty() && !error && !fs::is_directory(path, error)) throw UnwritableFile(path, "is not a directory");
    for (auto p = missing.rbegin(); !error && p != missing.rend(); ++p)
        if (fs::create_directory(*p, error)) created_.push_back(p->string());
    if (error) {
        for (auto p = created_.rbegin(); p != created_.rend(); ++p) rmdir(p->c_str());
        throw UnwritableFile(path, error.message());
    }
}

OutputDirectory::~OutputDirectory() {
    for (auto p = created_.rbegin(); p != created_.rend(); ++p) rmdir(p->c_str());
}

std::string OutputDirectory::file(const std::string& name) {
    const std::string path = (fs::path(path_) / name).string();
    require_writable(path, inputs_);
    names_.push_back(name);
    return path;
}

void OutputDirectory::refuse_leftovers(const std::vector<std::string>& names) const {
    for (const std::string& name : names) {
        const std::string path = (fs::path(path_) / name).string();
        std::error_code error;
        const bool written = std::find(names_.begin(), names_.end(), name) != names_.end();
        if (written || !fs::exists(path, error) || is_one_of(path, inputs_)) continue;
        throw UnwritableFile(
            path,
            "was written by an earlier run with other options and could be mistaken for output of this run: "
            "remove it, or write to another folder");
    }
}

}  // namespace quoin::cli
