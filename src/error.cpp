// The kinds of errors, with their exit codes and names.

#include "quoin/error.hpp"

namespace quoin {

const ErrorInfo& error_info(ErrorCode code) {
    static const ErrorInfo table[] = {
        {ErrorCode::InvalidArgument, "invalid-argument", 2, -1, "ValueError"},
        {ErrorCode::NonFiniteEntry, "non-finite-entry", 3, -1, "ValueError"},
        {ErrorCode::NumericalBreakdown, "numerical-breakdown", 4, 1, "ArithmeticError"},
        {ErrorCode::RankDeficient, "rank-deficient", 5, 1, "ArithmeticError"},
        {ErrorCode::OutOfMemory, "out-of-memory", 6, 0, "MemoryError"},
        {ErrorCode::UnreadableFile, "unreadable-file", 7, 0, "OSError"},
        {ErrorCode::UnwritableFile, "unwritable-file", 8, 0, "OSError"},
        {ErrorCode::DeviceFailure, "device-failure", 9, 0, "RuntimeError"},
        {ErrorCode::Interrupted, "interrupted", 130, 0, "KeyboardInterrupt"},
        {ErrorCode::CommunicationFailure, "communication-failure", 10, 0, "RuntimeError"},
    };
    for (const ErrorInfo& row : table) {
        if (row.code == code) return row;
    }
    throw InvalidArgument("no such error code");
}

NonFiniteEntry::NonFiniteEntry(std::int64_t row_, std::int64_t col_, const std::string& matrix_)
    : Error(ErrorCode::NonFiniteEntry, matrix_ + " holds NaN or Inf, first at row " + std::to_string(row_) +
                                           ", column " + std::to_string(col_) + " (zero-based)"),
      row(row_),
      col(col_),
      matrix(matrix_) {}

}  // namespace quoin
