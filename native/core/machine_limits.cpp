#include "core/machine_limits.hpp"

#include "core/simd.hpp"
#include "core/vector_math.hpp"

namespace sixfold {
namespace {

constexpr Index kChains = kLanes == 8 ? 24 : 12;  // that registers hold: enough for two units of four cycles

}  // namespace

double sum_numbers(const double* numbers, Index count) {
  Lanes sums[8] = {};
  Index i = 0;
  for (; i + 8 * kLanes <= count; i += 8 * kLanes)
#pragma GCC unroll 8
    for (Index v = 0; v < 8; ++v) sums[v] += load(numbers + i + v * kLanes);
  double rest = 0.0;
  for (; i < count; ++i) rest += numbers[i];
  for (Index v = 0; v < 8; ++v) rest += sum(sums[v]);
  return rest;
}

double multiply_and_add(Index rounds) {
  Lanes chains[kChains];
  for (Index k = 0; k < kChains; ++k) chains[k] = broadcast(1.0 + static_cast<double>(k));
  const Lanes factor = broadcast(0.5), term = broadcast(1.0);
  for (Index round = 0; round < rounds; ++round)
#pragma GCC unroll 24
    for (Index k = 0; k < kChains; ++k) chains[k] = chains[k] * factor + term;
  double total = 0.0;
  for (Index k = 0; k < kChains; ++k) total += sum(chains[k]);
  // All chains tend to 2: what is returned depends on them, so that no compiler leaves them out.
  return total > 0.0 ? 2.0 * static_cast<double>(rounds * kChains * kLanes) : 0.0;
}

}  // namespace sixfold
