#include "gpu_ranks.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <array>
#include <bit>
#include <memory>
#include <span>

#ifdef QUOIN_HAVE_NCCL

// libnccl.so.2 is loaded when GPUs are connected for the first time. Quoin's NcclCommunicator is compiled into this
// module and calls the functions below, which call the library's functions.
namespace quoin::python {
namespace {

#define QUOIN_NCCL_FUNCTIONS(DO) \
    DO(ncclGetUniqueId)          \
    DO(ncclCommInitRank)         \
    DO(ncclCommDestroy)          \
    DO(ncclCommAbort)            \
    DO(ncclCommCount)            \
    DO(ncclCommUserRank) DO(ncclCommGetAsyncError) DO(ncclSend) DO(ncclRecv) DO(ncclGroupStart) DO(ncclGroupEnd)

struct Nccl {
#define QUOIN_DECLARE(name) decltype(&::name) name = nullptr;
    QUOIN_NCCL_FUNCTIONS(QUOIN_DECLARE)
    QUOIN_DECLARE(ncclGetErrorString)
    QUOIN_DECLARE(ncclGetLastError)
#undef QUOIN_DECLARE

    explicit Nccl(const std::string& library) {
        void* handle = library.empty() ? nullptr : dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!handle) {
            throw DeviceFailure(
                "NCCL, which connects the GPUs of several ranks, was not found: pip install " QUOIN_NCCL_PACKAGE
                ", or install the system's libnccl2");
        }
        const auto find = [&](auto& function, const char* name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
            if (!function) throw DeviceFailure(library + " is too old: it has no " + name);
        };
#define QUOIN_FIND(name) find(name, #name);
        QUOIN_NCCL_FUNCTIONS(QUOIN_FIND)
        QUOIN_FIND(ncclGetErrorString)
        QUOIN_FIND(ncclGetLastError)
#undef QUOIN_FIND
    }
};

/// Returns NCCL's functions. The first call that succeeds loads `library`; later calls ignore it.
const Nccl& nccl(const std::string& library = {}) {
    static const Nccl functions(library);
    return functions;
}

void check(ncclResult_t status, const char* operation) {
    if (status == ncclSuccess) return;
    throw Error(ErrorCode::CommunicationFailure, std::string(operation) + ": " + nccl().ncclGetErrorString(status) +
                                                     " (" + nccl().ncclGetLastError(nullptr) + ")");
}

}  // namespace
}  // namespace quoin::python

extern "C" {
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) { return quoin::python::nccl().ncclGetUniqueId(id); }
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
    return quoin::python::nccl().ncclCommInitRank(comm, ranks, id, rank);
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return quoin::python::nccl().ncclCommDestroy(comm); }
ncclResult_t ncclCommAbort(ncclComm_t comm) { return quoin::python::nccl().ncclCommAbort(comm); }
ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
    return quoin::python::nccl().ncclCommCount(comm, count);
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
    return quoin::python::nccl().ncclCommUserRank(comm, rank);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* status) {
    return quoin::python::nccl().ncclCommGetAsyncError(comm, status);
}
const char* ncclGetErrorString(ncclResult_t status) { return quoin::python::nccl().ncclGetErrorString(status); }
const char* ncclGetLastError(ncclComm_t comm) { return quoin::python::nccl().ncclGetLastError(comm); }
ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int to, ncclComm_t comm,
                      cudaStream_t stream) {
    return quoin::python::nccl().ncclSend(data, count, type, to, comm, stream);
}
ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int from, ncclComm_t comm,
                      cudaStream_t stream) {
    return quoin::python::nccl().ncclRecv(data, count, type, from, comm, stream);
}
ncclResult_t ncclGroupStart() { return quoin::python::nccl().ncclGroupStart(); }
ncclResult_t ncclGroupEnd() { return quoin::python::nccl().ncclGroupEnd(); }
}

#endif  // QUOIN_HAVE_NCCL

namespace quoin::python {
namespace {

/// Returns a number of at least 2 made of the bytes (FNV-1a). Different bytes give the same number with a chance of
/// 2^-62.
Index number_of(std::span<const unsigned char> bytes) {
    std::uint64_t hash = 14695981039346656037u;
    for (const unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211u;
    return static_cast<Index>(hash >> 2) + 2;
}

/// Returns a number that identifies the GPU, the same in every process that uses it.
Index number_of_gpu(int device) {
    cudaDeviceProp properties;
    const cudaError_t status = cudaGetDeviceProperties(&properties, device);
    if (status != cudaSuccess)
        throw DeviceFailure(std::string("cudaGetDeviceProperties: ") + cudaGetErrorString(status));
    std::array<unsigned char, sizeof properties.uuid.bytes> uuid;
    std::copy_n(reinterpret_cast<const unsigned char*>(properties.uuid.bytes), uuid.size(), uuid.begin());
    return number_of(uuid);
}

constexpr Index through_the_host = 1;

/// The threads that give NCCL's communicators back. It is never destroyed, as threads may outlive static objects.
struct Closing {
    std::mutex mutex;
    std::condition_variable one_less;
    int threads = 0;
};
Closing& closing() {
    static Closing& all = *new Closing;
    return all;
}
/// Waits at the end of the process for these threads, which still need the driver, but at most 5 seconds, as one may
/// never end.
void wait_for_closing() {
    const GilReleased released;
    std::unique_lock lock(closing().mutex);
    closing().one_less.wait_for(lock, std::chrono::seconds(5), [] { return closing().threads == 0; });
}

#ifdef QUOIN_HAVE_NCCL
std::shared_ptr<GpuLink> connect_by_nccl(Context<Host>& ctx, Communicator& control, int device,
                                         const std::string& library) {
    ncclUniqueId id{};
    agree_on_gpus(ctx, control, [&] {
        nccl(library);
        if (control.rank() == 0) check(ncclGetUniqueId(&id), "ncclGetUniqueId");
        return 0;
    });
    std::array<Index, sizeof id / sizeof(Index)> words = std::bit_cast<decltype(words)>(id);
    control.broadcast<Index>(ctx, {words.data(), static_cast<Index>(words.size()), 1});
    id = std::bit_cast<ncclUniqueId>(words);
    const auto bytes = std::bit_cast<std::array<unsigned char, sizeof id>>(id);
    ncclComm_t made = nullptr;
    try {
        agree_on_gpus(ctx, control, [&] {
            const CurrentDevice current(device);
            check(ncclCommInitRank(&made, control.size(), id, control.rank()), "ncclCommInitRank");
            return 0;
        });
    } catch (...) {
        GpuLink(device, through_the_host, made).close();
        throw;
    }
    return std::make_shared<GpuLink>(device, number_of(bytes), made);
}
#else
std::shared_ptr<GpuLink> connect_by_nccl(Context<Host>& ctx, Communicator& control, int, const std::string&) {
    agree_on_gpus(ctx, control, []() -> Index {
        throw DeviceFailure(
            "quoin was built without NCCL, which connects the GPUs of several ranks: NCCL_HOME says where nccl.h is");
    });
    return nullptr;  // not reached
}
#endif

/// Returns `earlier` (may be null) if all ranks still have the connection that they made together, otherwise a new
/// connection. All ranks call it.
std::shared_ptr<GpuLink> connect(const nb::object& engine, int rank, int size, int device,
                                 std::shared_ptr<GpuLink> earlier, const std::string& library) {
    PythonCommunicator control(engine, rank, size);
    std::shared_ptr<GpuLink> link;
    run_released(Home<Host>(1), 1, 0, [&](Context<Host>& ctx) {
        const auto numbers = agree_on_gpus(ctx, control, [&] { return earlier ? earlier->number() : 0; });
        if (earlier && std::ranges::all_of(numbers, [&](Index number) { return number == earlier->number(); })) {
            link = std::move(earlier);
            return;
        }
        auto gpus = agree_on_gpus(ctx, control, [&] { return number_of_gpu(device); });
        std::ranges::sort(gpus);
        link = std::ranges::adjacent_find(gpus) != gpus.end()
                   ? std::make_shared<GpuLink>(device, through_the_host, nullptr)
                   : connect_by_nccl(ctx, control, device, library);
    });
    return link;
}

}  // namespace

void GpuLink::close() noexcept {
    ncclComm* const made = std::exchange(nccl_, nullptr);
#ifdef QUOIN_HAVE_NCCL
    if (!made) return;
    try {
        const std::lock_guard lock(closing().mutex);
        // not ncclCommDestroy, which may wait for other ranks; even ncclCommAbort takes long
        std::thread([made, device = device_] {
            try {
                const CurrentDevice current(device);
                ncclCommAbort(made);
            } catch (const std::exception&) {
                // the driver has ended, and the communicator with it
            }
            const std::lock_guard lock(closing().mutex);
            closing().threads -= 1;
            closing().one_less.notify_all();
        }).detach();
        closing().threads += 1;
    } catch (const std::exception&) {
        // no thread could be started; the end of the process frees the communicator
    }
#else
    (void)made;
#endif
}

void bind_gpu_ranks(nb::module_& cuda) {
    using namespace nb::literals;
    nb::class_<GpuLink>(cuda, "Link").def_prop_ro("number", &GpuLink::number).def("close", &GpuLink::close);
    cuda.def("wait_for_closing", &wait_for_closing);
    cuda.def("connect", &connect, "engine"_a, "rank"_a, "size"_a, "device"_a, "earlier"_a.none(), "library"_a);
}

}  // namespace quoin::python
