// A trace in the trace event format of Chrome and Perfetto.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "io/atomic_file.hpp"
#include "io/json_text.hpp"
#include "quoin/rank_trace.hpp"

namespace quoin {

namespace {

constexpr Trace::Row rows[] = {Trace::Row::Host, Trace::Row::Device, Trace::Row::SideStream, Trace::Row::ToDevice,
                               Trace::Row::ToHost};

/// The thread that stands for a row.
int thread_of(Trace::Row row) { return static_cast<int>(row) + 1; }

/// Returns the events of a process, separated by commas, with `shift` added to all times.
std::string events_of(const std::vector<Trace::Span>& spans, int process, const std::string& name, double shift = 0) {
    std::string text;
    const auto event = [&](const std::string& members) {
        text += fmt::format("{}{{\"pid\": {}, {}}}", text.empty() ? "\n" : ",\n", process, members);
    };
    event(fmt::format("\"ph\": \"M\", \"name\": \"process_name\", \"args\": {{\"name\": {}}}", io::json_quoted(name)));
    for (const Trace::Row row : rows) {
        if (std::none_of(spans.begin(), spans.end(), [&](const Trace::Span& span) { return span.row == row; }))
            continue;
        event(fmt::format("\"tid\": {}, \"ph\": \"M\", \"name\": \"thread_name\", \"args\": {{\"name\": {}}}",
                          thread_of(row), io::json_quoted(to_string(row))));
        event(fmt::format(
            "\"tid\": {0}, \"ph\": \"M\", \"name\": \"thread_sort_index\", \"args\": {{\"sort_index\": {0}}}",
            thread_of(row)));
    }
    for (const Trace::Span& span : spans) {
        event(fmt::format("\"tid\": {}, \"ph\": \"X\", \"name\": {}, \"ts\": {:.3f}, \"dur\": {:.3f}{}",
                          thread_of(span.row), io::json_quoted(span.name), span.times.begin + shift,
                          span.times.end - span.times.begin,
                          span.step < 0 ? "" : fmt::format(", \"args\": {{\"step\": {}}}", span.step)));
    }
    return text;
}

std::string document(const std::string& events) {
    return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [" + events + "\n]}\n";
}

/// Returns the microseconds to add to this rank's times to get times of rank 0's clock; 0 on rank 0. A message leaves
/// rank 0 and comes back with this rank's time. The fastest of several round trips counts.
double clock_shift(Context<Host>& host, const Trace& mine, Communicator& comm) {
    constexpr int trips = 16;
    Matrix<double> there(1, 1);
    there(0, 0) = 0;
    if (comm.rank() > 0) {
        for (int trip = 0; trip < trips; ++trip) {
            comm.receive<double>(host, there.view(), 0);
            there(0, 0) = mine.now();
            comm.send<double>(host, std::as_const(there).view(), 0);
        }
        comm.receive<double>(host, there.view(), 0);
        return there(0, 0);
    }
    for (int rank = 1; rank < comm.size(); ++rank) {
        double least = std::numeric_limits<double>::infinity(), shift = 0;
        for (int trip = 0; trip < trips; ++trip) {
            const double sent = mine.now();
            comm.send<double>(host, std::as_const(there).view(), rank);
            comm.receive<double>(host, there.view(), rank);
            const double back = mine.now();
            if (back - sent < least) {
                least = back - sent;
                shift = (sent + back) / 2 - there(0, 0);
            }
        }
        there(0, 0) = shift;
        comm.send<double>(host, std::as_const(there).view(), rank);
    }
    return 0;
}

}  // namespace

std::string Trace::json() const { return document(events_of(spans(), 1, "quoin")); }

void Trace::write(const std::string& path) const { io::write_text(path, json()); }

void write_trace(const std::string& path, const Trace& mine, Communicator& comm) {
    Context<Host> host(1);
    const double shift = clock_shift(host, mine, comm);
    std::string events = events_of(mine.spans(), 1 + comm.rank(), fmt::format("rank {}", comm.rank()), shift);
    // blanks up to whole words
    constexpr std::size_t word = sizeof(Index);
    events.append((word - events.size() % word) % word, ' ');
    Index words = static_cast<Index>(events.size() / word);
    if (comm.rank() > 0) {
        Matrix<Index> text(words, 1);
        std::memcpy(text.data(), events.data(), events.size());
        comm.send<Index>(host, {&words, 1, 1}, 0);
        return comm.send<Index>(host, std::as_const(text).view(), 0);
    }
    for (int rank = 1; rank < comm.size(); ++rank) {
        comm.receive<Index>(host, {&words, 1, 1}, rank);
        Matrix<Index> text(words, 1);
        comm.receive<Index>(host, text.view(), rank);
        events += ',';
        events.append(reinterpret_cast<const char*>(text.data()), static_cast<std::size_t>(words) * word);
    }
    io::write_text(path, document(events));
}

}  // namespace quoin
