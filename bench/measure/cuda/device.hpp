#pragma once

#include <string>

#include "cuda/runtime/device.hpp"

namespace quoin::bench {

/// Seconds from an idle stream to the end of what `run()` does there, its waits for the device included. Waits.
template <class F>
double seconds_of(Context<Cuda>& ctx, F&& run) {
    ctx.wait();
    WorkTimer<Cuda> timer(ctx);
    run();
    timer.stop();
    return timer.seconds();
}

/// "NVIDIA H100 80GB HBM3, 132 multiprocessors, CUDA 13.0, cuBLAS 13.1.0, cuSOLVER 12.0.4"
std::string describe_device();

/// Returns the PCI address of the current device: "0000:3b:00.0".
std::string pci_bus_id();

/// Bytes read and written a second by a large copy on the device. Waits.
double measure_copy(Context<Cuda>& ctx);

/// flop/s of cuBLAS's gemm in T, 8192³. Waits.
template <class T>
double measure_gemm(Context<Cuda>& ctx);

}  // namespace quoin::bench
