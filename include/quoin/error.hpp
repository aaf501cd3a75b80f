#pragma once

// #error would let the compiler go on, and print pages
#if defined(__cplusplus) && __cplusplus < 202002L
#include "Quoin needs C++20: compile with -std=c++20"
#endif

#include <cstdint>
#include <stdexcept>
#include <string>

namespace quoin {

/// Kinds of errors. The table `error_info` maps each one to LAPACK's `info`, the exit code of the program `quoin` and
/// the exception of other languages.
enum class ErrorCode {
    InvalidArgument,       ///< an argument is out of its domain; the message names it and says why
    NonFiniteEntry,        ///< the input holds NaN or Inf; the message names the first such entry
    NumericalBreakdown,    ///< a conditional method met a pivot it must not use; the message names the column
    RankDeficient,         ///< a solver that needs full rank was given a numerically rank-deficient matrix
    OutOfMemory,           ///< memory that the call needs cannot be had; the message says how much
    UnreadableFile,        ///< missing, truncated or malformed input file
    UnwritableFile,        ///< output that cannot be created or written
    DeviceFailure,         ///< the device's runtime reported a failure
    Interrupted,           ///< the caller asked for the work to stop
    CommunicationFailure,  ///< another rank has ended, or a message cannot be sent or is not the one expected
};

/// One row of the error table.
struct ErrorInfo {
    ErrorCode code;
    const char* name;       ///< stable, lower-case, hyphenated: "invalid-argument"
    int exit_code;          ///< of the program `quoin`
    int lapack_info_sign;   ///< -1: info = -(argument), +1: info = column, 0: has no LAPACK counterpart
    const char* exception;  ///< Python's class of exception
};

/// Returns the table's row for `code`.
const ErrorInfo& error_info(ErrorCode code);

/// Base of every exception Quoin throws. `what()` is one sentence for a person.
class Error : public std::runtime_error {
public:
    Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
    ErrorCode code() const { return code_; }

private:
    ErrorCode code_;
};

/// An argument is out of its domain. The message names it and says why.
struct InvalidArgument : Error {
    explicit InvalidArgument(const std::string& message) : Error(ErrorCode::InvalidArgument, message) {}
};

/// NaN or Inf in the input; (row, col) is the first such entry in column-major order, zero-based. `matrix` names it in
/// the message.
struct NonFiniteEntry : Error {
    NonFiniteEntry(std::int64_t row, std::int64_t col, const std::string& matrix = "the matrix");
    std::int64_t row, col;
    std::string matrix;
};

/// A conditional method (CholeskyQR) cannot go on at zero-based column `column`.
struct NumericalBreakdown : Error {
    NumericalBreakdown(const std::string& message, std::int64_t column_)
        : Error(ErrorCode::NumericalBreakdown, message), column(column_) {}
    std::int64_t column;
};

/// A solver that needs full rank met a matrix with estimated reciprocal condition `rcond`, at or below its tolerance.
struct RankDeficient : Error {
    RankDeficient(const std::string& message, double rcond_)
        : Error(ErrorCode::RankDeficient, message), rcond(rcond_) {}
    double rcond;
};

/// Memory that the call needs cannot be had. The message says how much.
struct OutOfMemory : Error {
    explicit OutOfMemory(const std::string& message) : Error(ErrorCode::OutOfMemory, message) {}
};

/// An input that cannot be read. The message begins with the path.
struct UnreadableFile : Error {
    UnreadableFile(const std::string& path, const std::string& why)
        : Error(ErrorCode::UnreadableFile, path + ": " + why) {}
};

/// An output that cannot be written. The message begins with the path.
struct UnwritableFile : Error {
    UnwritableFile(const std::string& path, const std::string& why)
        : Error(ErrorCode::UnwritableFile, path + ": " + why) {}
};

/// The caller asked for the work to stop, as `Context::request_stop` does.
struct Interrupted : Error {
    Interrupted() : Error(ErrorCode::Interrupted, "interrupted") {}
};

}  // namespace quoin
