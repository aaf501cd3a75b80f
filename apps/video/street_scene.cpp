#include "video/street_scene.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

namespace quoin::video {
namespace {

// Places are (x, y) in heights of the frame, y from its top; brightness is in [0, 1].

constexpr std::array strengths{1.0, 0.86, 0.74};  // of the light in sun, in thin and in thick cloud
constexpr double kerb_far = 0.47, road_begin = 0.57, road_end = 0.83;

double grain(double x, double y, double size) {
    const auto cell = [&](double v) { return static_cast<std::uint64_t>(std::floor(v / size) + 4096); };
    return uniform(cell(x) << 32 | cell(y)) - 0.5;
}

/// A row of houses, each of its own width, height and brightness, with windows.
std::optional<double> house(double x, double y) {
    constexpr double roofs[] = {0.10, 0.02, 0.15, 0.06, 0.12}, walls[] = {0.62, 0.54, 0.68, 0.58, 0.64};
    constexpr double width = 0.34;
    const int number = static_cast<int>(std::floor((x + 0.05) / width)), of = (number % 5 + 5) % 5;
    if (y < roofs[of] || y > kerb_far) return std::nullopt;
    if (y < roofs[of] + 0.015) return 0.42;  // the eaves
    const double u = std::fmod(x + 0.05, width) / width * 4, v = (y - roofs[of] - 0.05) / 0.095;
    const double column = u - std::floor(u), row = v - std::floor(v);
    if (std::abs(u - 2) < 0.28 && y > kerb_far - 0.085) return 0.40;  // the door
    if (v > 0 && y < kerb_far - 0.1 && std::abs(column - 0.5) < 0.26 && row < 0.62) {
        const bool bars = std::abs(column - 0.5) < 0.025 || std::abs(row - 0.3) < 0.03;
        const auto window = static_cast<std::uint64_t>(number * 1024 + static_cast<int>(u) * 32 + static_cast<int>(v));
        return bars ? 0.75 : 0.38 + 0.12 * uniform(window);
    }
    return walls[of] + 0.03 * grain(x, y, 0.012);
}

/// The street by daylight, nothing on it.
double street(double x, double y, double width) {
    const double lamp = 0.30 * width, tree = 0.72 * width;
    if (std::abs(x - lamp) < 0.006 && y > 0.16 && y < kerb_far + 0.04) return 0.33;
    if (std::abs(x - lamp - 0.02) < 0.03 && std::abs(y - 0.16) < 0.012) return 0.80;
    const double crown = std::hypot(x - tree, 1.15 * (y - 0.23)) + 0.05 * grain(x, y, 0.02);
    if (crown < 0.13) return 0.34 + 0.14 * grain(x, y, 0.009) + 0.10 * grain(x, y, 0.03);
    if (std::abs(x - tree) < 0.013 && y > 0.3 && y < kerb_far + 0.05) return 0.36;
    if (const auto wall = house(x, y)) return *wall;
    if (y < kerb_far) return 0.92 - 0.25 * y;  // the sky
    const bool pavement = y < road_begin || y > road_end;
    const double fine = 0.05 * grain(x, y, 0.004);
    if (pavement) {
        const double slabs = y < road_begin ? 0.05 : 0.085, lean = 0.3 * (y - road_end);
        const double u = (x - lean * (x - width / 2)) / slabs, v = (y - road_end) / slabs;
        const bool joint = u - std::floor(u) < 0.06 || v - std::floor(v) < 0.08;
        return (joint ? 0.56 : 0.68) + fine;
    }
    if (std::abs(y - road_begin) < 0.008 || std::abs(y - road_end) < 0.010) return 0.80;  // the kerbs
    const double dash = x / 0.16;
    if (std::abs(y - 0.695) < 0.006 && dash - std::floor(dash) < 0.5) return 0.86;
    return 0.47 + fine;
}

/// Whether the sun leaves a place in the shadow of the tree or the lamp.
bool in_shadow(double x, double y, double width) {
    if (y < kerb_far) return false;
    const double slant = 1.3 * (y - kerb_far);
    return std::abs(x - 0.30 * width - slant) < 0.008 + 0.01 * (y - kerb_far) ||
           std::hypot((x - 0.72 * width - slant) / 0.16, (y - 0.66) / 0.07) < 1 ||
           (std::abs(x - 0.72 * width - slant) < 0.014 && y < 0.66);
}

/// Whether (x, y) is at most `radius` from the line between (x0, y0) and (x1, y1).
bool on_line(double x, double y, double x0, double y0, double x1, double y1, double radius) {
    const double dx = x1 - x0, dy = y1 - y0;
    const double t = std::clamp(((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy), 0.0, 1.0);
    return std::hypot(x - x0 - t * dx, y - y0 - t * dy) < radius;
}

struct Walker {
    double start, speed;  // x at frame 0 in widths of the frame; widths a frame
    double feet, height;  // y; in heights of the frame
    double coat, trousers, head;
};
struct Car {
    double start, speed, wheels, length;
    double body, windows;
};

constexpr Walker walkers[] = {
    {0.05, 0.0080, 0.535, 0.155, 0.10, 0.06, 0.14},  {0.55, -0.0095, 0.545, 0.165, 0.96, 0.10, 0.12},
    {0.97, -0.0070, 0.540, 0.150, 0.14, 0.10, 0.08}, {0.30, 0.0105, 0.550, 0.170, 0.12, 0.95, 0.10},
    {0.12, 0.0115, 0.965, 0.330, 0.11, 0.07, 0.14},  {0.88, -0.0125, 0.985, 0.345, 0.97, 0.12, 0.10},
    {0.62, 0.0140, 0.975, 0.335, 0.16, 0.10, 0.06},
};
constexpr Car cars[] = {{-0.20, 0.040, 0.80, 0.36, 0.95, 0.14},
                        {1.30, -0.034, 0.665, 0.30, 0.11, 0.75},
                        {-1.90, 0.045, 0.80, 0.38, 0.12, 0.78},
                        {3.10, -0.038, 0.665, 0.30, 0.96, 0.15}};

/// Returns the brightness of a walker at (x, y), x to the right of it and y above its feet. It has walked the distance
/// `walked`. All three are in units of its height.
std::optional<double> part_of(const Walker& walker, double x, double y, double walked) {
    if (std::abs(x) > 0.3 || y < -0.02 || y > 1.02) return std::nullopt;
    const double stride = 0.17 * std::sin(2 * std::numbers::pi * walked / 0.75);
    if (std::hypot(x, 0.9 * (y - 0.92)) < 0.068) return walker.head;
    if (on_line(x, y, 0, 0.56, 0, 0.77, 0.095)) return walker.coat;
    for (const double side : {1.0, -1.0}) {
        if (on_line(x, y, 0.06 * side, 0.78, side * (0.07 + 0.8 * stride), 0.50, 0.036)) return walker.coat;
        if (on_line(x, y, 0, 0.5, -side * stride, 0.03, 0.052)) return walker.trousers;
    }
    return std::nullopt;
}

/// Returns the brightness of a car at (x, y), in its lengths, with x along its direction of travel.
std::optional<double> part_of(const Car& car, double x, double y) {
    if (std::abs(x) > 0.5 || y < 0 || y > 0.34) return std::nullopt;
    for (const double wheel : {-0.3, 0.3}) {
        const double r = std::hypot(x - wheel, y - 0.075);
        if (r < 0.075) return r < 0.035 ? 0.7 : 0.05;
    }
    const double roof = std::clamp((0.33 - y) / 0.13, 0.0, 1.0);  // 0 at the roof
    const double cabin = x > -0.06 ? 0.14 + 0.16 * roof : 0.26 + 0.10 * roof;
    if (y > 0.2) {
        if (std::abs(x + 0.06) > cabin) return std::nullopt;
        const bool pillar = std::abs(x + 0.06) > cabin - 0.025 || std::abs(x + 0.05) < 0.012 || y > 0.31;
        return pillar ? car.body : car.windows;
    }
    if (y < 0.055) return std::nullopt;
    if (std::abs(x) > 0.47 && y > 0.12 && y < 0.17) return 0.99;  // the lights
    return car.body - (y < 0.09 ? 0.04 : 0.0);
}

}  // namespace

StreetScene::StreetScene(FrameFormat format) : format_(format) {
    check_scene_format(format);
    const double h = static_cast<double>(format.height), width = static_cast<double>(format.width) / h;
    for (std::size_t light = 0; light < backgrounds_.size(); ++light) {
        for (Index i = 0; i < format.width * format.height; ++i) {
            const double x = (static_cast<double>(i % format.width) + 0.5) / h,
                         y = (static_cast<double>(i / format.width) + 0.5) / h;
            const double shade = light == 0 && in_shadow(x, y, width) ? 0.72 : 1;
            backgrounds_[light].push_back(static_cast<std::uint8_t>(
                std::lround(255 * std::clamp(strengths[light] * shade * street(x, y, width), 0.0, 1.0))));
        }
    }
}

void StreetScene::frame(Index j, std::span<std::uint8_t> pixels, std::span<std::uint8_t> mask) const {
    constexpr std::array clouds{0, 0, 0, 0, 1, 2, 2, 2, 1, 0};  // for ten frames each
    const auto light = static_cast<std::size_t>(clouds[static_cast<std::size_t>(j / 10 % 10)]);
    const std::vector<std::uint8_t>& background = backgrounds_[light];
    std::copy(background.begin(), background.end(), pixels.begin());
    std::fill(mask.begin(), mask.end(), std::uint8_t{0});

    const double h = static_cast<double>(format_.height), width = static_cast<double>(format_.width) / h,
                 t = static_cast<double>(j);
    // draws `part(x, y)`, x to the right of x0 and y upwards from y0, as far as `reach` to both sides and upwards
    const auto draw = [&](double x0, double y0, double reach, auto part) {
        const auto pixel = [&](double v, Index last) { return std::clamp<Index>(static_cast<Index>(v * h), 0, last); };
        for (Index row = pixel(y0 - reach, format_.height); row < pixel(y0 + 0.02, format_.height); ++row) {
            for (Index col = pixel(x0 - reach, format_.width); col < pixel(x0 + reach, format_.width); ++col) {
                const auto brightness =
                    part((static_cast<double>(col) + 0.5) / h - x0, y0 - (static_cast<double>(row) + 0.5) / h);
                if (!brightness) continue;
                const auto at = static_cast<std::size_t>(row * format_.width + col);
                pixels[at] = static_cast<std::uint8_t>(std::lround(255 * strengths[light] * *brightness));
                mask[at] = 255;
            }
        }
    };
    const auto draw_walker = [&](const Walker& walker) {
        // the frame and a margin either side make one round
        const double round = 1.2, at = walker.start + 0.1 + walker.speed * t;
        const double x = at - round * std::floor(at / round) - 0.1;
        draw(x * width, walker.feet, walker.height, [&](double u, double v) {
            // not in step
            const double walked = 7 * walker.start + std::abs(walker.speed) * t * width / walker.height;
            return part_of(walker, u / walker.height, v / walker.height, walked);
        });
    };
    const auto draw_car = [&](const Car& car) {
        constexpr double round = 6, margin = 0.5;
        const double at = car.start + margin + car.speed * t;
        const double x = at - round * std::floor(at / round) - margin;
        draw(x * width, car.wheels, car.length,
             [&](double u, double v) { return part_of(car, (car.speed > 0 ? u : -u) / car.length, v / car.length); });
    };
    // those farther away first
    for (const Walker& walker : walkers)
        if (walker.feet < road_begin) draw_walker(walker);
    for (const double lane : {0.665, 0.80})
        for (const Car& car : cars)
            if (car.wheels == lane) draw_car(car);
    for (const Walker& walker : walkers)
        if (walker.feet > road_end) draw_walker(walker);
}

}  // namespace quoin::video
