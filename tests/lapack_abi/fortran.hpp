#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

/// LAPACK's Fortran routines as a caller sees them, taken by name from one shared library.
namespace quoin::test::fortran {

template <class T, class Int>
struct Routines {
    using Geqrf = void(const Int*, const Int*, T*, const Int*, T*, T*, const Int*, Int*);
    using Geqr2 = void(const Int*, const Int*, T*, const Int*, T*, T*, Int*);
    using Orgqr = void(const Int*, const Int*, const Int*, T*, const Int*, const T*, T*, const Int*, Int*);
    using Ormqr = void(const char*, const char*, const Int*, const Int*, const Int*, const T*, const Int*, const T*, T*,
                       const Int*, T*, const Int*, Int*, std::size_t, std::size_t);

    using Geqrt = void(const Int*, const Int*, const Int*, T*, const Int*, T*, const Int*, T*, Int*);
    using Geqrt3 = void(const Int*, const Int*, T*, const Int*, T*, const Int*, Int*);
    using Gemqrt = void(const char*, const char*, const Int*, const Int*, const Int*, const Int*, const T*, const Int*,
                        const T*, const Int*, T*, const Int*, T*, Int*, std::size_t, std::size_t);

    Geqrf* geqrf;
    Geqr2* geqr2;
    Orgqr* orgqr;
    Ormqr* ormqr;
    Geqrt* geqrt;
    Geqrt3* geqrt3;
    Gemqrt* gemqrt;

    explicit Routines(void* library)
        : geqrf(find<Geqrf>(library, "geqrf")),
          geqr2(find<Geqr2>(library, "geqr2")),
          orgqr(find<Orgqr>(library, "orgqr")),
          ormqr(find<Ormqr>(library, "ormqr")),
          geqrt(find<Geqrt>(library, "geqrt")),
          geqrt3(find<Geqrt3>(library, "geqrt3")),
          gemqrt(find<Gemqrt>(library, "gemqrt")) {}

private:
    template <class F>
    static F* find(void* library, const std::string& name) {
        const std::string symbol = (std::is_same_v<T, double> ? "d" : "s") + name + (sizeof(Int) == 8 ? "_64_" : "_");
        void* address = dlsym(library, symbol.c_str());
        EXPECT_NE(address, nullptr) << symbol << " is not exported";
        return reinterpret_cast<F*>(address);
    }
};

/// The library under test, which this program is linked with in front of its LAPACK.
inline void* quoin_library() { return dlopen(QUOIN_LAPACK_LIBRARY_FILE, RTLD_NOW | RTLD_NOLOAD); }
/// The LAPACK behind it.
inline void* system_library() { return dlopen(QUOIN_SYSTEM_LAPACK_FILE, RTLD_NOW | RTLD_LOCAL); }

/// What xerbla was last told, in this thread; this program's xerbla_ and xerbla_64_ return to their caller.
struct Complaint {
    std::string routine;
    long long argument = 0;
    bool operator==(const Complaint&) const = default;
};
Complaint take_complaint();

}  // namespace quoin::test::fortran
