#include "cuda.hpp"

#include <vector>

namespace quoin::python {

CudaWorker::CudaWorker(int device) : device_(device) {
    const CurrentDevice current(device);
    ctx_.emplace();
}

CudaWorker::~CudaWorker() {
    try {
        const CurrentDevice current(device_);
        ctx_.reset();
    } catch (const Error&) {
        // the driver is gone, and the context with it
    }
}

std::shared_ptr<CudaWorker> worker_of_thread(int device) {
    static thread_local std::vector<std::shared_ptr<CudaWorker>> workers;
    for (const auto& worker : workers) {
        if (worker->device() == device && !worker->used_by(std::this_thread::get_id())) return worker;
    }
    const nb::gil_scoped_release released;
    try {
        workers.push_back(std::make_shared<CudaWorker>(device));
    } catch (const DeviceFailure& failure) {
        throw DeviceFailure("GPU " + std::to_string(device) + " cannot be used: " + failure.what());
    }
    return workers.back();
}

}  // namespace quoin::python
