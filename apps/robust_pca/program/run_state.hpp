#pragma once

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "io/atomic_file.hpp"
#include "io/mapped_file.hpp"
#include "quoin/error.hpp"
#include "quoin/matrix.hpp"

namespace quoin::cli {

// One function template that calls state(x) for each x of a run writes the run's state with a StateWriter and sets it
// with a StateReader. A file has the bytes in the machine's order.

/// Writes a state to a file, which appears complete or not at all. Throws UnwritableFile.
class StateWriter {
public:
    explicit StateWriter(const std::string& path) : file_(path) {}
    void commit() { file_.commit(); }

    template <class T>
    void operator()(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        write(&value, sizeof value);
    }
    template <class T>
    void operator()(const std::vector<T>& values) {
        static_assert(std::is_trivially_copyable_v<T>);
        (*this)(values.size());
        write(values.data(), values.size() * sizeof(T));
    }
    template <class T>
    void operator()(MatrixView<const T> A) {
        (*this)(A.rows);
        (*this)(A.cols);
        for (Index j = 0; j < A.cols; ++j) write(A.at(0, j), static_cast<std::size_t>(A.rows) * sizeof(T));
    }
    template <class T>
    void operator()(const Matrix<T>& A) {
        (*this)(A.view());
    }

private:
    void write(const void* data, std::size_t bytes) {
        file_.write_at(at_, data, bytes);
        at_ += static_cast<Index>(bytes);
    }
    io::AtomicFile file_;
    Index at_ = 0;
};

/// Reads it. Throws UnreadableFile.
class StateReader {
public:
    explicit StateReader(const std::string& path) : path_(path), file_(path) {}

    template <class T>
    void operator()(T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        read(&value, sizeof value);
    }
    template <class T>
    void operator()(std::vector<T>& values) {
        std::size_t count = 0;
        (*this)(count);
        require(count, sizeof(T));
        values.resize(count);
        read(values.data(), count * sizeof(T));
    }
    template <class T>
    void operator()(Matrix<T>& A) {
        Index rows = 0, cols = 0;
        (*this)(rows);
        (*this)(cols);
        A = Matrix<T>(rows, cols);
        read(A.data(), static_cast<std::size_t>(rows * cols) * sizeof(T));
    }

private:
    void require(std::size_t count, std::size_t size) const {
        if (count > (file_.bytes().size() - at_) / size) throw UnreadableFile(path_, "is a state that was cut off");
    }
    void read(void* to, std::size_t bytes) {
        require(bytes, 1);
        if (bytes > 0) std::memcpy(to, file_.bytes().data() + at_, bytes);
        at_ += bytes;
    }
    std::string path_;
    io::MappedFile file_;
    std::size_t at_ = 0;
};

}  // namespace quoin::cli
