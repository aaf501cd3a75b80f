#include "on_device.hpp"

#include <fmt/format.h>
#include <omp.h>

#include "byte_size.hpp"
#include "stopwatch.hpp"

namespace quoin::cli {

void add_device(JsonLine& line, const DeviceInUse& device, double transfer_in_seconds, double transfer_out_seconds) {
    line.add("device", to_string(device.device));
    if (device.device == Device::Host) return;
    line.add("start_up_seconds", device.start_up_seconds).add("transfer_in_seconds", transfer_in_seconds);
    line.add("transfer_out_seconds", transfer_out_seconds);
}

void print_device(const CommonArguments& arguments, const DeviceInUse& device, double transfer_in_seconds,
                  double transfer_out_seconds) {
    if (arguments.device == Device::Host) return;
    fmt::print("device         {}\n", device.description);
    if (device.device == Device::Host) return;
    fmt::print("start-up       {:.3g} s\n", device.start_up_seconds);
    fmt::print("transfers      {:.3g} s from the file to the GPU, {:.3g} s from the GPU to files\n",
               transfer_in_seconds, transfer_out_seconds);
}

std::string matrix_in_words(const MatrixFile& file) {
    return fmt::format("{}: a {} x {} {} matrix", file.path(), file.rows(), file.cols(), to_string(file.dtype()));
}

void refuse_gpu(const std::string& why) {
    throw Error(ErrorCode::DeviceFailure, fmt::format("--device cuda: {}; --device host needs no GPU", why));
}

#ifdef QUOIN_HAVE_CUDA
std::optional<Context<Cuda>> open_gpu(const CommonArguments& arguments, DeviceInUse& use) {
    const Stopwatch watch;
    const GpuSurvey survey = survey_gpus();
    std::string why;
    if (survey.gpus.empty()) {
        why = fmt::format("there is no usable GPU ({})", survey.problem.empty() ? "none found" : survey.problem);
    } else if (!survey.gpus[0].problem.empty()) {
        why = fmt::format("{} cannot be used ({})", survey.gpus[0].name, survey.gpus[0].problem);
    }
    if (!why.empty()) {
        if (arguments.device == Device::Cuda) refuse_gpu(why);
        use.description = fmt::format("host ({})", why);
        return std::nullopt;
    }
    // the threads that read and pack what travels
    omp_set_num_threads(make_context(arguments).threads());
    std::optional<Context<Cuda>> ctx(std::in_place);
    use.device = Device::Cuda;
    use.description = survey.gpus[0].name;
    use.start_up_seconds = watch.seconds();
    return ctx;
}

bool fits_gpu(const CommonArguments& arguments, const Context<Cuda>& ctx, const std::string& what, double bytes,
              DeviceInUse& use) {
    const DeviceMemory memory = device_memory(ctx);
    if (bytes <= static_cast<double>(memory.free)) return true;
    const std::string why = fmt::format("{} needs {} on the GPU, and {} of its {} are free", what,
                                        format_byte_size(bytes), format_byte_size(static_cast<double>(memory.free)),
                                        format_byte_size(static_cast<double>(memory.total)));
    if (arguments.device == Device::Cuda) throw OutOfMemory(why);
    use = {Device::Host, fmt::format("host ({})", why), -1};
    return false;
}
#endif

}  // namespace quoin::cli
