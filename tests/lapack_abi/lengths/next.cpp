// The LAPACK and ScaLAPACK that the library under test would pass calls on to: every name is there, computes nothing
// and counts its calls.

int next_calls = 0;

#define QUOIN_STUB(name) \
    extern "C" void name() { ++next_calls; }
#ifdef QUOIN_TEST_MPI
#define QUOIN_STUB_ALL(name) QUOIN_STUB(ps##name##_) QUOIN_STUB(pd##name##_)
QUOIN_STUB_ALL(geqrf)
QUOIN_STUB_ALL(geqpf)
QUOIN_STUB_ALL(orgqr)
QUOIN_STUB_ALL(ormqr)
QUOIN_STUB_ALL(gels)

#include <mpi.h>

// The BLACS of one process.
extern "C" void Cblacs_gridinfo(int, int* rows, int* cols, int* row, int* col) {
    *rows = *cols = 1;
    *row = *col = 0;
}
extern "C" void Cblacs_get(int, int, int* value) { *value = 0; }
extern "C" MPI_Comm Cblacs2sys_handle(int) { return MPI_COMM_SELF; }
#else
#define QUOIN_STUB_ALL(name)                                                            \
    QUOIN_STUB(s##name##_)                                                              \
    QUOIN_STUB(d##name##_)                                                              \
    QUOIN_STUB(s##name##_64_)                                                           \
    QUOIN_STUB(d##name##_64_) QUOIN_STUB(scipy_s##name##_) QUOIN_STUB(scipy_d##name##_) \
        QUOIN_STUB(scipy_s##name##_64_) QUOIN_STUB(scipy_d##name##_64_)
QUOIN_STUB_ALL(geqrf)
QUOIN_STUB_ALL(geqr2)
QUOIN_STUB_ALL(orgqr)
QUOIN_STUB_ALL(ormqr)
QUOIN_STUB_ALL(geqrt)
QUOIN_STUB_ALL(geqrt3)
QUOIN_STUB_ALL(gemqrt)
QUOIN_STUB_ALL(tpqrt)
QUOIN_STUB_ALL(tpmqrt)
QUOIN_STUB_ALL(latsqr)
QUOIN_STUB_ALL(lamtsqr)
QUOIN_STUB_ALL(orgtsqr)
QUOIN_STUB_ALL(orgtsqr_row)
QUOIN_STUB_ALL(orhr_col)
QUOIN_STUB_ALL(geqr)
QUOIN_STUB_ALL(gemqr)
QUOIN_STUB_ALL(gels)
QUOIN_STUB_ALL(gelst)
QUOIN_STUB_ALL(getsls)
QUOIN_STUB_ALL(geqp3)
QUOIN_STUB_ALL(gelqf)
QUOIN_STUB_ALL(gelq2)
QUOIN_STUB_ALL(orglq)
QUOIN_STUB_ALL(ormlq)
QUOIN_STUB_ALL(geqp3rk)
QUOIN_STUB_ALL(gelsy)
QUOIN_STUB_ALL(tzrzf)
QUOIN_STUB_ALL(ormrz)
#endif
