#include "output_files.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "io/atomic_file.hpp"
#include "quoin/error.hpp"

namespace quoin::cli {

namespace fs = std::filesystem;

void require_writable(const std::string& path) {
    std::error_code error;
    if (fs::is_directory(path, error)) throw UnwritableFile(path, "is a directory");
    const fs::path parent = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
    if (access(parent.c_str(), W_OK | X_OK) != 0) throw UnwritableFile(path, std::strerror(errno));
}

void write_text(const std::string& path, const std::string& text) {
    io::AtomicFile file(path);
    file.write_at(0, text.data(), text.size());
    file.commit();
}

OutputDirectory::OutputDirectory(const std::string& path) : path_(path) {
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

std::string OutputDirectory::file(const std::string& name) const {
    const std::string path = (fs::path(path_) / name).string();
    require_writable(path);
    return path;
}

}  // namespace quoin::cli
