// `quoin rpca`, run as a user runs it: matrices, scenes, images and videos.

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <thread>

#include "checks.hpp"
#include "cli_run.hpp"
#include "gallery.hpp"
#ifdef QUOIN_HAVE_VIDEO
#include "video/frame_reader.hpp"
#include "video/video_writer.hpp"
#endif

namespace quoin::test {
namespace {

using Rpca = Cli;

template <class T>
class RpcaTyped : public Cli {};
TYPED_TEST_SUITE(RpcaTyped, Scalars);

TYPED_TEST(RpcaTyped, WritesTwoPartsThatAddUp) {
    using T = TypeParam;
    const Index m = 300, n = 20;
    Matrix<T> M(m, n);
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) {
            M(i, j) =
                static_cast<T>(std::sin(0.1 * double(i)) * (1 + 0.1 * double(j)) + ((i + 17 * j) % 31 == 0 ? 2 : 0));
        }
    }
    save("M.npy", M);
    const Outcome outcome = quoin_run("rpca M.npy --out d --tol 1e-4 --json");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("\"end\": \"converged\""), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find("\"rank\": 1,"), std::string::npos) << outcome.out;
    EXPECT_EQ(names_in("d"), (std::vector<std::string>{"L.npy", "S.npy"}));
    const auto L = load<T>("d/L.npy"), S = load<T>("d/S.npy");
    double error = 0, norm = 0;
    for (Index j = 0; j < n; ++j) {
        for (Index i = 0; i < m; ++i) {
            error += std::pow(double(M(i, j)) - L(i, j) - S(i, j), 2);
            norm += std::pow(double(M(i, j)), 2);
        }
    }
    EXPECT_LE(std::sqrt(error / norm), 1.1e-4);

    M(3, 4) = std::numeric_limits<T>::quiet_NaN();
    save("N.npy", M);
    EXPECT_EQ(quoin_run("rpca N.npy --out e --nan-is-missing --tol 1e-4").exit_code, 0);
    expect_error(quoin_run("rpca N.npy --out f"), exit_code_of(ErrorCode::NonFiniteEntry),
                 {"N.npy", "row 3", "column 4"});
    EXPECT_FALSE(fs::exists("f"));
}

TEST_F(Rpca, EveryOptionReachesTheIteration) {
    save("M.npy", random_normal<double>(60, 10));
    ASSERT_EQ(quoin_run("rpca M.npy --out d").exit_code, 0);
    const std::string usual = contents("d/L.npy");
    for (const std::string option : {"--route qr", "--lambda 0.2", "--mu 0.3", "--rho 1.3", "--tol 1e-3",
                                     "--max-rank 2", "--method alternating", "--iterations 3"}) {
        EXPECT_EQ(quoin_run("rpca M.npy --out e " + option).exit_code, 0) << option;
        EXPECT_NE(contents("e/L.npy"), usual) << option;
    }
}

TEST_F(Rpca, RefusesWhatIsOutOfRange) {
    save("M.npy", random_normal<double>(30, 5));
    const int invalid = exit_code_of(ErrorCode::InvalidArgument);
    expect_error(quoin_run("rpca M.npy --out d --lambda -1"), invalid, {"lambda", "-1"});
    expect_error(quoin_run("rpca M.npy --out d --rho 1"), invalid, {"rho"});
    expect_error(quoin_run("rpca M.npy --out d --tol 0"), invalid, {"tolerance"});
    expect_error(quoin_run("rpca M.npy --out d --memory 1KiB"), exit_code_of(ErrorCode::OutOfMemory),
                 {"M.npy", "--memory"});
    EXPECT_FALSE(fs::exists("d"));
    const Outcome stalled = quoin_run("rpca M.npy --out d --tol 1e-300");
    EXPECT_EQ(stalled.exit_code, 0);
    EXPECT_NE(stalled.out.find("warning"), std::string::npos) << stalled.out;
}

/// `quoin bench rpca` is a script, which it gives to Python.
TEST_F(Rpca, TheComparisonWithOpenCVIsOneCommand) {
    const std::string path = std::getenv("PATH");
    fs::create_directories("tools");
    setenv("PATH", fs::absolute("tools").c_str(), 1);
    expect_error(quoin_run("bench rpca scene"), exit_code_of(ErrorCode::UnreadableFile), {"python3", "opencv-python"});
    std::ofstream("tools/python3") << "#!/bin/sh\nshift; case $1 in *MOG2*) shift; echo \"$@\"; esac\n";
    fs::permissions("tools/python3", fs::perms::owner_all);
    const Outcome outcome = quoin_run("bench rpca scene --against opencv --json --threads 3 -- --window 20 --carry 2");
    setenv("PATH", path.c_str(), 1);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_TRUE(std::regex_match(
        outcome.out, std::regex("scene --rpca .*/quoin-rpca --json -- --threads 3 --window 20 --carry 2\n")))
        << outcome.out;
    EXPECT_EQ(quoin_run("bench rpca scene --against lapack").exit_code, usage_error);
}

/// Skipped by name where the program finds no GPU.
class RpcaOnGpu : public Cli {
protected:
    void SetUp() override {
        Cli::SetUp();
        if (json_value(quoin_run("info --json").out, "gpu0_usable") != "true") GTEST_SKIP() << "no usable GPU";
    }
};

TEST_F(RpcaOnGpu, IsThatOfTheHost) {
    Matrix<double> M(500, 30);
    for (Index j = 0; j < 30; ++j) {
        for (Index i = 0; i < 500; ++i) {
            M(i, j) = std::sin(0.1 * double(i)) * (1 + 0.1 * double(j)) + ((i + 17 * j) % 31 == 0 ? 2 : 0);
        }
    }
    M(3, 4) = std::numeric_limits<double>::quiet_NaN();
    save("M.npy", M);
    const std::string command = "rpca M.npy --nan-is-missing --json --out ";
    const Outcome on_gpu = quoin_run(command + "g --device cuda"), on_host = quoin_run(command + "h");
    ASSERT_EQ(on_gpu.exit_code, 0) << on_gpu.err;
    EXPECT_EQ(json_value(on_gpu.out, "device"), "\"cuda\"");
    EXPECT_GE(json_number(on_gpu.out, "transfer_in_seconds"), 0);
    EXPECT_EQ(json_number(on_gpu.out, "rank"), json_number(on_host.out, "rank"));
    EXPECT_NEAR(json_number(on_gpu.out, "objective"), json_number(on_host.out, "objective"),
                1e-4 * json_number(on_host.out, "objective"));
    for (const char* name : {"L.npy", "S.npy"}) {
        const auto X = load<double>(std::string("g/") + name), Y = load<double>(std::string("h/") + name);
        EXPECT_LE(difference<double>(X.view(), Y.view(), 1, frobenius_norm<double>(Y.view())) * unit_roundoff<double>,
                  1e-3)
            << name;
    }
    expect_error(quoin_run("rpca M.npy --out f --device cuda"), exit_code_of(ErrorCode::NonFiniteEntry),
                 {"M.npy", "row 3", "column 4"});
}

#ifdef QUOIN_HAVE_VIDEO

const std::vector<std::string> films_and_pictures{"background.mp4",  "comparison.mp4", "comparison.png",
                                                  "convergence.svg", "decisions.svg",  "foreground.mp4",
                                                  "mask.mp4",        "report.json"};

/// A grey image of one brightness as a PGM file.
void save_image(const std::string& path, int width, int height, int brightness) {
    std::ofstream(path, std::ios::binary) << fmt::format("P5 {} {} 255\n", width, height)
                                          << std::string(static_cast<std::size_t>(width * height), char(brightness));
}

// Candès et al. promise exact recovery for what is sparse enough; a threshold between the noise and the walkers'
// contrast then leaves the pixels that other walkers have covered for long.
TEST_F(Rpca, SeparatesTheSyntheticScene) {
    const Outcome outcome = quoin_run("rpca --synthetic --scale 160x120 --frames 60 --out d --json");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(names_in("d"), films_and_pictures);
    EXPECT_EQ(contents("d/report.json"), outcome.out);
    for (const char* key :
         {"iterations", "seconds", "iterations_per_second", "rank", "residual", "objective", "phases"}) {
        EXPECT_NE(outcome.out.find(fmt::format("\"{}\": ", key)), std::string::npos) << key;
    }
    EXPECT_EQ(json_value(outcome.out, "end"), "\"converged\"");
    EXPECT_EQ(json_number(outcome.out, "frames"), 60);
    EXPECT_GE(json_number(outcome.out, "f"), 0.95) << outcome.out;
    EXPECT_NE(outcome.out.find("\"temporal_median\": {\"precision\": "), std::string::npos) << outcome.out;

    const Outcome early =
        quoin_run("rpca --synthetic --scale 64x48 --frames 20 --method alternating --iterations 5 --tol 1e-2 --out d");
    EXPECT_NE(early.out.find("the dual residual is above --tol"), std::string::npos) << early.out;

    const Outcome text = quoin_run("rpca --synthetic --scale 45x33 --frames 12 --color --dtype f64 --out d");
    ASSERT_EQ(text.exit_code, 0) << text.err;
    EXPECT_NE(text.out.find("12 frames of 45x33, colour, f64"), std::string::npos) << text.out;
    EXPECT_EQ(text.err, "");
}

TEST_F(Rpca, MasksWithstandNoiseAndLeaves) {
    const std::string scene = "rpca --synthetic --scale 160x120 --frames 60 --out d --json --scene-with ";
    const std::string usual = quoin_run(scene + "noise,leaves").out,
                      raw = quoin_run(scene + "noise,leaves --masks raw").out;
    EXPECT_EQ(json_value(usual, "masks"), "\"motion\"");
    EXPECT_EQ(json_number(usual, "objective"), json_number(raw, "objective"));
    EXPECT_GE(json_number(usual, "f"), 0.85) << usual;
    EXPECT_LE(json_number(raw, "f"), 0.75) << raw;
    for (const char* trouble : {"noise", "leaves", "light", "standing"}) {
        const std::string out =
            quoin_run("rpca --synthetic --scale 40x32 --frames 45 --iterations 2 --out d --json --scene-with " +
                      std::string(trouble))
                .out;
        EXPECT_NE(json_value(out, "objective"), json_value(usual, "objective")) << trouble;
    }
    EXPECT_EQ(quoin_run("rpca --synthetic --out e --scene-with rain").exit_code, usage_error);
    EXPECT_FALSE(fs::exists("e"));
}

TEST_F(Rpca, NoiseIsFoundAndGetsNoRank) {
    const std::string scene = "rpca --synthetic --scale 96x72 --frames 50 --out d ";
    const std::string usual = quoin_run(scene + "--json").out, alm = quoin_run(scene + "--json --method alm").out;
    EXPECT_EQ(json_value(usual, "method"), "\"stable\"");
    EXPECT_NEAR(json_number(usual, "noise"), 0.01, 0.003);
    EXPECT_LE(json_number(usual, "rank"), 3);
    EXPECT_EQ(json_value(alm, "method"), "\"alm\"");
    EXPECT_GE(json_number(alm, "rank"), 10);
    const Outcome said = quoin_run(scene + "--noise 0.02");
    EXPECT_NE(said.out.find("stable, for noise of 5.1 grey levels"), std::string::npos) << said.out;
    // frames without noise
    fs::create_directory("still");
    for (int j = 0; j < 12; ++j) save_image(fmt::format("still/{:02}.pgm", j), 64, 48, 90 + 10 * (j / 4));
    const std::string still = quoin_run("rpca still --out f --json").out;
    EXPECT_EQ(json_value(still, "method"), "\"alm\"") << still;
    save("M.npy", random_normal<double>(30, 5));
    expect_error(quoin_run("rpca M.npy --out e --method stable"), exit_code_of(ErrorCode::InvalidArgument), {"noise"});
    EXPECT_EQ(quoin_run("rpca M.npy --out e --method stable --noise 0.1").exit_code, 0);
}

TEST_F(Rpca, ColourIsUsedWhereThereIsColour) {
    const auto channels = [&](const std::string& command) {
        return json_number(quoin_run(command + " --json").out, "channels");
    };
    EXPECT_EQ(channels("rpca --synthetic --scale 48x32 --frames 4 --iterations 2 --color --out c --write-scene s"), 3);
    EXPECT_EQ(channels("rpca s/input --iterations 2 --out d"), 3);
    EXPECT_EQ(channels("rpca c/background.mp4 --iterations 2 --out d"), 3);
    EXPECT_EQ(channels("rpca s/input --gray --iterations 2 --out d"), 1);
    EXPECT_EQ(channels("rpca s/groundtruth --iterations 2 --out d"), 1) << "grey pictures";
    EXPECT_EQ(channels("rpca s/groundtruth --color --iterations 2 --out d"), 3);
    EXPECT_EQ(quoin_run("rpca s/input --gray --color --out d").exit_code, usage_error);
}

TEST_F(Rpca, SeparatesAStreamAsItComes) {
    const Outcome outcome =
        quoin_run("rpca --synthetic --online --scale 112x84 --frames 80 --out d --json --write-scene s");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(contents("d/report.json"), outcome.out);
    EXPECT_EQ(names_in("d"), (std::vector<std::string>{"background.mp4", "comparison.mp4", "comparison.png",
                                                       "decisions.svg", "foreground.mp4", "mask.mp4", "report.json"}));
    EXPECT_EQ(json_number(outcome.out, "frames"), 80);
    EXPECT_EQ(json_number(outcome.out, "rank"), 1);
    // once it knows the background
    std::ofstream("s/temporalROI.txt") << "51 80\n";
    const Outcome later = quoin_run("rpca s/input --online --out d --json --ground-truth s");
    EXPECT_GE(json_number(later.out, "f"), 0.93) << later.out;

    // a pipe in is the same frames, and a pipe out shows them side by side
    const Outcome film = quoin_run("rpca d/background.mp4 --online --out e --json");
    const Outcome pipe = quoin_run("rpca - --out f --json", "d/background.mp4");
    ASSERT_EQ(pipe.exit_code, 0) << pipe.err;
    EXPECT_EQ(json_number(pipe.out, "frames"), 80);
    EXPECT_EQ(contents("f/background.mp4"), contents("e/background.mp4"));
    const Outcome stream = quoin_run("rpca - --out - --frames 20", "d/background.mp4");
    ASSERT_EQ(stream.exit_code, 0) << stream.err;
    EXPECT_NE(stream.err.find("20 frames of 112x84"), std::string::npos) << stream.err;
    // the time from a frame's arrival until it is written, beyond those that the background is learned from
    EXPECT_EQ(stream.err.find("latency"), std::string::npos) << stream.err;
    const Outcome longer = quoin_run("rpca - --out - --frames 60", "d/background.mp4");
    EXPECT_TRUE(std::regex_search(
        longer.err,
        std::regex(R"(latency +[\d.]+ ms, at most [\d.]+ ms = [\d.]+ frames at 25/s; the first 32: at most)")))
        << longer.err;
    EXPECT_GT(json_number(outcome.out, "cpu"), 0);
    EXPECT_GE(json_number(outcome.out, "longest"), json_number(outcome.out, "mean"));
    std::ofstream("shown.nut", std::ios::binary) << stream.out;
    const Outcome shown = quoin_run("rpca shown.nut --iterations 1 --out g --json");
    EXPECT_EQ(json_number(shown.out, "frames"), 20) << shown.err;
    EXPECT_EQ(json_number(shown.out, "width"), 4 * 112 + 3 * 4);

    EXPECT_NE(contents("d/background.mp4"), contents("e/background.mp4"));
    const int invalid = exit_code_of(ErrorCode::InvalidArgument);
    expect_error(quoin_run("rpca s/input --online --out h --forget 1"), invalid, {"forget"});
    expect_error(quoin_run("rpca s/input --online --out h --threshold 0"), invalid, {"threshold"});
    expect_error(quoin_run("rpca - --out h"), exit_code_of(ErrorCode::UnreadableFile), {"-"});
    EXPECT_FALSE(fs::exists("h"));
}

/// Times of the frames, in seconds, and the shape of the pixels.
std::pair<std::vector<double>, double> times_of(const std::string& film) {
    video::FrameReader reader(film);
    const auto ratio = [](video::Ratio of) { return static_cast<double>(of.num) / of.den; };
    std::vector<double> times;
    for (std::vector<std::uint8_t> frame(static_cast<std::size_t>(reader.format().bytes())); reader.next(frame);) {
        times.push_back(static_cast<double>(reader.time().begin) * ratio(reader.time_unit()));
    }
    return {times, ratio(reader.pixel_aspect())};
}

TEST_F(Rpca, FilmsHaveTheTimesAndThePixelShapeOfTheInput) {
    const video::FrameFormat format{64, 48, 1};
    video::VideoWriter part("part.mp4", format, 25);
    video::FilmShape shape{{1, 25}, {}, {16, 11}};
    std::vector<double> times;
    for (const Index begin : {0, 1, 2, 50, 51, 52, 110, 300}) {
        part.write(std::vector<std::uint8_t>(static_cast<std::size_t>(format.bytes()),
                                             static_cast<std::uint8_t>(100 + begin % 7)));
        shape.times.push_back({begin, 1});
        times.push_back(static_cast<double>(begin) / 25);
    }
    part.finish();
    video::join_videos({"part.mp4"}, "film.mp4", 25, shape);
    const auto expect_times = [&](const std::string& film, std::size_t first) {
        const auto [found, aspect] = times_of(film);
        ASSERT_EQ(found.size(), times.size() - first) << film;
        for (std::size_t k = 0; k < found.size(); ++k) {
            EXPECT_NEAR(found[k], times[first + k] - times[first], 1e-9) << film << " " << k;
        }
        EXPECT_NEAR(aspect, 16. / 11, 1e-9) << film;
    };
    for (const std::string options : {"--window 3", "--online"}) {
        ASSERT_EQ(quoin_run("rpca film.mp4 --out d --iterations 3 " + options).exit_code, 0);
        for (const char* name : {"background", "foreground", "mask", "comparison"}) {
            expect_times(fmt::format("d/{}.mp4", name), 0);
        }
        fs::remove_all("d");
    }
    ASSERT_EQ(quoin_run("rpca film.mp4 --out - --start 2").exit_code, 0);
    expect_times("../out", 2);
}

/// Every option of --online reaches it.
TEST_F(Rpca, OnlineTakesItsOptions) {
    const std::string scene = "rpca --synthetic --online --scale 48x36 --frames 45 --scene-with standing --out d ";
    const auto film = [&](const std::string& options) {
        EXPECT_EQ(quoin_run(scene + options).exit_code, 0) << options;
        return contents("d/mask.mp4") + contents("d/background.mp4");
    };
    const std::string usual = film("");
    for (const char* option : {"--forget 0.1", "--threshold 0.3", "--masks raw"})
        EXPECT_NE(film(option), usual) << option;
    EXPECT_EQ(film("--threads 1"), usual);
}

/// Ctrl-C ends a stream: what has come is there and can be played.
TEST_F(Rpca, AnInterruptEndsAStream) {
    Process process({"rpca", "--synthetic", "--online", "--frames", "100000", "--scale", "64x48", "--out", "d"});
    while (!fs::exists("d") || fs::is_empty("d")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    process.wait_until_used(0.3);
    process.send(SIGINT);
    EXPECT_EQ(process.wait().exit_code, 130);
    const double frames = json_number(contents("d/report.json"), "frames");
    EXPECT_GT(frames, 0);
    EXPECT_EQ(json_number(quoin_run("rpca d/mask.mp4 --iterations 1 --out e --json").out, "frames"), frames);
}

/// The first signal ends a pipe that is open and brings nothing, and what has come is there.
TEST_F(Rpca, AnInterruptEndsAStreamThatStalls) {
    ASSERT_EQ(quoin_run("rpca --synthetic --frames 260 --scale 48x36 --out - --online").exit_code, 0);
    fs::copy_file("../out", "film.nut");
    ASSERT_EQ(mkfifo("pipe", 0600), 0);
    for (const bool with_frames : {true, false}) {
        const int writer = open("pipe", O_RDWR);  // does not wait for the reader, as one for writing would
        ASSERT_GE(writer, 0);
        Process process({"rpca", "-", "--out", "d"}, -1, "pipe");
        process.wait_until_caught(SIGTERM);
        if (with_frames) {
            const std::string film = contents("film.nut");
            ASSERT_EQ(write(writer, film.data(), film.size()), static_cast<ssize_t>(film.size()));
            while (!fs::exists("d/quoin-journal/mask-00001.mp4")) {  // of 250 frames
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
            }
        }
        const auto sent = std::chrono::steady_clock::now();
        process.send(SIGTERM);
        const Outcome outcome = process.wait();
        EXPECT_LT(std::chrono::steady_clock::now() - sent, std::chrono::seconds(20));
        EXPECT_EQ(outcome.exit_code, 143) << outcome.err;
        EXPECT_EQ(fs::exists("d"), with_frames);
        if (with_frames) {
            const double frames = json_number(contents("d/report.json"), "frames");
            EXPECT_GE(frames, 250);
            EXPECT_EQ(json_number(quoin_run("rpca d/mask.mp4 --iterations 1 --out e --json").out, "frames"), frames);
            fs::remove_all("d");
        }
        close(writer);
    }
}

TEST_F(RpcaOnGpu, SeparatesTheSyntheticSceneInWindows) {
    const Outcome outcome =
        quoin_run("rpca --synthetic --scale 160x120 --frames 90 --window 50 --npy --out d --json --device cuda");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(json_value(outcome.out, "end"), "\"converged\"");
    EXPECT_EQ(json_number(outcome.out, "frames"), 90);
    EXPECT_EQ(load<float>("d/S.npy").cols(), 90);
    EXPECT_GE(json_number(outcome.out, "f"), 0.95) << outcome.out;
}

TEST_F(RpcaOnGpu, SeparatesAStreamAsTheHostDoes) {
    const std::string command = "rpca --synthetic --online --scale 161x120 --frames 90 --json --out ";
    const Outcome on_gpu = quoin_run(command + "g --device cuda"), on_host = quoin_run(command + "h");
    ASSERT_EQ(on_gpu.exit_code, 0) << on_gpu.err;
    EXPECT_EQ(json_value(on_gpu.out, "device"), "\"cuda\"");
    EXPECT_EQ(json_value(on_host.out, "device"), "\"host\"");
    for (const char* key : {"frames", "rank", "scored_frames"})
        EXPECT_EQ(json_number(on_gpu.out, key), json_number(on_host.out, key)) << key;
    EXPECT_NEAR(json_number(on_gpu.out, "f"), json_number(on_host.out, "f"), 0.002);
    EXPECT_EQ(names_in("g"), names_in("h"));
    for (const char* film : {"background", "mask"})
        EXPECT_EQ(
            json_number(quoin_run(fmt::format("rpca g/{}.mp4 --iterations 1 --out e --json", film)).out, "frames"), 90);

    const Outcome stream = quoin_run("rpca - --out - --masks raw --device cuda", "g/background.mp4");
    ASSERT_EQ(stream.exit_code, 0) << stream.err;
    EXPECT_NE(stream.err.find("90 frames of 161x120"), std::string::npos) << stream.err;
    EXPECT_NE(stream.err.find("device "), std::string::npos) << stream.err;
    EXPECT_NE(stream.err.find("latency "), std::string::npos) << stream.err;
}

TYPED_TEST(RpcaTyped, WindowsHoldEveryFrame) {
    using T = TypeParam;
    const std::string dtype = std::is_same_v<T, float> ? " --dtype f32" : " --dtype f64";
    const Outcome outcome = quoin_run(
        "rpca --synthetic --method alm --scale 64x48 --frames 50 --window 20 --npy --write-scene scene --out d --json" +
        dtype);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("\"windows\": [{\"cols\": 20, "), std::string::npos) << outcome.out;
    // the first value of a key belongs to all windows: their sum, or the largest
    const auto values = [&](const std::string& key) {
        std::vector<double> found;
        const std::regex pattern("\"" + key + "\": ([^,}\\]]+)");
        for (auto it = std::sregex_iterator(outcome.out.begin(), outcome.out.end(), pattern);
             it != std::sregex_iterator(); ++it)
            found.push_back(std::stod((*it)[1]));
        return found;
    };
    for (const std::string key : {"iterations", "seconds", "nonzeros", "objective", "rank", "residual"}) {
        const std::vector<double> of = values(key);
        ASSERT_EQ(of.size(), 1 + 3u) << key;
        const bool largest = key == "rank" || key == "residual";
        EXPECT_NEAR(of[0], largest ? std::max({of[1], of[2], of[3]}) : of[1] + of[2] + of[3], 1e-5 * of[0]) << key;
        EXPECT_GT(of[1], 0) << key;
    }
    const double iterations = values("iterations")[0], rate = values("iterations_per_second")[0];
    EXPECT_NEAR(rate * values("seconds")[0], iterations, 1e-5 * iterations);
    const Matrix<T> L = load<T>("d/L.npy"), S = load<T>("d/S.npy");
    ASSERT_EQ(L.rows(), 64 * 48);
    ASSERT_EQ(L.cols(), 50);
    ASSERT_EQ(S.cols(), 50);
    EXPECT_EQ(names_in("scene/input").size(), 50u);

    // M has 8 bits, so M − L − S shows in how far 255 (L + S) is from whole numbers; ‖M − L − S‖ <= tol ‖M‖
    double squares = 0, norm = 0;
    for (Index j = 0; j < 50; ++j) {
        for (Index i = 0; i < L.rows(); ++i) {
            const double M = static_cast<double>(L(i, j)) + static_cast<double>(S(i, j));
            squares += std::pow(M - std::round(255 * M) / 255, 2);
            norm += M * M;
        }
    }
    EXPECT_LE(std::sqrt(squares / norm), 1.1e-5);
}

TEST_F(Rpca, AWindowHasUpToAHundredFrames) {
    const std::string scene = "rpca --synthetic --scale 32x32 --out d --json --frames ";
    EXPECT_EQ(json_number(quoin_run(scene + "100").out, "window"), 100);
    EXPECT_EQ(json_number(quoin_run(scene + "101").out, "window"), 51) << "windows of equal size";
}

TEST_F(Rpca, MemoryBoundsTheWindow) {
    const std::string scene = "rpca --synthetic --scale 64x48 --frames 90 --out d --json --memory ";
    // 64·48 bytes and at most three f32 numbers of each are 39 KiB a frame, and one that is carried takes at most 48
    // KiB
    const Outcome bounded = quoin_run(scene + "3MiB");
    ASSERT_EQ(bounded.exit_code, 0) << bounded.err;
    EXPECT_EQ(json_number(bounded.out, "window"), 30)
        << "35 fit with as many that are carried, in windows of equal size";
    EXPECT_EQ(json_number(quoin_run(scene + "3MiB --carry 10 --restart").out, "window"), 45);
    const Outcome refused = quoin_run(scene + "800KiB");
    EXPECT_EQ(refused.exit_code, exit_code_of(ErrorCode::OutOfMemory));
    std::smatch smallest;
    EXPECT_NE(refused.err.find("too little for a window of 10 frames of 64x48"), std::string::npos) << refused.err;
    ASSERT_TRUE(std::regex_search(refused.err, smallest, std::regex("--memory (\\d+KiB)"))) << refused.err;
    EXPECT_EQ(quoin_run(scene + smallest[1].str()).exit_code, 0);
    EXPECT_EQ(quoin_run(scene + "2MiB --window 60").exit_code, exit_code_of(ErrorCode::OutOfMemory));
}

TEST_F(Rpca, ScoresMasksOfAFolder) {
    const Outcome made = quoin_run("rpca --synthetic --scale 64x48 --frames 30 --write-scene scene --out d --json");
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const auto scored = [](const std::string& more) {
        const Outcome outcome = quoin_run("rpca scene/input --out e --json --ground-truth " + more);
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
        return outcome.out;
    };
    for (const char* masks : {"scene", "scene/groundtruth"}) {
        const std::string out = scored(masks);
        for (const char* key : {"objective", "precision", "recall", "f"})
            EXPECT_EQ(json_value(out, key), json_value(made.out, key)) << masks << " " << key;
    }
    EXPECT_EQ(contents("scene/temporalROI.txt"), "1 30\n");
    // ChangeDetection.net's layout: half of the frame, then none of it, and frames 11 to 20 counted from 1
    save_image("scene/ROI.pgm", 64, 48, 0);
    EXPECT_EQ(json_value(scored("scene"), "f"), "null");
    fs::remove("scene/ROI.pgm");
    std::ofstream("scene/temporalROI.txt") << "11 20\n";
    const std::string part = scored("scene");
    EXPECT_NE(json_value(part, "f"), json_value(made.out, "f"));
    for (int frame = 1; frame <= 30; ++frame) {
        if (frame < 11 || frame > 20) save_image(fmt::format("scene/groundtruth/gt{:06}.pgm", frame), 64, 48, 170);
        if (frame < 11 || frame > 20) fs::remove(fmt::format("scene/groundtruth/gt{:06}.png", frame));
    }
    EXPECT_EQ(json_value(scored("scene/groundtruth"), "f"), json_value(part, "f"));
    std::ofstream("scene/temporalROI.txt") << "20 11\n";
    expect_error(quoin_run("rpca scene/input --out f --ground-truth scene"), exit_code_of(ErrorCode::UnreadableFile),
                 {"temporalROI.txt"});
    expect_error(quoin_run("rpca scene/input --out f --ground-truth nowhere"), exit_code_of(ErrorCode::UnreadableFile),
                 {"nowhere"});
    EXPECT_FALSE(fs::exists("f"));

    fs::copy_file("e/comparison.png", "scene/input/comparison.png");
    expect_error(quoin_run("rpca scene/input --out scene/input"), exit_code_of(ErrorCode::UnwritableFile),
                 {"scene/input/comparison.png", "input"});
}

// The frames have the brightnesses 50 to 150 in another order: their median is 100, and 26 or more from it is
// foreground.
TEST_F(Rpca, ScoresTheTemporalMedianBesideTheMask) {
    fs::create_directories("levels/input");
    fs::create_directories("levels/groundtruth");
    for (int k = 0; k < 101; ++k) {
        const int brightness = 150 - 37 * k % 101;
        save_image(fmt::format("levels/input/in{:06}.pgm", k + 1), 40, 32, brightness);
        save_image(fmt::format("levels/groundtruth/gt{:06}.pgm", k + 1), 40, 32,
                   std::abs(brightness - 100) < 26 ? 0 : 255);
    }
    const Outcome outcome =
        quoin_run("rpca levels/input --out d --json --window 101 --threshold 0.1 --ground-truth levels/groundtruth");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find(R"("temporal_median": {"precision": 1, "recall": 1, "f": 1})"), std::string::npos)
        << outcome.out;
}

/// An earlier run wrote more frames.
TEST_F(Rpca, LeavesNothingOfAnEarlierRunBesideItsOwn) {
    const std::string frames = "rpca --synthetic --scale 64x48 --frames 20 --out d";
    ASSERT_EQ(quoin_run(frames + " --npy").exit_code, 0);
    expect_error(quoin_run(frames), exit_code_of(ErrorCode::UnwritableFile), {"d/L.npy", "earlier run"});
}

TEST_F(Rpca, ReadsWhatItWrote) {
    ASSERT_EQ(quoin_run("rpca --synthetic --scale 64x48 --frames 30 --out d").exit_code, 0);
    const Outcome outcome = quoin_run("rpca d/comparison.mp4 --start 5 --frames 20 --scale 80x20 --out e --json");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(json_number(outcome.out, "frames"), 20);
    EXPECT_EQ(json_number(outcome.out, "width"), 80);
    const Outcome demo = quoin_run("demo d/background.mp4 --out f");
    ASSERT_EQ(demo.exit_code, 0) << demo.err;
    EXPECT_NE(demo.out.find("30 frames of 64x48"), std::string::npos) << demo.out;
    EXPECT_EQ(names_in("f"), films_and_pictures);
    // what the demonstration separates: its street, and of wide films 640 columns
    const std::string street = quoin_run("rpca --demonstration --scale 64x48 --frames 12 --out h --json").out;
    EXPECT_EQ(json_value(street, "input"), "\"street scene\"") << street;
    ASSERT_EQ(quoin_run("rpca --synthetic --scale 700x40 --frames 12 --out i").exit_code, 0);
    const std::string wide = quoin_run("demo i/background.mp4 --out j --json").out;
    EXPECT_EQ(json_number(wide, "width"), 640) << wide;
    EXPECT_EQ(json_number(wide, "frames"), 12) << wide;

    // half of the file, its index first
    const std::string film = contents("d/comparison.mp4");
    std::ofstream("half.mp4", std::ios::binary) << film.substr(0, 6 * film.size() / 10);
    const Outcome half = quoin_run("rpca half.mp4 --out g --json");
    ASSERT_EQ(half.exit_code, 0) << half.err;
    EXPECT_LT(json_number(half.out, "frames"), 30);
    EXPECT_NE(json_value(half.out, "damage").find("frames"), std::string::npos) << half.out;
}

TEST_F(Rpca, RefusesInputsThatAreNoVideo) {
    std::ofstream("text.mp4") << "this is no video\n";
    fs::create_directory("images");
    const int unreadable = exit_code_of(ErrorCode::UnreadableFile), invalid = exit_code_of(ErrorCode::InvalidArgument);
    expect_error(quoin_run("rpca nowhere.mp4 --out d"), unreadable, {"nowhere.mp4"});
    expect_error(quoin_run("rpca text.mp4 --out d"), unreadable, {"text.mp4"});
    expect_error(quoin_run("rpca images --out d"), unreadable, {"images"});
    save_image("images/a1.pgm", 40, 30, 90);
    expect_error(quoin_run("rpca images --out d"), invalid, {"images", "2 frames"});
    save_image("images/a2.pgm", 40, 31, 90);
    expect_error(quoin_run("rpca images --out d"), unreadable, {"a2.pgm", "40 x 30", "40 x 31"});
    save_image("images/a2.pgm", 40, 30, 95);
    EXPECT_EQ(quoin_run("rpca images/a%d.pgm --out e").exit_code, 0);
    expect_error(quoin_run("rpca images --out d --start 2"), invalid, {"2"});
    expect_error(quoin_run("rpca images --out d --lambda -1"), invalid, {"lambda"});
    expect_error(quoin_run("rpca images --out d --threshold -1"), invalid, {"threshold"});
    expect_error(quoin_run("rpca images --out d --window 1"), invalid, {"window"});
    expect_error(quoin_run("rpca images --out d --carry -1"), invalid, {"carry"});
    expect_error(quoin_run("rpca --synthetic --out d --frames -2"), invalid, {"--frames"});
    expect_error(quoin_run("rpca images --out d --nan-is-missing"), usage_error, {"--nan-is-missing"});
    save("M.npy", random_normal<double>(30, 5));
    expect_error(quoin_run("rpca M.npy --out d --window 3"), usage_error, {"--window", "M.npy"});
    expect_error(quoin_run("rpca images --out d --write-scene s"), invalid, {"--synthetic"});
    expect_error(quoin_run("rpca --synthetic --out d --scale 20x20"), invalid, {"20x20"});
    expect_error(quoin_run("rpca --synthetic --out d --frames 1"), invalid, {"2 frames"});
    EXPECT_EQ(quoin_run("rpca --synthetic images --out d").exit_code, usage_error);
    EXPECT_EQ(quoin_run("rpca --out d").exit_code, usage_error);
    EXPECT_FALSE(fs::exists("d"));
}

/// Windows that a journal has finished.
Index journal_windows(const std::string& folder) {
    return static_cast<Index>(lines_of(contents(folder + "/quoin-journal/journal")).size()) - 1;
}

/// The windows that are done stay, as complete films.
TEST_F(Rpca, AnInterruptKeepsWhatIsDone) {
    Process process(
        {"rpca", "--synthetic", "--frames", "100000", "--window", "10", "--scale", "64x48", "--npy", "--out", "d"});
    while (journal_windows("d") < 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    process.send(SIGTERM);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.exit_code, 128 + SIGTERM);
    const std::string report = contents("d/report.json");
    const double frames = json_number(report, "frames");
    EXPECT_GT(frames, 0);
    EXPECT_EQ(json_value(report, "interrupted"), "true");
    EXPECT_NE(outcome.out.find("before the interrupt"), std::string::npos) << outcome.out;
    EXPECT_EQ(static_cast<double>(load<float>("d/S.npy").cols()), frames);
    EXPECT_EQ(json_number(quoin_run("rpca d/mask.mp4 --iterations 1 --out e --json").out, "frames"), frames);
    EXPECT_NE(outcome.out.find("d/quoin-journal: the same command goes on"), std::string::npos) << outcome.out;
}

TEST_F(Rpca, AKilledRunGoesOn) {
    const std::string scene = "rpca --synthetic --frames 100 --window 10 --scale 64x48 --npy --json --out ";
    const Outcome whole = quoin_run(scene + "whole");
    ASSERT_EQ(whole.exit_code, 0) << whole.err;
    EXPECT_FALSE(fs::exists("whole/quoin-journal"));
    std::istringstream words(scene + "d");
    Process process({std::istream_iterator<std::string>(words), {}});
    while (journal_windows("d") < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    process.send(SIGKILL);
    ASSERT_EQ(process.wait().exit_code, 128 + SIGKILL);
    EXPECT_FALSE(fs::exists("d/mask.mp4"));
    const std::string part = "rpca d/quoin-journal/mask-00002.mp4 --iterations 1 --out e --json";
    EXPECT_EQ(json_number(quoin_run(part).out, "frames"), 10);

    expect_error(quoin_run("rpca --synthetic --frames 100 --window 12 --scale 64x48 --npy --out d"),
                 exit_code_of(ErrorCode::InvalidArgument), {"d/quoin-journal", "window 10 instead of 12", "--restart"});
    const Outcome rest = quoin_run(scene + "d");
    ASSERT_EQ(rest.exit_code, 0) << rest.err;
    EXPECT_NE(rest.err.find("frames are kept in d/quoin-journal"), std::string::npos) << rest.err;
    EXPECT_GE(json_number(rest.out, "first_frame"), 20);
    EXPECT_EQ(json_number(rest.out, "frames"), 100);
    EXPECT_EQ(json_number(rest.out, "f"), json_number(whole.out, "f"));
    EXPECT_EQ(names_in("d"), names_in("whole"));
    for (const char* name : {"comparison.png", "L.npy", "S.npy"})
        EXPECT_TRUE(contents(std::string("d/") + name) == contents(std::string("whole/") + name)) << name;
}

TEST_F(Rpca, AFullDiskKeepsWhatIsDone) {
    const std::string scene = "rpca --synthetic --frames 40 --window 10 --scale 64x48 --npy --json --out d";
    // a limit on the size of files stands for a full disk: L of a window fits, L of all does not
    struct rlimit before {};
    getrlimit(RLIMIT_FSIZE, &before);
    const struct rlimit small = {300000, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    const Outcome outcome = quoin_run(scene);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_DFL);
    EXPECT_EQ(outcome.exit_code, exit_code_of(ErrorCode::UnwritableFile));
    EXPECT_NE(outcome.err.find("40 frames are kept in d/quoin-journal"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("d/L.npy: File too large"), std::string::npos) << outcome.err;
    const Outcome rest = quoin_run(scene);
    ASSERT_EQ(rest.exit_code, 0) << rest.err;
    EXPECT_EQ(json_number(rest.out, "first_frame"), 40);
    EXPECT_EQ(load<float>("d/L.npy").cols(), 40);
}

TEST_F(Rpca, AKilledStreamLeavesItsParts) {
    const std::string scene = "rpca --synthetic --online --scale 32x32 --frames 100000 --out d";
    std::istringstream words(scene);
    Process process({std::istream_iterator<std::string>(words), {}});
    while (journal_windows("d") < 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    process.send(SIGKILL);
    process.wait();
    const std::string part = "rpca d/quoin-journal/mask-00001.mp4 --frames 300 --iterations 1 --out e --json";
    EXPECT_EQ(json_number(quoin_run(part).out, "frames"), 250);
    expect_error(quoin_run(scene), exit_code_of(ErrorCode::InvalidArgument), {"frames are kept", "--restart"});
    EXPECT_EQ(quoin_run("rpca --synthetic --online --scale 32x32 --frames 10 --restart --out d").exit_code, 0);
    EXPECT_FALSE(fs::exists("d/quoin-journal"));
}

TEST_F(Rpca, AnInterruptOfTheFirstWindowLeavesNothing) {
    Process process(
        {"rpca", "--synthetic", "--frames", "100000", "--window", "10000", "--scale", "64x48", "--out", "d"});
    while (!fs::exists("d") || fs::is_empty("d")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    process.wait_until_used(0.3);
    process.send(SIGINT);
    EXPECT_EQ(process.wait().exit_code, 130);
    EXPECT_FALSE(fs::exists("d"));
}

#endif

}  // namespace
}  // namespace quoin::test
