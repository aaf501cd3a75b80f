// The user's table of measured cases for a GPU (`quoin tune --device cuda`).

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "cuda/runtime/error.hpp"
#include "cuda/tuning.hpp"
#include "io/tuning_file.hpp"

namespace quoin {
namespace {

io::TunedDevice this_gpu() {
    int device = 0;
    cudaDeviceProp properties;
    QUOIN_CUDA_CHECK(cudaGetDevice(&device));
    QUOIN_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
    const cuda::Kernels kernels = cuda::kernels_here();
    const std::string level = !kernels.tuned ? "plain" : kernels.clusters ? "sm_90" : "sm_80";
    return {properties.name,
            fmt::format("{} {} KB{}", level, kernels.shared_bytes >> 10, kernels.fast_f64 ? "" : " slow f64")};
}

const io::TableInUse& table_here() {
    static std::mutex mutex;
    static std::map<int, io::TableInUse> known;
    static const io::TableInUse none;
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess) {
        cudaGetLastError();
        return none;
    }
    const std::lock_guard lock(mutex);
    const auto found = known.find(device);
    return found != known.end() ? found->second : known.emplace(device, io::read_table(this_gpu)).first->second;
}

}  // namespace

const TuningTable& Tuning<Cuda>::table_in_use() { return table_here().table; }

template <>
const TuningInUse& tuning_in_use<Cuda>() {
    return table_here().in_use;
}
template <>
std::string tuning_path<Cuda>() {
    return io::tuning_path(this_gpu());
}
template <>
TuningTable built_in_tuning(const Context<Cuda>&) {
    return io::empty_tuning(this_gpu());
}

}  // namespace quoin
