#include "window_journal.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "quoin/version.hpp"
#include "video/image_list.hpp"
#include "video/stream_name.hpp"

namespace quoin::cli {

namespace fs = std::filesystem;

namespace {

/// All that the films depend on, and when the input was last written.
std::string identity_of(const RpcaArguments& a) {
    std::int64_t size = 0;
    std::pair<std::int64_t, std::int64_t> latest;
    for (const std::string& file : input_files(a)) {
        struct stat status {};
        if (video::names_stream(file) || stat(file.c_str(), &status) != 0) continue;
        size += status.st_size;
        latest = std::max(latest, {status.st_mtim.tv_sec, status.st_mtim.tv_nsec});
    }
    std::string troubles, truth = a.ground_truth;
    for (const std::string& trouble : a.scene_troubles) troubles += trouble + ",";
    std::replace(truth.begin(), truth.end(), ' ', '_');
    return fmt::format(
        "quoin={} size={} time={}.{:09} synthetic={} street={} scene-with={} start={} frames={} scale={}x{} color={} "
        "gray={} dtype={} online={} window={} carry={} forget={} method={} noise={} route={} lambda={} mu={} rho={} "
        "tol={} iterations={} max-rank={} masks={} threshold={} npy={} ground-truth={}",
        version(), size, latest.first, latest.second, a.synthetic, a.street, troubles, a.start, a.frames, a.width,
        a.height, a.color, a.grey, to_string(a.dtype), a.online, a.window, a.carry.value_or(-1), a.forget,
        a.method ? to_string(*a.method) : "chosen", a.noise, to_string(a.route), a.lambda, a.mu, a.rho,
        a.tolerance_taken(), a.iterations, a.max_rank, to_string(a.masks), a.threshold, a.npy, truth);
}

}  // namespace

std::vector<std::string> input_files(const RpcaArguments& arguments) {
    if (arguments.synthetic) return {};
    std::vector<std::string> files = video::list_images(arguments.input);
    if (files.empty()) files = {arguments.input};
    return files;
}

WindowJournal::WindowJournal(const RpcaArguments& arguments)
    : journal_((fs::path(arguments.out) / "quoin-journal").string()) {
    const std::string identity = identity_of(arguments);
    if (arguments.restart || journal_.lines().size() < 2) {
        journal_.clear();
        journal_.append(identity);
    } else {
        journal_.require_run(identity, " and its films and separate");
    }
    // remove unfinished files of a killed run
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder(), error))
        if (entry.path().filename().string().starts_with('.')) fs::remove(entry.path(), error);
}

WindowJournal::~WindowJournal() {
    try {
        if (!removed_ && windows() < 1) journal_.remove();
    } catch (...) {
    }
}

Index WindowJournal::frames() const {
    return windows() < 1 ? 0 : std::stoll(io::fields_of(journal_.lines().back()).at("frames"));
}

std::string WindowJournal::state_path(Index windows) const { return journal_.path(fmt::format("state-{}", windows)); }

void WindowJournal::append(Index frames) {
    journal_.flush_names();
    journal_.append(fmt::format("window={} frames={}", windows() + 1, frames));
    std::error_code none;  // of an online run, which has no states
    fs::remove(state_path(windows() - 1), none);
}

std::string WindowJournal::in_words() const { return fmt::format("{} frames are kept in {}", frames(), folder()); }

void WindowJournal::remove() {
    journal_.remove();
    removed_ = true;
}

}  // namespace quoin::cli
