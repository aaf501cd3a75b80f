#include "call.hpp"

#include <nanobind/stl/string.h>

namespace quoin::python {

int ContextLease::wanted(int threads) { return threads > 0 ? threads : Context<Host>().threads(); }

namespace {

const char* class_name(ErrorCode code) {
    switch (code) {
        case ErrorCode::InvalidArgument: return "InvalidArgument";
        case ErrorCode::NonFiniteEntry: return "NonFiniteEntry";
        case ErrorCode::NumericalBreakdown: return "NumericalBreakdown";
        case ErrorCode::RankDeficient: return "RankDeficient";
        case ErrorCode::OutOfMemory: return "OutOfMemory";
        case ErrorCode::DeviceFailure: return "DeviceFailure";
        case ErrorCode::CommunicationFailure: return "CommunicationFailure";
        default: return "Error";
    }
}

void raise(const Error& error) {
    if (error.code() == ErrorCode::Interrupted) {
        PyErr_SetNone(PyExc_KeyboardInterrupt);
        return;
    }
    const nb::object type = nb::module_::import_("quoin._errors").attr(class_name(error.code()));
    nb::object exception = type(error.what());
    if (const auto* entry = dynamic_cast<const NonFiniteEntry*>(&error)) {
        exception.attr("row") = entry->row;
        exception.attr("col") = entry->col;
        exception.attr("matrix") = entry->matrix;
    } else if (const auto* breakdown = dynamic_cast<const NumericalBreakdown*>(&error)) {
        exception.attr("column") = breakdown->column;
    } else if (const auto* deficient = dynamic_cast<const RankDeficient*>(&error)) {
        exception.attr("rcond") = deficient->rcond;
    }
    PyErr_SetObject(type.ptr(), exception.ptr());
}

}  // namespace

void register_errors() {
    nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const Error& error) {
            raise(error);
        }
    });
}

}  // namespace quoin::python
