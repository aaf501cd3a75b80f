#pragma once

// The ranks of a call, as Python gives them.

#include "arrays.hpp"

namespace quoin::python {

/// The ranks of a Python object with `send(data, to, note)` and `receive(data, source)`, which returns the note; data is a
/// memoryview of bytes. Called without the GIL, made and destroyed with it.
class PythonCommunicator final : public Communicator {
public:
    PythonCommunicator(nb::object engine, int rank, int size) : Communicator(rank, size), engine_(std::move(engine)) {}

private:
    static nb::object memory(void* data, Index bytes, int flags) {
        static char nothing;
        return nb::steal(PyMemoryView_FromMemory(bytes > 0 ? static_cast<char*>(data) : &nothing, bytes, flags));
    }
    /// What Python raises cannot cross the ranks as it is.
    template <class F>
    static auto call(F&& f) {
        const nb::gil_scoped_acquire acquired;
        try {
            return f();
        } catch (const nb::python_error& e) {
            throw Error(ErrorCode::CommunicationFailure, e.what());
        }
    }

    void send_bytes(const void* data, Index bytes, int to, int note) override {
        call([&] {
            engine_.attr("send")(memory(const_cast<void*>(data), note == 0 ? bytes : 0, PyBUF_READ), to, note);
        });
    }
    int receive_bytes(void* data, Index bytes, int from) override {
        return call([&] { return nb::cast<int>(engine_.attr("receive")(memory(data, bytes, PyBUF_WRITE), from)); });
    }

    nb::object engine_;
};

/// The ranks of one call on D: the engine, this rank, their number, and what connects their GPUs, None on a host.
template <class D>
class RanksOfCall {
public:
    explicit RanksOfCall(const nb::tuple& ranks)
        : control_(ranks[0], nb::cast<int>(ranks[1]), nb::cast<int>(ranks[2])) {}

    /// For messages of the host's memory.
    Communicator& control() { return control_; }
    /// For messages of D's memory. Called by the thread that computes.
    Communicator& all() { return control_; }
    /// At the end of the work of the call.
    void finish(Context<D>&) {}

private:
    PythonCommunicator control_;
};

/// A as a column-major view. A rank without the memory for the copy fails on all ranks, which wait for it in their call.
template <class T, class D>
class RowsOfRank {
public:
    RowsOfRank(Context<D>& ctx, Communicator& control, const StridedMatrix<T, D>& A) {
        try {
            rows_.emplace(ctx, A);
        } catch (const std::exception& failure) {
            Context<Host> host(1);
            fail_on_all_ranks(host, control, failure.what());
        }
    }
    MatrixView<const T, D> view() const { return rows_->view; }

private:
    std::optional<ColumnMajor<T, D>> rows_;
};

}  // namespace quoin::python
