// The front of the readers: recognises the format of a file, and reads its matrix or some of its rows.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <mutex>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "io/csv.hpp"
#include "io/gzip.hpp"
#include "io/mapped_file.hpp"
#include "io/matrix_market.hpp"
#include "io/npy_header.hpp"
#include "io/npy_reader.hpp"
#include "io/pipe.hpp"
#include "io/zip.hpp"
#include "quoin/error.hpp"
#include "quoin/io.hpp"

namespace quoin {
namespace {

using Header = std::variant<io::NpyHeader, io::MatrixMarketHeader, io::CsvHeader>;

/// Whether `path` ends with `suffix`, which is in lower case; the path may be in either case.
bool has_suffix(std::string_view path, std::string_view suffix) {
    return path.size() >= suffix.size() &&
           std::equal(suffix.begin(), suffix.end(), path.end() - static_cast<Index>(suffix.size()),
                      [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
}

/// Throws for files of other programs, and says how to convert them.
void refuse_foreign(std::string_view file, const std::string& path) {
    const auto refuse = [&](const char* kind, const char* read) {
        throw UnreadableFile(
            path, fmt::format("is {}, which Quoin does not read; in Python, numpy.save('A.npy', {}) makes an "
                              ".npy file of it",
                              kind, fmt::format(fmt::runtime(read), path)));
    };
    constexpr std::string_view hdf5_magic = "\x89HDF\r\n\x1a\n";
    constexpr std::size_t userblock = 512;  // of MATLAB 7.3; HDF5 follows it
    if (file.starts_with(hdf5_magic) || file.substr(std::min(userblock, file.size())).starts_with(hdf5_magic))
        refuse("an HDF5 file (.h5, or .mat of MATLAB 7.3)", "h5py.File('{}')['NAME'][()]");
    if (file.starts_with("MATLAB 5.0 MAT-file")) refuse("a MATLAB file", "scipy.io.loadmat('{}')['NAME']");
    if (file.starts_with("PAR1")) refuse("a Parquet file", "pandas.read_parquet('{}').to_numpy()");
}

/// Parses the header of `file`, whose format its content or its name determines.
Header parse_header(std::string_view file, const std::string& name, const std::string& path,
                    const MatrixFileOptions& options) {
    refuse_foreign(file, path);
    const bool npy = file.starts_with(io::npy_magic) || has_suffix(name, ".npy");
    const bool matrix_market = io::is_matrix_market(file) || has_suffix(name, ".mtx");
    if ((npy || matrix_market) && !options.columns.empty())
        throw UnreadableFile(path, "is no table in text: --columns chooses columns of CSV only");
    if (npy) return io::parse_npy_header(file, path);
    if (matrix_market) return io::parse_matrix_market_header(file, path);
    constexpr std::size_t probe = 4096;
    if (file.substr(0, probe).find('\0') != file.npos) {
        throw UnreadableFile(path, "is neither .npy nor Matrix Market nor text");
    }
    return io::parse_csv_header(file, path, options);
}

/// "data.npz:A" is the array A of the file data.npz.
std::pair<std::string, std::string> split_array_name(const std::string& path) {
    constexpr std::string_view suffix = ".npz";
    const std::size_t at = path.rfind(".npz:");
    if (at == path.npos) return {path, ""};
    return {path.substr(0, at + suffix.size()), path.substr(at + suffix.size() + 1)};
}

/// Returns the member of an .npz that holds the array `name`, or the only member for "".
io::ZipMember find_array(std::string_view file, const std::string& name, const std::string& path) {
    constexpr std::string_view suffix = ".npy";
    std::vector<io::ZipMember> arrays = io::zip_members(file, path);
    std::erase_if(arrays, [&](const io::ZipMember& member) { return !member.name.ends_with(suffix); });
    if (arrays.empty()) throw UnreadableFile(path, "is a ZIP archive without an .npy array in it");
    std::string names;
    for (io::ZipMember& array : arrays) {
        array.name.resize(array.name.size() - suffix.size());
        if (name == array.name || (name.empty() && arrays.size() == 1)) return array;
        names += (names.empty() ? "" : ", ") + array.name;
    }
    if (name.empty()) {
        throw UnreadableFile(path, fmt::format("has {} arrays ({}): write which, as in {}:{}", arrays.size(), names,
                                               path, arrays[0].name));
    }
    throw UnreadableFile(path, fmt::format("has no array {}; it has {}", name, names));
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

struct MatrixFile::Impl {
    Impl(const std::string& given, const MatrixFileOptions& options) {
        const auto most = static_cast<std::size_t>(options.max_unpacked_bytes);
        const auto [file_path, array] = split_array_name(given);
        path = given == "-" ? "standard input" : given;
        std::string_view content;
        if (std::optional<std::string> piped = io::read_pipe(file_path, most)) {
            unpacked = std::move(*piped);
            content = unpacked;
        } else {
            file.emplace(file_path);
            content = file->bytes();
        }
        std::string name = path;  // of the unpacked file
        if (io::is_gzip(content)) {
            unpacked = io::gunzip(content, most, path);
            content = unpacked;
            if (has_suffix(path, ".gz")) name.resize(path.size() - 3);
        } else if (io::is_zip(content)) {
            const io::ZipMember member = find_array(content, array, file_path == "-" ? path : file_path);
            name = member.name + ".npy";
            std::string inflated;
            content = io::zip_content(member, inflated, most, path);
            if (member.deflated) {
                unpacked = std::move(inflated);
                content = unpacked;
            }
        } else if (!array.empty()) {
            throw UnreadableFile(file_path, "is not an .npz file");
        }
        bytes = content;
        header = parse_header(bytes, name, path, options);
        std::visit([this](const auto& h) { rows = h.rows, cols = h.cols; }, header);
    }

    Impl(const MatrixFile& all, std::vector<Index> chosen)
        : path(all.path()), whole(&all), columns(std::move(chosen)), rows(all.rows()), cols(std::ssize(columns)) {
        for (const Index j : columns)
            if (j < 0 || j >= all.cols())
                throw InvalidArgument(fmt::format("{}: has {} columns, and no column {}", path, all.cols(), j));
    }

    /// Reads rows of the chosen columns in blocks of about 1 MiB of the whole matrix.
    template <class T>
    void read_chosen(Range range, MatrixView<T> out) const {
        const Index block = std::max<Index>(1, (Index{1} << 17) / whole->cols());
        Matrix<T> all(std::min(block, range.size()), whole->cols());
        for (Index i = range.begin; i < range.end; i += block) {
            const Range part{i, std::min(range.end, i + block)};
            const MatrixView<T> read = all.view().row_block({0, part.size()});
            whole->read_rows<T>(part, read);
            for (Index j = 0; j < cols; ++j)
                std::copy_n(read.at(0, columns[j]), part.size(), out.at(i - range.begin, j));
        }
    }

    bool streams() const {
        return whole ? whole->streams() : npy() != nullptr && file && bytes.data() == file->bytes().data();
    }
    const io::NpyHeader* npy() const { return std::get_if<io::NpyHeader>(&header); }
    const io::CsvHeader* csv() const { return std::get_if<io::CsvHeader>(&header); }

    Matrix<double> read_text() const {
        if (const auto* h = std::get_if<io::MatrixMarketHeader>(&header)) return io::read_matrix_market(*h, path);
        return io::read_csv(*csv(), path);
    }

    std::string path;
    const MatrixFile* whole = nullptr;  // of a view of `columns`, which has no file
    std::vector<Index> columns;
    std::optional<io::MappedFile> file;
    std::string unpacked;    // if the matrix is compressed or came through a pipe
    std::string_view bytes;  // of the matrix's format, in one of these two
    Header header;
    Index rows = 0;
    Index cols = 0;
    std::mutex mutex;                    // guards text
    std::optional<Matrix<double>> text;  // of a text format, once rows were read
};

MatrixFile::MatrixFile(const std::string& path, const MatrixFileOptions& options)
    : impl_(detail::own<Impl>(path, options)) {}
MatrixFile::MatrixFile(const MatrixFile& whole, std::vector<Index> columns)
    : impl_(detail::own<Impl>(whole, std::move(columns))) {}
Index MatrixFile::rows() const { return impl_->rows; }
Index MatrixFile::cols() const { return impl_->cols; }
const std::string& MatrixFile::path() const { return impl_->path; }
bool MatrixFile::streams() const { return impl_->streams(); }

Index MatrixFile::column_in_file(Index j) const { return impl_->whole ? impl_->columns[j] : j; }

std::vector<std::string> MatrixFile::column_names() const {
    if (impl_->whole) {
        const std::vector<std::string> all = impl_->whole->column_names();
        std::vector<std::string> names;
        for (const Index j : impl_->columns)
            if (!all.empty()) names.push_back(all[j]);
        return names;
    }
    return impl_->csv() ? impl_->csv()->names : std::vector<std::string>();
}
std::string MatrixFile::remark() const { return impl_->csv() ? impl_->csv()->remark : ""; }

ScalarKind MatrixFile::dtype() const {
    if (impl_->whole) return impl_->whole->dtype();
    return impl_->npy() != nullptr && impl_->npy()->type == io::NpyType::F4 ? ScalarKind::F32 : ScalarKind::F64;
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
    if (impl_->whole) return impl_->read_chosen<T>(rows, out);
    if (const io::NpyHeader* header = impl_->npy()) {
        if (impl_->streams()) return read_npy_rows(*impl_->file, *header, rows, out);
        return io::read_npy_block(impl_->bytes, *header, rows, {0, impl_->cols}, out);
    }
    const std::lock_guard lock(impl_->mutex);
    if (!impl_->text) impl_->text = impl_->read_text();
    convert<T>(std::as_const(*impl_->text).view().row_block(rows), out);
}

template <class T>
Matrix<T> MatrixFile::read() const {
    if constexpr (std::is_same_v<T, double>) {
        if (!impl_->npy() && !impl_->whole) {
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
