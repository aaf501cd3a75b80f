#include "cuda.hpp"

#include <nanobind/stl/string.h>

#include <vector>

#include "bindings.hpp"
#include "gpu_ranks.hpp"

#ifdef QUOIN_CUDA_PACKAGES
extern "C" {
[[gnu::weak]] int cublasCreate_v2(void*);
[[gnu::weak]] int cusolverDnCreate(void*);
}
#endif

namespace quoin::python {

namespace {

/// Throws DeviceFailure unless quoin/_libraries.py has found the libraries that a wheel is not linked with.
void require_libraries() {
#ifdef QUOIN_CUDA_PACKAGES
    const char* missing = !cublasCreate_v2 ? "cuBLAS" : !cusolverDnCreate ? "cuSOLVER" : nullptr;
    if (missing) {
        throw DeviceFailure(std::string(missing) +
                            " was not found: install CUDA's toolkit, or pip install" QUOIN_CUDA_PACKAGES);
    }
#endif
}

}  // namespace

CudaWorker::CudaWorker(int device, bool on_default_stream) : device_(device), on_default_stream_(on_default_stream) {
    require_libraries();
    const CurrentDevice current(device);
    ctx_.emplace(on_default_stream ? reinterpret_cast<CudaStream>(CudaCall::default_stream) : nullptr);
}

CudaWorker::~CudaWorker() {
    try {
        const CurrentDevice current(device_);
        ctx_.reset();
    } catch (const Error&) {
        // the driver has ended, and the context with it
    }
}

std::shared_ptr<CudaWorker> worker_of_thread(const CudaCall& call) {
    static thread_local std::vector<std::shared_ptr<CudaWorker>> workers;
    for (const auto& worker : workers) {
        if (worker->device() == call.device && worker->on_default_stream() == call.on_default_stream() &&
            !worker->used_by(std::this_thread::get_id()))
            return worker;
    }
    const GilReleased released;
    try {
        workers.push_back(std::make_shared<CudaWorker>(call.device, call.on_default_stream()));
    } catch (const DeviceFailure& failure) {
        throw DeviceFailure("GPU " + std::to_string(call.device) + " cannot be used: " + failure.what());
    }
    return workers.back();
}

void bind_cuda(nb::module_& module) {
    using namespace nb::literals;
    nb::module_ cuda = module.def_submodule("cuda");
    nb::class_<CudaCall>(cuda, "Call")
        .def(
            "__init__",
            [](CudaCall* self, int device, std::uintptr_t stream, bool synchronise, nb::object empty) {
                new (self) CudaCall{device, stream, synchronise, std::move(empty)};
            },
            "device"_a, "stream"_a, "synchronise"_a, "empty"_a.none());
    bind_gpu_ranks(cuda);
    cuda.def("require", [](int device) { worker_of_thread({device, 0, false, nb::none()}); });
    cuda.def("gpus", [] {
        GpuSurvey survey;
        {
            const GilReleased released;
            survey = survey_gpus();
        }
        nb::list gpus;
        for (const Gpu& gpu : survey.gpus) gpus.append(gpu.problem.empty() ? gpu.name : gpu.name + ": " + gpu.problem);
        return nb::make_tuple(gpus, survey.driver, survey.problem);
    });
}

}  // namespace quoin::python
