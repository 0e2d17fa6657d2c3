// Two tiny loops that measure what one core can do, for benchmarks/roofline.
#pragma once

#include "core/table.hpp"

namespace sixfold {

// The sum of the numbers: a loop that waits for nothing but memory.
double sum_numbers(const double* numbers, Index count);

// As many multiplications with an addition, in registers, that do not wait for each other; returns how many
// operations that were, a multiplication and an addition each counted.
double multiply_and_add(Index rounds);

}  // namespace sixfold
