#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "factor_arguments.hpp"
#include "interrupt.hpp"
#include "output_files.hpp"

namespace quoin::cli {

/// R.npy, Q.npy or V.npy, T.npy and S.npy, and P.npy: their space on disk is taken before any computation, and they
/// appear together at the end.
template <class T>
struct FactorOutputs {
    FactorOutputs(OutputDirectory& directory, const FactorArguments& arguments, Index m, Index n)
        : directory_(directory), arguments_(arguments), m_(m), n_(n) {
        open(std::min(m, n));
    }
    /// Keeps the permutation of a QR with column pivoting, and has the files for its `rank` columns.
    void set_permutation(std::span<const Index> permutation, Index rank) {
        permutation_.assign(permutation.begin(), permutation.end());
        if (rank < std::min(m_, n_)) open(rank);
    }
    void commit() {
        throw_if_interrupted();
        for (auto* file : {&q, &v, &t, &s, &r}) {
            if (*file) (*file)->commit();
        }
        if (!permutation_path_.empty()) write_npy(permutation_path_, permutation_);
    }
    std::string names;  ///< the files' paths, separated by commas
    std::optional<NpyRowWriter<T>> r, q, v, t, s;

private:
    /// Opens the files for k columns of Q.
    void open(Index k) {
        const Options& options = arguments_.common.options;
        names.clear();
        open(r, "R.npy", k, n_);
        if (options.q.full_t) {
            open(v, "V.npy", m_, k);
            open(t, "T.npy", k, k);
            if (options.q.full_t->keep_s) open(s, "S.npy", m_, k);
        } else if (!arguments_.r_only) {
            open(q, "Q.npy", m_, k);
        }
        if (!arguments_.pivots.kind.empty()) permutation_path_ = path_of("P.npy");
    }
    void open(std::optional<NpyRowWriter<T>>& file, const char* name, Index rows, Index cols) {
        file.reset();
        file.emplace(path_of(name), rows, cols);
    }
    std::string path_of(const char* name) {
        const std::string path = directory_.file(name);
        names += (names.empty() ? "" : ", ") + path;
        return path;
    }

    OutputDirectory& directory_;
    const FactorArguments& arguments_;
    Index m_, n_;
    std::string permutation_path_;  ///< empty without pivoting
    std::vector<Index> permutation_;
};

}  // namespace quoin::cli
