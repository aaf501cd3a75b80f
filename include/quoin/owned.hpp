#pragma once

#include <memory>
#include <utility>

namespace quoin::detail {

/// Deletes by a function, so that users of the pointer need not know Data.
template <class Data>
struct Delete {
    void (*one)(Data*) = nullptr;
    void operator()(Data* data) const { one(data); }
};
/// A pointer that owns data whose type only Quoin's sources define.
template <class Data>
using Owned = std::unique_ptr<Data, Delete<Data>>;

/// Returns Data(arguments…).
template <class Data, class... Arguments>
Owned<Data> own(Arguments&&... arguments) {
    return {new Data(std::forward<Arguments>(arguments)...), {[](Data* data) { delete data; }}};
}

}  // namespace quoin::detail
