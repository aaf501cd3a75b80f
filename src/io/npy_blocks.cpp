// Blocks of .npy files in few large transfers, with the storage order changed on the way.

#include "io/npy_blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <vector>

#include "io/mapped_file.hpp"
#include "io/npy_reader.hpp"
#include "io/transpose.hpp"

namespace quoin::io {

namespace {

/// Bytes of a piece. With the two pages that its ends may touch it fills one large page.
constexpr Index piece_bytes = PageMemory::large_page - 2 * BulkFile::alignment;

/// Threads that read, one piece at a time each: enough for 4 MiB in flight, for the disk's rate (four of the largest
/// pieces), but each must be worth a thread's start.
struct Readers {
    Index threads, staging;  // staging: bytes of each thread
};
Readers readers_for(Index piece, Index count) {
    constexpr Index large = PageMemory::large_page, worth_a_thread = Index{1} << 18;
    const Index pages = BulkFile::aligned(piece) + 2 * BulkFile::alignment;
    const Index threads = std::clamp<Index>(2 * large / pages, 4, 32);
    return {std::clamp<Index>(count * piece / worth_a_thread, 1, std::min(threads, count)),
            pages <= large / 4 ? pages : (pages + large - 1) / large * large};
}

}  // namespace

template <class T>
NpyBlockReader<T>::NpyBlockReader(const std::string& path, ByteCounters& counters, PageMemory& staging)
    : NpyBlockReader(path, parse_npy_header(MappedFile(path).bytes(), path), counters, staging) {}

template <class T>
void NpyBlockReader<T>::read(Range rows, Range cols, MatrixView<T> out) const {
    if (out.empty()) return;
    const Index e = static_cast<Index>(header_.element_bytes);
    const bool by_cols = header_.fortran_order || header_.cols == 1;
    const bool whole_rows = !by_cols && cols.size() == header_.cols;
    // a piece: some rows, part of a column, or whole columns that follow one another in the file
    const Index ni = by_cols ? std::min(rows.size(), piece_bytes / e)
                             : std::clamp<Index>(piece_bytes / (cols.size() * e), 1, rows.size());
    const Index nj = !by_cols             ? cols.size()
                     : ni == header_.rows ? std::clamp<Index>(piece_bytes / (ni * e), 1, cols.size())
                                          : 1;
    const Index down = (rows.size() + ni - 1) / ni, count = down * ((cols.size() + nj - 1) / nj);
    const Readers readers = readers_for(ni * nj * e, count);
    if (staging_.size() < readers.threads * readers.staging)
        staging_ = PageMemory(readers.threads * readers.staging, PageMemory::Pages::Large);
    std::atomic<Index> next{0};
    const auto work = [&](Index thread) {
        char* const pages = staging_.data() + thread * readers.staging;
        for (Index p; (p = next++) < count;) {
            const Index i = p % down * ni, j = p / down * nj;
            const Range r{i, std::min(rows.size(), i + ni)}, c{j, std::min(cols.size(), j + nj)};
            const Index offset = static_cast<Index>(header_.offset(rows.begin + r.begin, cols.begin + c.begin));
            const char* data = pages;
            if (by_cols || whole_rows) {
                data = file_.read_pages(offset, pages, r.size() * c.size() * e);
            } else {
                for (Index row = 0; row < r.size(); ++row)
                    file_.read(offset + row * header_.cols * e, pages + row * c.size() * e, c.size() * e);
            }
            NpyHeader piece = header_;
            piece.rows = r.size();
            piece.cols = c.size();
            piece.data_offset = 0;
            read_npy_block<T>({data, static_cast<std::size_t>(r.size() * c.size() * e)}, piece, {0, r.size()},
                              {0, c.size()}, out.block(r, c));
        }
    };
    std::vector<std::future<void>> others;
    for (Index t = 1; t < readers.threads; ++t) others.push_back(std::async(std::launch::async, work, t));
    work(0);
    for (auto& other : others) other.get();
}

template <class T>
NpyBlockWriter<T>::NpyBlockWriter(const std::string& path, bool fortran_order, Index rows, Index cols,
                                  ByteCounters& counters)
    : cols_(cols), file_(path, BulkFile::Access::Write, counters) {
    const std::string header = compose_npy_header<T>(fortran_order, fmt::format("({}, {})", rows, cols));
    data_offset_ = static_cast<Index>(header.size());
    if (file_.size() < data_offset_) file_.write(0, header.data(), data_offset_);
}

template <class T>
void NpyBlockWriter<T>::write_rows(Index first, MatrixView<const T> block) const {
    std::vector<T> buffer(std::max<std::size_t>(piece_bytes / sizeof(T), static_cast<std::size_t>(cols_)));
    in_c_order<T>(cols_, first, block, buffer, [&](Index element, const T* data, Index count) {
        file_.write(data_offset_ + element * Index{sizeof(T)}, data, count * Index{sizeof(T)});
    });
}

template <class T>
void NpyBlockWriter<T>::write_cols(Index first, MatrixView<const T> block) const {
    const Index column_bytes = block.rows * Index{sizeof(T)};
    const Index offset = data_offset_ + first * column_bytes;
    if (block.ld == block.rows) return file_.write(offset, block.data, block.cols * column_bytes);
    for (Index j = 0; j < block.cols; ++j) file_.write(offset + j * column_bytes, block.at(0, j), column_bytes);
}

template class NpyBlockReader<float>;
template class NpyBlockReader<double>;
template class NpyBlockWriter<float>;
template class NpyBlockWriter<double>;

}  // namespace quoin::io
