#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <mutex>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "io/csv.hpp"
#include "io/mapped_file.hpp"
#include "io/matrix_market.hpp"
#include "io/npy_header.hpp"
#include "io/npy_reader.hpp"
#include "quoin/error.hpp"
#include "quoin/io.hpp"

namespace quoin {
namespace {

using Header = std::variant<io::NpyHeader, io::MatrixMarketHeader, io::CsvHeader>;

/// `suffix` is in lower case; the path's may be in either.
bool has_suffix(std::string_view path, std::string_view suffix) {
    return path.size() >= suffix.size() &&
           std::equal(suffix.begin(), suffix.end(), path.end() - static_cast<Index>(suffix.size()),
                      [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
}

Header parse_header(std::string_view file, const std::string& path) {
    if (file.starts_with(io::npy_magic) || has_suffix(path, ".npy")) return io::parse_npy_header(file, path);
    if (io::is_matrix_market(file) || has_suffix(path, ".mtx")) return io::parse_matrix_market_header(file, path);
    constexpr std::size_t probe = 4096;
    if (file.substr(0, probe).find('\0') != file.npos) {
        throw UnreadableFile(path, "is neither .npy nor Matrix Market nor text");
    }
    return io::parse_csv_header(file, path);
}

/// Reads rows of an .npy file in pieces and takes each piece out of resident memory: a file larger than memory leaves
/// room for the matrix.
template <class T>
void read_npy_rows(const io::MappedFile& file, const io::NpyHeader& header, Range rows, MatrixView<T> out) {
    if (out.empty()) return;
    constexpr Index piece_bytes = Index{16} << 20;
    const Index piece = piece_bytes / static_cast<Index>(header.element_bytes);
    const Index ni = header.fortran_order ? std::min(piece, out.rows) : std::max<Index>(1, piece / out.cols);
    const Index nj = header.fortran_order ? std::max<Index>(1, piece / ni) : out.cols;
    for (Index j = 0; j < out.cols; j += nj) {
        const Range c{j, std::min(j + nj, out.cols)};
        for (Index i = 0; i < out.rows; i += ni) {
            const Range r{i, std::min(i + ni, out.rows)};
            const Range file_rows{rows.begin + r.begin, rows.begin + r.end};
            io::read_npy_block(file.bytes(), header, file_rows, c, out.block(r, c));
            file.release(header.offset(file_rows.begin, c.begin),
                         header.offset(file_rows.end - 1, c.end - 1) + header.element_bytes);
        }
    }
}

template <class T>
void convert(MatrixView<const double> A, MatrixView<T> out) {
    for (Index j = 0; j < out.cols; ++j) {
        std::transform(A.at(0, j), A.at(0, j) + A.rows, out.at(0, j), [](double x) { return static_cast<T>(x); });
    }
}

}  // namespace

const char* to_string(DType dtype) { return dtype == DType::F32 ? "f32" : "f64"; }

struct MatrixFile::Impl {
    explicit Impl(const std::string& p) : path(p), file(p), header(parse_header(file.bytes(), p)) {
        std::visit([this](const auto& h) { rows = h.rows, cols = h.cols; }, header);
    }

    const io::NpyHeader* npy() const { return std::get_if<io::NpyHeader>(&header); }

    Matrix<double> read_text() const {
        if (const auto* h = std::get_if<io::MatrixMarketHeader>(&header)) return io::read_matrix_market(*h, path);
        return io::read_csv(std::get<io::CsvHeader>(header), path);
    }

    std::string path;
    io::MappedFile file;
    Header header;
    Index rows = 0;
    Index cols = 0;
    std::mutex mutex;                    // guards text
    std::optional<Matrix<double>> text;  // of a format that does not stream, once rows were asked for
};

MatrixFile::MatrixFile(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
MatrixFile::MatrixFile(MatrixFile&&) noexcept = default;
MatrixFile& MatrixFile::operator=(MatrixFile&&) noexcept = default;
MatrixFile::~MatrixFile() = default;

Index MatrixFile::rows() const { return impl_->rows; }
Index MatrixFile::cols() const { return impl_->cols; }
const std::string& MatrixFile::path() const { return impl_->path; }
bool MatrixFile::streams() const { return impl_->npy() != nullptr; }

DType MatrixFile::dtype() const {
    return impl_->npy() != nullptr && impl_->npy()->type == io::NpyType::F4 ? DType::F32 : DType::F64;
}

template <class T>
void MatrixFile::read_rows(Range rows, MatrixView<T> out) const {
    if (rows.begin < 0 || rows.end < rows.begin || rows.end > impl_->rows) {
        throw InvalidArgument(
            fmt::format("rows [{}, {}) are not in the {} rows of {}", rows.begin, rows.end, impl_->rows, impl_->path));
    }
    if (out.rows != rows.size() || out.cols != impl_->cols || out.ld < std::max<Index>(1, out.rows)) {
        throw InvalidArgument(fmt::format("out is {} x {} with ld {} where {} x {} rows of {} are read", out.rows,
                                          out.cols, out.ld, rows.size(), impl_->cols, impl_->path));
    }
    if (const io::NpyHeader* header = impl_->npy()) {
        read_npy_rows(impl_->file, *header, rows, out);
        return;
    }
    const std::lock_guard lock(impl_->mutex);
    if (!impl_->text) impl_->text = impl_->read_text();
    convert<T>(std::as_const(*impl_->text).view().row_block(rows), out);
}

template <class T>
Matrix<T> MatrixFile::read() const {
    if constexpr (std::is_same_v<T, double>) {
        if (!streams()) {
            const std::lock_guard lock(impl_->mutex);
            if (!impl_->text) return impl_->read_text();
        }
    }
    Matrix<T> A(impl_->rows, impl_->cols);
    read_rows<T>({0, impl_->rows}, A.view());
    return A;
}

template void MatrixFile::read_rows<float>(Range, MatrixView<float>) const;
template void MatrixFile::read_rows<double>(Range, MatrixView<double>) const;
template Matrix<float> MatrixFile::read<float>() const;
template Matrix<double> MatrixFile::read<double>() const;

}  // namespace quoin
