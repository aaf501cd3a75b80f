// A data race between the threads of an OpenMP region, after synchronisation that is in order: the thread-sanitizer
// build must report the race, and only it.

#include <cstdio>
#include <vector>

int main() {
    const int n = 1000;
    std::vector<double> x(n, 1.0);
    double sum = 0, racing_sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < n; ++i) sum += x[i];
#pragma omp parallel for
    for (int i = 0; i < n; ++i) racing_sum += x[i];
    std::printf("%g %g\n", sum, racing_sum);
}
