#pragma once

#include "studies.hpp"

namespace quoin::cli {

/// The options of a study besides --threads and --json.
enum Has : unsigned {
    Shapes = 1,
    Types = 2,
    AnyDevice = 4,
    Operations = 8,
    References = 16,
    Energy = 32,
    Timeline = 64,
    Csv = 128,
    Algorithm = 256,  // the options of `quoin factor` that say how
    GpuMemory = 512,
    Routes = 1024,
    Files = 2048,
    Repeat = 4096,
    Specs = 8192,
    RankCounts = 16384,
    Draws = 32768,
    Masks = 65536,
    Pivoted = 131072,
    Iterations = 262144,
    LargeBlocks = 524288,  // by default blocks of 16384 columns within 32 GiB
};

using Run = void (*)(const BenchArguments&);

/// A study that runs on a GPU; null in a build without CUDA.
#ifdef QUOIN_HAVE_CUDA
#define QUOIN_ON_GPU(study) study
#else
#define QUOIN_ON_GPU(study) nullptr
#endif

/// A subcommand of `quoin bench`.
struct Study {
    const char *name, *description;
    unsigned has = 0;
    Run on_host = nullptr;  ///< null: it does not run on the host
    Run on_gpu = nullptr;
    Run check = nullptr;  ///< refuses what cannot be measured, before anything is
};

/// A table or figure of a paper: `quoin bench paper PAPER ENTRY`.
struct PaperEntry {
    const char* paper;
    Study study;
    const char* host_time = nullptr;  ///< about how long it takes on 2 cores; null: not there
    const char* gpu_time = nullptr;   ///< on a GPU
};

/// The papers, and what a person calls each.
struct Paper {
    const char *name, *authors;
};
extern const std::vector<Paper> papers;
/// Every table and figure of the papers, in their order. Entries with the same functions are views of one run.
extern const std::vector<PaperEntry> paper_entries;

}  // namespace quoin::cli
