#pragma once

#include <omp.h>

namespace quoin::test {

/// Sets what OMP_NUM_THREADS would set, until the end of the scope: the number of threads that a BLAS outside Quoin
/// takes.
class OmpThreads {
public:
    explicit OmpThreads(int threads) { omp_set_num_threads(threads); }
    OmpThreads(const OmpThreads&) = delete;
    ~OmpThreads() { omp_set_num_threads(before_); }

private:
    int before_ = omp_get_max_threads();
};

}  // namespace quoin::test
