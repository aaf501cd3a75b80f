#include "add_value.hpp"
#include "rpca.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "input_matrix.hpp"
#include "interrupt.hpp"
#include "json_line.hpp"
#include "memory_cap.hpp"
#include "naming_file.hpp"
#include "on_device.hpp"
#include "output_files.hpp"
#include "program.hpp"
#include "pursuit_report.hpp"
#include "row_blocks.hpp"
#include "stopwatch.hpp"
#ifdef QUOIN_HAVE_VIDEO
#include "video/frame_reader.hpp"
#include "video/stream_name.hpp"
#endif

namespace quoin::cli {

namespace {

/// Bytes of all that a pursuit of the matrix holds.
double matrix_bytes(const MatrixFile& file, std::size_t element_bytes) {
    return matrices_held * static_cast<double>(element_bytes) * static_cast<double>(file.rows()) *
           static_cast<double>(file.cols());
}

template <class T, class D>
void run_rpca_matrix(Context<D>& ctx, DeviceInUse& device, const RpcaArguments& arguments, const MatrixFile& file) {
    const Index m = file.rows(), n = file.cols();
    const double bytes = matrix_bytes(file, sizeof(T)), cap = memory_cap(arguments.memory);
    if (bytes > cap) {
        throw OutOfMemory(
            fmt::format("{}: robust PCA of {} x {} {} needs {:.3g} GB, and {:.3g} GB may be used (--memory)",
                        file.path(), m, n, to_string(file.dtype()), bytes / 1e9, cap / 1e9));
    }
    OutputDirectory directory(arguments.out, {file_of_matrix(arguments.input)});
    const std::string L_path = directory.file("L.npy"), S_path = directory.file("S.npy");
    directory.refuse_leftovers(every_rpca_output);

    load_kernels<T>(ctx, m, n, device,
                    [&](MatrixView<const T, D> small) { load_pursuit<T, D>(ctx, small, arguments); });
    Stopwatch watch;
    const Matrix<T, D> M = read_matrix<T>(ctx, file);
    Matrix<std::uint8_t, D> observed;
    auto options = arguments.options<T, D>();
    if (arguments.nan_is_missing) {
        const Matrix<T>& values = on_host(ctx, M);
        Matrix<std::uint8_t> mask(m, n);
        for (Index j = 0; j < n; ++j) {
            for (Index i = 0; i < m; ++i) mask(i, j) = !std::isnan(values(i, j));
        }
        observed = to_device(ctx, std::move(mask));
        options.observed = observed.view();
    }
    const double transfer_in_seconds = watch.seconds();
    std::optional<PursuitLine> line(std::in_place, arguments.tolerance_taken(), arguments.growth());
    options.on_step = [&](const RobustPcaStep& step) {
        line->draw(step);
        return true;
    };
    const RobustPca<T, D> f =
        naming_file(file.path(), 0, [&] { return robust_pca<T, D>(ctx, M.view(), std::move(options)); });
    line.reset();
    throw_if_interrupted();
    watch = {};
    write_npy<T>(L_path, on_host(ctx, f.L).view());
    write_npy<T>(S_path, on_host(ctx, f.S).view());
    const double transfer_out_seconds = watch.seconds();
    directory.keep();

    PursuitReport report;
    report.add(m, n, f.last, f.end, f.lambda, f.route);
    if (arguments.common.json) {
        JsonLine json;
        json.add("rows", m).add("cols", n).add("dtype", to_string(file.dtype()));
        report.add_to(json);
        add_device(json, device, transfer_in_seconds, transfer_out_seconds);
        json.print();
        return;
    }
    fmt::print("{}: {} x {} {}\n", file.path(), m, n, to_string(file.dtype()));
    print_device(arguments.common, device, transfer_in_seconds, transfer_out_seconds);
    report.print(arguments.tolerance_taken());
    fmt::print("wrote          {}, {}\n", L_path, S_path);
}

const std::string of_frames = "Videos and images";  // heading of their options in --help

/// Refuses options that the input has no use for.
void check_options(const CLI::App& command, const RpcaArguments& arguments, bool matrix) {
    if (!matrix && arguments.nan_is_missing) throw CLI::ValidationError("--nan-is-missing", "is for matrices");
    for (const CLI::Option* option : command.get_options()) {
        if (matrix && option->count() > 0 && option->get_group() == of_frames) {
            throw CLI::ValidationError(option->get_name(),
                                       "is for videos and images, and " + arguments.input + " is a matrix");
        }
    }
}

#ifdef QUOIN_HAVE_VIDEO
/// Chooses the input of `quoin demo`: a street that Quoin draws, or at most 200 frames of at most 640 columns of a
/// video.
void choose_demonstration(RpcaArguments& arguments) {
    arguments.synthetic = arguments.street = arguments.input.empty();
    if (arguments.synthetic) return;
    arguments.grey = true;  // a third of the time
    arguments.frames = 200;
    if (video::FrameReader(arguments.input).format().width > 640) arguments.width = 640;
}
#endif

/// Whether `input` is standard input or an address.
bool is_stream(const std::string& input) {
#ifdef QUOIN_HAVE_VIDEO
    return video::names_stream(input);
#else
    return input == "-";
#endif
}

void run_rpca(const CLI::App& command, const RpcaArguments& arguments) {
    if (arguments.synthetic != arguments.input.empty()) {
        throw CLI::ValidationError("INPUT", "give either an input or --synthetic");
    }
    const bool matrix = !arguments.synthetic && !is_stream(arguments.input) && is_matrix(arguments.input);
    check_options(command, arguments, matrix);
    if (!matrix) {
#ifdef QUOIN_HAVE_VIDEO
        if (arguments.online || arguments.out == "-" || is_stream(arguments.input))
            run_rpca_online(arguments);
        else
            run_rpca_frames(arguments);
        return;
#else
        throw InvalidArgument("this quoin was built without FFmpeg's libraries and reads matrices only");
#endif
    }
    const MatrixFile file = open_matrix(arguments.input, arguments.reading, arguments.memory);
    with_dtype(file.dtype(), [&]<class T>(T) {
        on_device(
            arguments.common, matrix_in_words(file), [&](const auto&) { return matrix_bytes(file, sizeof(T)); },
            [&](auto& ctx, DeviceInUse& device) { run_rpca_matrix<T>(ctx, device, arguments, file); });
    });
}

}  // namespace

const char* to_string(Masks masks) { return masks == Masks::Motion ? "motion" : "raw"; }

}  // namespace quoin::cli

int main(int argc, char** argv) {
    using namespace quoin;
    using namespace quoin::cli;
    let_waiting_threads_sleep(argv, 0);  // between a stream's frames the cores belong to the decoder and the encoder
    RpcaArguments arguments;
    Program command(
        "Robust PCA: M = L + S, the still background of a video and what moves in front of it.\n"
        "\n"
        "Principal component pursuit, min ‖L‖_* + λ‖S‖₁ with L of low rank and S sparse (Candès, Li, Ma and Wright\n"
        "2011). INPUT is the video of a fixed camera (whatever FFmpeg decodes), a folder or pattern of images, or a\n"
        "matrix (.npy, Matrix Market, CSV). Frames become columns of M in [0, 1]. DIR receives background.mp4,\n"
        "foreground.mp4 (|S|), mask.mp4, comparison.mp4 and .png (with the edge of the mask over the input),\n"
        "convergence.svg, decisions.svg (rank, thresholds and seams over the frames) and report.json; for a matrix,\n"
        "L.npy and S.npy. quoin never replaces an input. It refuses a folder that holds an output of a run with other\n"
        "options, if this run does not write that output.",
        "quoin rpca");
    command.add_option("INPUT", arguments.input, "Video, folder of images, pattern (in%04d.png, 'in*.png') or matrix");
    add_value(command, "--out", "DIR", arguments.out, "Folder for the results, created if missing; -: see --online")
        ->required();
    add_choice(command, "--method", arguments.method,
               {Pursuit::InexactAlm, Pursuit::AlternatingDirections, Pursuit::Stable},
               "Method: alm (augmented Lagrangian, growing μ), alternating (constant μ; slower, lower objective) or\n"
               "stable (M = L + S + Z with noise Z). Default: stable for frames with noise, alm for all else");
    command.add_option("--noise", arguments.noise, "Standard deviation of Z for stable; 0: of frames it is estimated")
        ->capture_default_str();
    add_choice(
        command, "--route", arguments.route, {ThresholdRoute::Auto, ThresholdRoute::Qr, ThresholdRoute::Gram},
        "How the singular values of an iterate are computed: qr (R by a tree of Householder factorizations, backward\n"
        "stable), gram (from XᵀX, summed in double) or auto (the faster one)")
        ->default_str("auto");
    command.add_option("--lambda", arguments.lambda, "Weight of ‖S‖₁; 0: 1/√max(m, n)")->capture_default_str();
    command.add_option("--mu", arguments.mu, "First μ; 0: Quoin chooses")->capture_default_str();
    command.add_option("--rho", arguments.rho, "Factor by which μ grows in each iteration")->capture_default_str();
    command
        .add_option("--tol", arguments.tolerance,
                    "Bound of the residual ‖M − L − S‖ / ‖M‖, which reaches about 1e-6 in f32. With alternating it\n"
                    "also bounds the dual residual, and 1e-3 gives a good answer. With stable it bounds the change of\n"
                    "S in an iteration over ‖M‖, and is 1e-4")
        ->default_str("1e-5");
    command.add_option("--iterations", arguments.iterations, "Most iterations")->capture_default_str();
    command.add_option("--max-rank", arguments.max_rank, "Largest rank of L; 0: any")->capture_default_str();
    command.add_flag("--nan-is-missing", arguments.nan_is_missing,
                     "NaN in a matrix marks an entry that was not observed");
    add_memory_argument(command, arguments.memory);
    add_reading_arguments(command, arguments.reading);
    add_device_argument(command, arguments.common.device);
    add_trace_argument(command, arguments.common.trace);
    add_common_arguments(command, arguments.common, /*algorithm=*/false);
#ifdef QUOIN_HAVE_VIDEO
    command.add_option("--start", arguments.start, "First frame, from 0")->group(of_frames);
    add_value(command, "--frames", "N", arguments.frames, "Most frames to read")->group(of_frames);
    const auto set_scale = [&](const std::string& text) {
        if (text.find('x') == text.npos) refuse_argument("--scale", "'" + text + "' is not a size: write WIDTHxHEIGHT");
        const Shape shape = parse_shape("--scale", text);
        arguments.width = shape.rows, arguments.height = shape.cols;
    };
    add_parsed(command, "--scale", "WxH", set_scale,
               "Width and height to work at, as 384x288; 384x0 keeps the proportions")
        ->group(of_frames);
    CLI::Option* const color =
        command.add_flag("--color", arguments.color, "Red, green and blue: three times the rows");
    command
        .add_flag("--gray", arguments.grey,
                  "One brightness for each pixel. By default the input decides: its first frame")
        ->excludes(color)
        ->group(of_frames);
    color->group(of_frames);
    add_dtype(command, arguments.dtype, "Type of the matrix: f32 or f64")->default_str("f32")->group(of_frames);
    add_value(command, "--window", "N", arguments.window,
              "Frames that are separated at once; 0: up to 100, as memory allows")
        ->capture_default_str()
        ->group(of_frames);
    add_value(command, "--carry", "N", arguments.carry,
              "Frames of the background so far that each window starts with (default: as many as it has, up to 100)")
        ->group(of_frames);
    add_choice(command, "--masks", arguments.masks, {Masks::Motion, Masks::Raw},
               "motion: pixels that stand out of their own noise with most of their neighbours, holes filled; raw:\n"
               "pixels of |S| above --threshold")
        ->default_str("motion")
        ->group(of_frames);
    command
        .add_flag(
            "--online", arguments.online,
            "Frames are separated as they come, in bounded memory: the background is a subspace that follows them.\n"
            "So are those of INPUT - (a pipe), of addresses, as rtsp://…, and of cameras, as /dev/video0, until they\n"
            "end or Ctrl-C. --out - writes the comparison as a stream that ffplay shows. --max-rank is 4 then, if not\n"
            "given. With --device cuda the GPU separates a frame while the host's cores make the mask of the frame\n"
            "before and write it")
        ->group(of_frames);
    add_value(command, "--forget", "SHARE", arguments.forget,
              "Share of its weight that a frame loses with each later one; online")
        ->capture_default_str()
        ->group(of_frames);
    command
        .add_option(
            "--threshold", arguments.threshold,
            "Least difference from the background of a foreground pixel; 1 is white. Motion masks ask for more\n"
            "where a pixel's noise is above half of it")
        ->capture_default_str()
        ->group(of_frames);
    command
        .add_flag("--restart", arguments.restart,
                  "Start again: delete the journal that a stopped run left in --out, with all that it had finished")
        ->group(of_frames);
    command.add_flag("--npy", arguments.npy, "Write L.npy and S.npy too, one frame in each column")->group(of_frames);
    add_value(command, "--ground-truth", "DIR", arguments.ground_truth,
              "Masks to score against: images 0 and 50 background, 255 foreground, others ignored; or a\n"
              "ChangeDetection.net folder (groundtruth/, ROI.bmp, temporalROI.txt)")
        ->group(of_frames);
    command
        .add_flag("--synthetic", arguments.synthetic,
                  "Instead of INPUT: a scene made by quoin, with exact masks; --frames (100), --scale (384x288)")
        ->group(of_frames);
    add_value(command, "--scene-with", "LIST", arguments.scene_troubles,
              "What makes the scene of --synthetic harder, as noise,leaves: noise (three times as much), leaves\n"
              "(that sway), light (that a cloud takes), standing (a walker, for 40 frames)")
        ->delimiter(',')
        ->check(CLI::IsMember({"noise", "leaves", "light", "standing"}).description(""))
        ->group(of_frames);
    add_value(command, "--write-scene", "DIR", arguments.write_scene,
              "Folder for the frames and masks of --synthetic in the layout of --ground-truth, as PNG")
        ->group(of_frames);
    command.add_flag_callback("--demonstration", [&] { choose_demonstration(arguments); })
        ->group("");  // of `quoin demo`
#endif
    command.footer(
        "Example:  quoin rpca street.mp4 --scale 384x288 --frames 100 --out parts\n"
        "          quoin rpca --synthetic --out parts\n"
        "          ffmpeg -f v4l2 -i /dev/video0 -f nut - | quoin rpca - --out - --device cuda | ffplay -\n"
        "          quoin rpca M.npy --out parts --method alternating\n"
        "\n"
        "--json prints report.json on one line: end, iterations, seconds, iterations_per_second, rank, nonzeros,\n"
        "residual, objective, lambda, route and device; for frames also phases (seconds), and with masks precision,\n"
        "recall and f.");
    command.callback([&] { run_rpca(command, arguments); });
    return command.run(argc, argv);
}
