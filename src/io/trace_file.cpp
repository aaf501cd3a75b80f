// A trace in the trace event format of Chrome and Perfetto.

#include <fmt/format.h>

#include <algorithm>

#include "io/atomic_file.hpp"
#include "io/json_text.hpp"
#include "quoin/trace.hpp"

namespace quoin {

namespace {

constexpr Trace::Row rows[] = {Trace::Row::Host, Trace::Row::Device, Trace::Row::SideStream, Trace::Row::ToDevice,
                               Trace::Row::ToHost};

/// The thread that stands for a row.
int thread_of(Trace::Row row) { return static_cast<int>(row) + 1; }

}  // namespace

std::string Trace::json() const {
    const std::vector<Span> spans = this->spans();
    std::string text = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
    const char* separator = "\n";
    const auto event = [&](const std::string& members) {
        text += fmt::format("{}{{\"pid\": 1, {}}}", separator, members);
        separator = ",\n";
    };
    event("\"ph\": \"M\", \"name\": \"process_name\", \"args\": {\"name\": \"quoin\"}");
    for (const Row row : rows) {
        if (std::none_of(spans.begin(), spans.end(), [&](const Span& span) { return span.row == row; })) continue;
        event(fmt::format("\"tid\": {}, \"ph\": \"M\", \"name\": \"thread_name\", \"args\": {{\"name\": {}}}",
                          thread_of(row), io::json_quoted(to_string(row))));
        event(fmt::format(
            "\"tid\": {0}, \"ph\": \"M\", \"name\": \"thread_sort_index\", \"args\": {{\"sort_index\": {0}}}",
            thread_of(row)));
    }
    for (const Span& span : spans) {
        event(fmt::format("\"tid\": {}, \"ph\": \"X\", \"name\": {}, \"ts\": {:.3f}, \"dur\": {:.3f}{}",
                          thread_of(span.row), io::json_quoted(span.name), span.times.begin,
                          span.times.end - span.times.begin,
                          span.step < 0 ? "" : fmt::format(", \"args\": {{\"step\": {}}}", span.step)));
    }
    return text + "\n]}\n";
}

void Trace::write(const std::string& path) const {
    const std::string text = json();
    io::AtomicFile file(path);
    file.write_at(0, text.data(), text.size());
    file.commit();
}

}  // namespace quoin
