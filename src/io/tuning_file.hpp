#pragma once

// The file of a tuning table: JSON with a checksum. Where it is, and whether it is used.

#include <functional>

#include "quoin/tuning.hpp"

namespace quoin::io {

/// A device to which tables belong.
struct TunedDevice {
    std::string name, kernels;
};
/// Returns $QUOIN_TUNING unless that is "off", otherwise the file of the device in the user's folder; "" without one.
std::string tuning_path(const TunedDevice& device);
/// Returns a table for the device, today, without times and cases.
TuningTable empty_tuning(const TunedDevice& device);

/// A device's table, if one is used.
struct TableInUse {
    TuningInUse in_use;
    TuningTable table;
};
/// Reads the user's table of device(), which is called if there is a folder of tables. A table is not used if it is
/// damaged, or of another device or version, or if `require(table, path)` throws UnreadableFile.
TableInUse read_table(TunedDevice (*device)(),
                      const std::function<void(const TuningTable&, const std::string&)>& require = {});

/// Returns the table as JSON. Its last member is the table's id, a CRC-32 of the text before it, which this sets.
std::string tuning_text(TuningTable& table);
/// Returns the table of which `text` is the JSON. Throws UnreadableFile, which names `path`, for any other text.
TuningTable parse_tuning(const std::string& text, const std::string& path);

}  // namespace quoin::io
