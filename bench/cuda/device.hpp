#pragma once

#include <memory>
#include <string>

#include "quoin/cuda.hpp"

namespace quoin::bench {

/// Times work on a context's stream with events.
class EventTimer {
public:
    EventTimer();
    ~EventTimer();
    EventTimer(const EventTimer&) = delete;
    EventTimer& operator=(const EventTimer&) = delete;

    /// Seconds from an idle stream to the end of what `run()` does there, its waits for the device included. Waits.
    template <class F>
    double seconds(Context<Cuda>& ctx, F&& run) {
        ctx.wait();
        start(ctx);
        run();
        return stop(ctx);
    }

private:
    void start(Context<Cuda>& ctx);
    double stop(Context<Cuda>& ctx);
    struct Events;
    std::unique_ptr<Events> events_;
};

/// "NVIDIA H100 80GB HBM3, 132 multiprocessors, CUDA 13.0, cuBLAS 13.1.0, cuSOLVER 12.0.4"
std::string describe_device();

/// Of the current device: "0000:3b:00.0".
std::string pci_bus_id();

/// Bytes read and written a second by a large copy on the device. Waits.
double measure_copy(Context<Cuda>& ctx);

/// flop/s of cuBLAS's gemm in T, 8192³. Waits.
template <class T>
double measure_gemm(Context<Cuda>& ctx);

}  // namespace quoin::bench
