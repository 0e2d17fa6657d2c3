#pragma once

#include <cstdint>

#include "core/table.hpp"

namespace sixfold {

// Writes `passes` random orders of 0, ..., rows - 1, one after the other, every one of them as likely as any
// other. The state is all that they depend on, and is left for the next.
void shuffle_rows(std::uint64_t& state, Index passes, Index rows, Index* orders);

}  // namespace sixfold
