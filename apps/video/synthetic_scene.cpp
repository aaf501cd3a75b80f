#include "video/synthetic_scene.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace quoin::video {
namespace {

constexpr double two_pi = 2 * std::numbers::pi;
/// Standard deviation of the sensor's noise: 2.5 grey levels.
constexpr double noise = 0.01;
/// What a walker covers of the frame's height and width, and how far it goes in a frame, in widths of the frame.
constexpr double walker_height = 0.16, walker_width = 0.07, slowest = 0.003, fastest = 0.016;
constexpr Index walker_count = 9;
/// Tint of red, green and blue against grey: of the background, of the walkers.
constexpr std::array<double, 3> background_tint{1.05, 1.0, 0.9}, walker_tint{0.95, 1.0, 1.1};

/// Of variance 1 and nearly normal: a sum of four uniform numbers.
double nearly_normal(std::uint64_t key) {
    const std::uint64_t word = random_word(key);
    const auto part = [&](int i) { return static_cast<double>((word >> (16 * i)) & 0xffff) * 0x1p-16 - 0.5; };
    return std::numbers::sqrt3 * (part(0) + part(1) + part(2) + part(3));
}

}  // namespace

SyntheticScene::SyntheticScene(FrameFormat format) : format_(format) {
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

void SyntheticScene::frame(Index j, std::span<std::uint8_t> pixels, std::span<std::uint8_t> mask) const {
    const Index channels = format_.channels;
    const double w = static_cast<double>(format_.width), t = static_cast<double>(j);
    const double strength = 1 + 0.12 * std::sin(two_pi * t / 240), slant = 0.05 * std::sin(two_pi * t / 410 + 1);
    const auto put = [&](Index pixel, double grey, const std::array<double, 3>& tint) {
        for (Index c = 0; c < channels; ++c) {
            const Index at = pixel * channels + c;
            const double light = channels == 3 ? grey * tint[static_cast<std::size_t>(c)] : grey;
            const double level =
                255 * (light + noise * nearly_normal(static_cast<std::uint64_t>((j + 1) * 0x40000000 + at)));
            pixels[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(std::clamp(level + 0.5, 0.0, 255.0));
        }
    };
    std::fill(mask.begin(), mask.end(), std::uint8_t{0});
    for (Index y = 0; y < format_.height; ++y) {
        for (Index x = 0; x < format_.width; ++x) {
            const Index pixel = x + y * format_.width;
            // B (1 + a(t) + b(t)(x/w − 1/2)): three products of a picture and a function of time
            put(pixel,
                background_[static_cast<std::size_t>(pixel)] * (strength + slant * (static_cast<double>(x) / w - 0.5)),
                background_tint);
        }
    }
    for (const Walker& walker : walkers_) {
        // the frame and a margin of a walker's width either side make one round
        const double margin = 2 * walker.half_width, round = w + 2 * margin;
        const double at = walker.x * round + t * walker.speed * w;
        const double x0 = at - round * std::floor(at / round) - margin;
        for (Index y = 0; y < format_.height; ++y) {
            const double v = (static_cast<double>(y) - walker.y) / walker.half_height;
            for (Index x = 0; x < format_.width; ++x) {
                const double u = (static_cast<double>(x) - x0) / walker.half_width;
                if (u * u + v * v > 1) continue;
                const Index pixel = x + y * format_.width;
                // stripes that move with the walker
                put(pixel, walker.brightness + 0.05 * std::sin(6 * v + 4 * u), walker_tint);
                mask[static_cast<std::size_t>(pixel)] = 255;
            }
        }
    }
}

}  // namespace quoin::video
