// The vector registers of the level this file is compiled for, as the compiler's own vector type: arithmetic
// operators work on it, and it compiles on every processor (two doubles where nothing is known).
#pragma once

#include "table.hpp"

namespace sixfold {

#if defined(__AVX512F__)
inline constexpr Index kLanes = 8;
#elif defined(__AVX__)
inline constexpr Index kLanes = 4;
#else
inline constexpr Index kLanes = 2;
#endif

using Lanes = double __attribute__((vector_size(kLanes * sizeof(double))));
using LooseLanes =
    double __attribute__((vector_size(kLanes * sizeof(double)), aligned(sizeof(double)), may_alias));

inline Lanes load(const double* from) { return *reinterpret_cast<const LooseLanes*>(from); }
inline void store(double* to, Lanes value) { *reinterpret_cast<LooseLanes*>(to) = value; }

}  // namespace sixfold
