#include "video/synthetic_scene.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace quoin::video {
namespace {

constexpr double two_pi = 2 * std::numbers::pi;
/// Standard deviation of the sensor's noise: 2.5 grey levels; and as a trouble.
constexpr double noise = 0.01, much_noise = 0.03;
/// Size of a walker, in heights and widths of the frame, and its slowest and fastest speed, in widths of the frame a
/// frame.
constexpr double walker_height = 0.16, walker_width = 0.07, slowest = 0.003, fastest = 0.016;
constexpr Index walker_count = 9;
/// Frames after which the troubles come again; when the cloud comes and goes, and when the walker stops and walks on.
constexpr double round_of_troubles = 150, cloud_comes = 40, cloud_goes = 85, walker_stops = 30, walker_goes = 70;
/// Where the walker that stops stands, and its speed, in widths of the frame.
constexpr double standing_place = 0.45, standing_speed = 0.015;
struct Tree {
    double x, y, half_width, half_height;  // in widths and heights of the frame
};
constexpr std::array trees{Tree{0.2, 0.24, 0.12, 0.2}, Tree{0.76, 0.62, 0.14, 0.22}};
/// Tint of red, green and blue against grey: of the background, of the walkers.
constexpr std::array<double, 3> background_tint{1.05, 1.0, 0.9}, walker_tint{0.95, 1.0, 1.1};

/// Returns a nearly normal number of variance 1, a sum of four uniform numbers.
double nearly_normal(std::uint64_t key) {
    const std::uint64_t word = random_word(key);
    const auto part = [&](int i) { return static_cast<double>((word >> (16 * i)) & 0xffff) * 0x1p-16 - 0.5; };
    return std::numbers::sqrt3 * (part(0) + part(1) + part(2) + part(3));
}

}  // namespace

SyntheticScene::SyntheticScene(FrameFormat format, SceneTroubles troubles) : format_(format), troubles_(troubles) {
    check_scene_format(format);
    const double w = static_cast<double>(format.width), h = static_cast<double>(format.height);
    background_.resize(static_cast<std::size_t>(format.width * format.height));
    for (Index y = 0; y < format.height; ++y) {
        for (Index x = 0; x < format.width; ++x) {
            const double u = static_cast<double>(x) / w, v = static_cast<double>(y) / h;
            const Index tile = static_cast<Index>(16 * u) + 64 * static_cast<Index>(12 * v);
            const Index pixel = x + y * format.width;
            const double value = 0.5 + 0.08 * std::sin(two_pi * (1.3 * u + 0.4 * v)) +
                                 0.05 * std::cos(two_pi * (2.7 * v - 0.9 * u)) +
                                 0.12 * (uniform(static_cast<std::uint64_t>(tile)) - 0.5) +
                                 0.06 * (uniform(0x100000000 + static_cast<std::uint64_t>(pixel)) - 0.5);
            background_[static_cast<std::size_t>(pixel)] = static_cast<float>(value);
        }
    }
    for (Index i = 0; i < walker_count; ++i) {
        const auto chosen = [&](int of) { return uniform(0x200000000 + static_cast<std::uint64_t>(8 * i + of)); };
        const double size = 0.75 + 0.5 * chosen(0), row = (static_cast<double>(i) + 0.5) / walker_count;
        walkers_.push_back({.x = chosen(1),
                            .y = h * (0.12 + 0.76 * row),
                            .half_width = 0.5 * walker_width * size * w,
                            .half_height = 0.5 * walker_height * size * h,
                            .speed = (slowest + (fastest - slowest) * chosen(2)) * (i % 2 == 0 ? 1 : -1),
                            .brightness = std::array{0.93, 0.1, 0.78, 0.25}[static_cast<std::size_t>(i % 4)]});
    }
}

std::optional<double> SyntheticScene::leaf(double x, double y, double t) const {
    const double w = static_cast<double>(format_.width), h = static_cast<double>(format_.height);
    const double u = x / w, v = y / h, size = 0.012;  // of a leaf, in widths
    const bool in_tree = std::any_of(trees.begin(), trees.end(), [&](const Tree& tree) {
        return std::hypot((u - tree.x) / tree.half_width, (v - tree.y) / tree.half_height) < 1;
    });
    if (!in_tree) return std::nullopt;
    // branches, eight leaves wide, sway each at its own rate
    const auto branch = static_cast<std::uint64_t>(64 * static_cast<Index>(u / (8 * size)) +
                                                   static_cast<Index>(v * h / (8 * size * w)));
    const double rate = 0.04 + 0.08 * uniform(0x300000000 + branch), phase = uniform(0x310000000 + branch);
    const double sway = 0.9 * size * std::sin(two_pi * (rate * t + phase));
    const auto cell = [&](double at) { return static_cast<std::uint64_t>(std::floor(at / size) + 64); };
    return 0.25 + 0.4 * uniform(0x320000000 + (cell(u + sway) << 16) + cell(v * h / w + 0.5 * sway));
}

void SyntheticScene::frame(Index j, std::span<std::uint8_t> pixels, std::span<std::uint8_t> mask) const {
    const Index channels = format_.channels;
    const double w = static_cast<double>(format_.width), t = static_cast<double>(j);
    const double strength = 1 + 0.12 * std::sin(two_pi * t / 240), slant = 0.05 * std::sin(two_pi * t / 410 + 1);
    const double since = std::fmod(t, round_of_troubles), sigma = troubles_.noise ? much_noise : noise;
    const auto ramp = [](double x) { return std::clamp(x / 3, 0.0, 1.0); };
    const double sun = troubles_.light ? 1 - 0.2 * (ramp(since - cloud_comes) - ramp(since - cloud_goes)) : 1;
    const auto put = [&](Index pixel, double grey, const std::array<double, 3>& tint) {
        for (Index c = 0; c < channels; ++c) {
            const Index at = pixel * channels + c;
            const double light = channels == 3 ? grey * tint[static_cast<std::size_t>(c)] : grey;
            const double level =
                255 * (sun * light + sigma * nearly_normal(static_cast<std::uint64_t>((j + 1) * 0x40000000 + at)));
            pixels[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(std::clamp(level + 0.5, 0.0, 255.0));
        }
    };
    std::fill(mask.begin(), mask.end(), std::uint8_t{0});
    for (Index y = 0; y < format_.height; ++y) {
        for (Index x = 0; x < format_.width; ++x) {
            const Index pixel = x + y * format_.width;
            // B (1 + a(t) + b(t)(x/w − 1/2)): three products of a picture and a function of time
            const std::optional<double> green =
                troubles_.leaves ? leaf(static_cast<double>(x), static_cast<double>(y), t) : std::nullopt;
            put(pixel,
                green.value_or(background_[static_cast<std::size_t>(pixel)]) *
                    (strength + slant * (static_cast<double>(x) / w - 0.5)),
                background_tint);
        }
    }
    // an ellipse with stripes that move with it
    const auto draw = [&](const Walker& walker, double x0) {
        for (Index y = 0; y < format_.height; ++y) {
            const double v = (static_cast<double>(y) - walker.y) / walker.half_height;
            for (Index x = 0; x < format_.width; ++x) {
                const double u = (static_cast<double>(x) - x0) / walker.half_width;
                if (u * u + v * v > 1) continue;
                const Index pixel = x + y * format_.width;
                put(pixel, walker.brightness + 0.05 * std::sin(6 * v + 4 * u), walker_tint);
                mask[static_cast<std::size_t>(pixel)] = 255;
            }
        }
    };
    for (const Walker& walker : walkers_) {
        // the frame and a margin of a walker's width either side make one round
        const double margin = 2 * walker.half_width, round = w + 2 * margin;
        const double at = walker.x * round + t * walker.speed * w;
        const double x0 = at - round * std::floor(at / round) - margin;
        draw(walker, x0);
    }
    if (troubles_.standing) {
        const double h = static_cast<double>(format_.height);
        const double walked = std::min(since, walker_stops) + std::max(since - walker_goes, 0.0);
        draw({0, 0.45 * h, 0.5 * walker_width * w, 0.6 * walker_height * h, 0, 0.9},
             w * (standing_place + standing_speed * (walked - walker_stops)));
    }
}

}  // namespace quoin::video
