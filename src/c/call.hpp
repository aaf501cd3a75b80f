#pragma once

// Handles, errors, the choice of type and device, and views of the caller's matrices, for every function of quoin.h.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "quoin.h"
#include "quoin/context.hpp"
#include "quoin/error.hpp"
#include "quoin/scalar.hpp"
#ifdef QUOIN_HAVE_CUDA
#include "quoin/cuda.hpp"
#endif

namespace quoin::c {

#ifdef QUOIN_HAVE_CUDA
using AnyContext = std::variant<Context<Host>, Context<Cuda>>;
template <template <class, class> class Object>
using AnyObject = std::variant<Object<float, Host>, Object<double, Host>, Object<float, Cuda>, Object<double, Cuda>>;
/// Makes the GPU of a handle current.
struct OnDevice {
    explicit OnDevice(int device) {
        if (device >= 0) current_.emplace(device);
    }
    std::optional<CurrentDevice> current_;
};
#else
using AnyContext = std::variant<Context<Host>>;
template <template <class, class> class Object>
using AnyObject = std::variant<Object<float, Host>, Object<double, Host>>;
struct OnDevice {
    explicit OnDevice(int) {}
};
#endif

/// An object of any type on any device, and the number of the device.
template <template <class, class> class Object>
struct Handle {
    int device;
    AnyObject<Object> of;
};

}  // namespace quoin::c

struct quoin_context {
    int device;
    quoin::c::AnyContext of;
};

namespace quoin::c {

/// Stores the sentence of the exception that is being handled for `quoin_last_error`. Returns its status.
quoin_status failure() noexcept;

/// Runs the body of a function. No exception leaves it.
template <class Work>
quoin_status guarded(const Work& work) {
    try {
        work();
        return QUOIN_OK;
    } catch (...) {
        return failure();
    }
}

/// Returns *pointer. Throws InvalidArgument for null.
template <class Object>
Object& given(const char* name, Object* pointer) {
    if (!pointer) throw InvalidArgument(fmt::format("{} is null", name));
    return *pointer;
}

/// Deletes a handle on its device.
template <class Object>
void destroy(Object* handle) {
    guarded([&] {
        if (!handle) return;
        const OnDevice current(handle->device);
        delete handle;
    });
}

/// Returns `value` as an Enum of `count` enumerators. Throws InvalidArgument, which names the parameter.
template <class Enum>
Enum enumerator(const char* name, std::int32_t value, int count) {
    if (value < 0 || value >= count) {
        throw InvalidArgument(fmt::format("{} must be from 0 to {}, and is {}", name, count - 1, value));
    }
    return static_cast<Enum>(value);
}

/// Throws InvalidArgument unless `size` bytes are a struct `name` of `known` bytes or of an earlier version.
inline void require_size(const char* name, std::size_t size, std::size_t known) {
    if (size >= sizeof(size) && size <= known) return;
    throw InvalidArgument(fmt::format("{}.size is {}, and must be from {} to {} for this version of the library", name,
                                      size, sizeof(size), known));
}
/// Fills the fields of `to` that the caller's version of the struct has. Does nothing for null.
template <class Struct>
void answer(const char* name, Struct from, Struct* to) {
    if (!to) return;
    require_size(name, to->size, sizeof(Struct));
    from.size = to->size;
    std::memcpy(to, &from, to->size);
}

/// Calls work(Context<D>&, T()) for the context's device D and the type's T.
template <class Work>
void with_type(quoin_context* ctx, std::int32_t type, const Work& work) {
    const OnDevice current(given("the context", ctx).device);
    const auto on = [&](auto& context) {
        switch (type) {
            case QUOIN_TYPE_F32: return work(context, float());
            case QUOIN_TYPE_F64: return work(context, double());
        }
        throw InvalidArgument(fmt::format("the type must be 0 (f32) or 1 (f64), and is {}", type));
    };
    std::visit(on, ctx->of);
}

/// Calls `work` as `with_type` does, with the type of the matrix. Returns the status: no exception leaves it.
template <class Work>
quoin_status with_type_of(quoin_context* ctx, const char* name, const quoin_matrix* matrix, const Work& work) {
    return guarded([&] { with_type(ctx, given(name, matrix).type, work); });
}

/// The device of an object.
template <template <class, class> class Object, class T, class D>
D device_of(const Object<T, D>&);

/// Calls work(Context<D>&, Object<T, D>&) for the object of a handle. Returns the status: of InvalidArgument if the
/// context is on another device.
template <class Handle, class Work>
quoin_status with_object(quoin_context* ctx, const char* name, Handle* handle, const Work& work) {
    return guarded([&] {
        const int device = given("the context", ctx).device;
        if (given(name, handle).device != device)
            throw InvalidArgument(
                fmt::format("the context is on device {}, and {} on device {}", device, name, handle->device));
        const OnDevice current(device);
        const auto on = [&](auto& object) { work(std::get<Context<decltype(device_of(object))>>(ctx->of), object); };
        std::visit(on, handle->of);
    });
}

/// Returns a view of the caller's matrix. Throws InvalidArgument, which names it, for a matrix that cannot be.
template <class T, class D>
InputView<T, D> view(const char* name, const quoin_matrix* matrix) {
    const quoin_matrix& A = given(name, matrix);
    const auto refuse = [&](const std::string& why) { throw InvalidArgument(fmt::format("{} {}", name, why)); };
    if (A.type != static_cast<int>(scalar_kind<T>))
        refuse(fmt::format("has type {}, and the call is for {}", A.type, to_string(scalar_kind<T>)));
    if (A.order != QUOIN_COLUMN_MAJOR && A.order != QUOIN_ROW_MAJOR)
        refuse(fmt::format("has order {}, which is neither column-major (0) nor row-major (1)", A.order));
    if (A.rows < 0 || A.cols < 0) refuse(fmt::format("cannot have {} rows and {} columns", A.rows, A.cols));
    const Index least = std::max<Index>(1, A.order == QUOIN_ROW_MAJOR ? A.cols : A.rows);
    if (A.ld < least) refuse(fmt::format("has ld {}, which must be at least {}", A.ld, least));
    if (!A.data && A.rows > 0 && A.cols > 0) refuse("has no data");
    T* const data = static_cast<T*>(A.data);
    if (A.order == QUOIN_ROW_MAJOR) return RowMajorView<T, D>{data, A.rows, A.cols, A.ld};
    return MatrixView<T, D>(data, A.rows, A.cols, A.ld);
}

/// Views the memory of a matrix as a column-major one, to be written: A, or Aᵀ if it is row-major.
template <class T, class D>
MatrixView<T, D> writable(InputView<T, D> A) {
    const MatrixView<const T, D> stored = A.stored();
    return {const_cast<T*>(stored.data), stored.rows, stored.cols, stored.ld};
}

/// Returns a column-major view of A, of a copy in `memory` if A is row-major.
template <class T, class D>
MatrixView<const T, D> by_columns(Context<D>& ctx, InputView<T, D> A, Matrix<T, D>& memory) {
    if (!A.by_rows) return A.stored();
    memory = Matrix<T, D>(ctx, A.rows, A.cols);
    load<T, D>(ctx, A, memory.view());
    return memory.view();
}

/// Writes `from` to the caller's matrix. Throws InvalidArgument if the shapes differ.
template <class T, class D>
void put(Context<D>& ctx, const char* name, View<const T, D> from, InputView<T, D> to) {
    if (from.rows != to.rows || from.cols != to.cols) {
        throw InvalidArgument(
            fmt::format("{} is {} x {}, and its memory {} x {}", name, from.rows, from.cols, to.rows, to.cols));
    }
    to.by_rows ? transpose<T>(ctx, from, writable(to)) : copy<T>(ctx, from, writable(to));
}

/// The memory for a result: the caller's, or a matrix that `deliver` transposes into it.
template <class T, class D>
class Output {
public:
    Output(Context<D>& ctx, InputView<T, D> to) : to_(to) {
        if (to.by_rows) memory_ = Matrix<T, D>(ctx, to.rows, to.cols);
    }
    MatrixView<T, D> view() { return to_.by_rows ? memory_.view() : writable(to_); }
    void deliver(Context<D>& ctx) {
        if (to_.by_rows) transpose<T>(ctx, std::as_const(memory_).view(), writable(to_));
    }

private:
    InputView<T, D> to_;
    Matrix<T, D> memory_;
};

}  // namespace quoin::c
