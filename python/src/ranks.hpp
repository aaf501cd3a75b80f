#pragma once

// The ranks of a call, as Python gives them.

#include <nanobind/stl/string.h>

#include <string>

#include "arrays.hpp"

namespace quoin::python {

/// Ranks between which a Python object carries messages, by `send(data, to, note)` and `receive(data, source)`, which
/// returns the note. `data` is a memoryview of bytes. It is called without the GIL, but made and destroyed with it.
class PythonCommunicator final : public Communicator {
public:
    PythonCommunicator(nb::object engine, int rank, int size) : Communicator(rank, size), engine_(std::move(engine)) {}

private:
    static nb::object memory(void* data, Index bytes, int flags) {
        static char nothing;
        return nb::steal(PyMemoryView_FromMemory(bytes > 0 ? static_cast<char*>(data) : &nothing, bytes, flags));
    }
    /// Returns the result of the engine's `method` for a message to or from rank `other`. Throws an exception that it
    /// raises as a CommunicationFailure of one line, since other ranks cannot get a Python exception.
    template <class... Arguments>
    nb::object call(const char* method, int other, const Arguments&... arguments) {
        try {
            return call_python(engine_.attr(method), nb::make_tuple(arguments...));
        } catch (const nb::python_error& e) {
            if (e.matches(PyExc_KeyboardInterrupt)) throw Interrupted();
            const auto line = nb::module_::import_("quoin._errors").attr("in_a_line")(e.value());
            fail(method, other, " raised " + nb::cast<std::string>(line));
        }
    }
    [[noreturn]] static void fail(const std::string& method, int other, const std::string& why) {
        throw Error(ErrorCode::CommunicationFailure,
                    method + (method == "send" ? " to rank " : " from rank ") + std::to_string(other) + why);
    }

    void send_bytes(const void* data, Index bytes, int to, int note) override {
        with_gil(
            [&] { call("send", to, memory(const_cast<void*>(data), note == 0 ? bytes : 0, PyBUF_READ), to, note); });
    }
    int receive_bytes(void* data, Index bytes, int from) override {
        return with_gil([&] {
            const nb::object note = call("receive", from, memory(data, bytes, PyBUF_WRITE), from);
            int number = 0;
            if (!nb::try_cast(note, number)) {
                fail("receive", from,
                     " must return the note, an integer, and returned " + nb::cast<std::string>(nb::repr(note)));
            }
            return number;
        });
    }

    nb::object engine_;
};

/// The ranks of one call on D: the engine, this rank, the number of ranks, and the connection of their GPUs (None on a
/// host).
template <class D>
class RanksOfCall {
public:
    explicit RanksOfCall(const nb::tuple& ranks)
        : control_(ranks[0], nb::cast<int>(ranks[1]), nb::cast<int>(ranks[2])) {}

    /// Returns the communicator for messages in the host's memory.
    Communicator& control() { return control_; }
    /// Returns the communicator for messages in D's memory. The thread that computes calls it.
    Communicator& all() { return control_; }
    /// Ends the work of the call.
    void finish(Context<D>&) {}

private:
    PythonCommunicator control_;
};

/// A as a column-major view. If a rank has no memory for the copy, all ranks fail, since they wait for that rank in
/// their call.
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
