#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "factor_arguments.hpp"
#include "interrupt.hpp"
#include "output_files.hpp"

namespace quoin::cli {

/// R.npy, and Q.npy, or V.npy, T.npy and S.npy: their space on disk is taken before any computation, and they appear
/// together at the end.
template <class T>
struct FactorOutputs {
    FactorOutputs(OutputDirectory& directory, const FactorArguments& arguments, Index m, Index n)
        : r(open(directory, "R.npy", std::min(m, n), n)) {
        const Index k = std::min(m, n);
        const Options& options = arguments.common.options;
        if (options.q.full_t) {
            v.emplace(open(directory, "V.npy", m, k));
            t.emplace(open(directory, "T.npy", k, k));
            if (options.q.full_t->keep_s) s.emplace(open(directory, "S.npy", m, k));
        } else if (!arguments.r_only) {
            q.emplace(open(directory, "Q.npy", m, k));
        }
    }
    void commit() {
        throw_if_interrupted();
        for (auto* file : {&q, &v, &t, &s}) {
            if (*file) (*file)->commit();
        }
        r.commit();
    }
    std::string names;  ///< the files' paths, separated by commas
    NpyRowWriter<T> r;
    std::optional<NpyRowWriter<T>> q, v, t, s;

private:
    NpyRowWriter<T> open(OutputDirectory& directory, const char* name, Index rows, Index cols) {
        const std::string path = directory.file(name);
        names += (names.empty() ? "" : ", ") + path;
        return NpyRowWriter<T>(path, rows, cols);
    }
};

}  // namespace quoin::cli
