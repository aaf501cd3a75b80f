#pragma once

#include "gallery.hpp"
#include "io_files.hpp"
#include "quoin/file_qr.hpp"

namespace quoin::test {

constexpr double headers = 256;  // of R.npy and Q.npy

/// A.npy, and a folder in which R.npy and Q.npy appear, for tests on every device.
template <class T>
class FileQRFolder : public IoTest {
protected:
    void SetUp() override {
        // in memory, where it costs nothing to flush; tests of the program are on a disk
        if (fs::exists("/dev/shm")) setenv("TMPDIR", "/dev/shm", 0);
        IoTest::SetUp();
        fs::create_directory(path("out"));
    }

    void save(MatrixView<const T> A, bool fortran_order = false) {
        if (fortran_order) return write_npy<T>(path("A.npy"), A);
        NpyRowWriter<T> writer(path("A.npy"), A.rows, A.cols);
        writer.write_rows(0, A);
        writer.commit();
    }
    Matrix<T> q() { return MatrixFile(path("out/Q.npy")).read<T>(); }
    Matrix<T> r() { return MatrixFile(path("out/R.npy")).read<T>(); }
    std::string outputs() { return file_bytes("out/Q.npy") + file_bytes("out/R.npy"); }
};

}  // namespace quoin::test
