#include "csv_file.hpp"

#include <cerrno>
#include <cstring>

#include "quoin/error.hpp"

namespace quoin::cli {

CsvFile::CsvFile(const std::string& path) : path_(path) {
    if (path.empty()) return;
    file_.reset(std::fopen(path.c_str(), "w"));
    if (!file_) throw UnwritableFile(path, std::strerror(errno));
}

void CsvFile::write(const std::string& text) const {
    std::fputs(text.c_str(), file_.get());
    if (std::fflush(file_.get()) != 0) throw UnwritableFile(path_, std::strerror(errno));
}

}  // namespace quoin::cli
