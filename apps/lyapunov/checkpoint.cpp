#include "lyapunov/checkpoint.hpp"

#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "io/atomic_file.hpp"
#include "io/mapped_file.hpp"
#include "lyapunov/require.hpp"

namespace quoin {

namespace {

// The file: the line `magic`, the lines of the identity, an empty line, and in the machine's byte order six counts,
// five numbers, x, the current batch, the batches, Q.
constexpr const char* magic = "quoin lyapunov checkpoint 2\n";

struct Numbers {
    std::int64_t segment, length, filled, batches, has_vectors, parts;
    double first_energy, seconds, qr_seconds, tangent_seconds, force_seconds;
};

template <class T>
std::size_t bytes(const std::vector<T>& values) {
    return values.size() * sizeof(T);
}

std::string first_difference(const std::string& there, const std::string& here) {
    std::istringstream theirs(there), ours(here);
    std::string a, b;
    while (std::getline(ours, b)) {
        a.clear();
        std::getline(theirs, a);
        if (a != b) break;
    }
    return fmt::format("it has '{}', and this run '{}'", a, b);
}

}  // namespace

template <class T>
void save_checkpoint(const std::string& path, const std::string& identity, const RunState& state,
                     MatrixView<const T> Q) {
    const BatchSums& b = state.batches;
    const std::string head = magic + identity + "\n";
    const Numbers numbers{
        state.segment,      b.length,      b.filled,         b.batches(),           Q.cols > 0,         state.parts,
        state.first_energy, state.seconds, state.qr_seconds, state.tangent_seconds, state.force_seconds};
    io::AtomicFile file(path);
    Index at = 0;
    const auto write = [&](const void* data, std::size_t size) {
        if (size > 0) file.write_at(at, data, size);
        at += static_cast<Index>(size);
    };
    write(head.data(), head.size());
    write(&numbers, sizeof numbers);
    write(state.x.data(), bytes(state.x));
    write(b.current.data(), bytes(b.current));
    write(b.sums.data(), bytes(b.sums));
    write(Q.data, sizeof(T) * static_cast<std::size_t>(Q.rows * Q.cols));
    file.commit();
}

template <class T>
std::optional<RunState> load_checkpoint(const std::string& path, const std::string& identity, Index n, Index p,
                                        Matrix<T>& Q) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return {};
    const io::MappedFile file(path);
    std::string_view rest = file.bytes();
    if (!rest.starts_with(magic)) throw UnreadableFile(path, "is not a checkpoint of quoin lyapunov");
    rest.remove_prefix(std::strlen(magic));
    const std::size_t end = rest.find("\n\n");
    if (end == rest.npos) throw UnreadableFile(path, "is a checkpoint that was cut off");
    const std::string there(rest.substr(0, end + 1));
    if (there != identity) {
        throw InvalidArgument(path + ": is the checkpoint of another run: " + first_difference(there, identity));
    }
    rest.remove_prefix(end + 2);

    const auto read = [&](void* to, std::size_t size) {
        if (rest.size() < size) throw UnreadableFile(path, "is a checkpoint that was cut off");
        if (size > 0) std::memcpy(to, rest.data(), size);
        rest.remove_prefix(size);
    };
    Numbers numbers{};
    read(&numbers, sizeof numbers);
    if (numbers.segment < 0 || numbers.length < 1 || numbers.filled < 0 || numbers.filled >= numbers.length ||
        numbers.batches < 0 || numbers.batches > 256 || numbers.parts < 1) {
        throw UnreadableFile(path, "is a damaged checkpoint");
    }
    RunState state(n, p);
    state.segment = numbers.segment;
    state.parts = numbers.parts;
    state.first_energy = numbers.first_energy;
    state.seconds = numbers.seconds;
    state.qr_seconds = numbers.qr_seconds;
    state.tangent_seconds = numbers.tangent_seconds;
    state.force_seconds = numbers.force_seconds;
    BatchSums& b = state.batches;
    b.length = numbers.length;
    b.filled = numbers.filled;
    b.sums.resize(static_cast<std::size_t>(p * numbers.batches));
    read(state.x.data(), bytes(state.x));
    read(b.current.data(), bytes(b.current));
    read(b.sums.data(), bytes(b.sums));
    if (numbers.has_vectors) {
        Q = Matrix<T>(n, p);
        read(Q.data(), sizeof(T) * static_cast<std::size_t>(n * p));
    }
    if (!rest.empty()) throw UnreadableFile(path, "is a damaged checkpoint: there is something after its end");
    return state;
}

#define QUOIN_INSTANTIATE(T)                                                                                        \
    template void save_checkpoint<T>(const std::string&, const std::string&, const RunState&, MatrixView<const T>); \
    template std::optional<RunState> load_checkpoint<T>(const std::string&, const std::string&, Index, Index,       \
                                                        Matrix<T>&);
QUOIN_INSTANTIATE(float)
QUOIN_INSTANTIATE(double)
#undef QUOIN_INSTANTIATE

}  // namespace quoin
