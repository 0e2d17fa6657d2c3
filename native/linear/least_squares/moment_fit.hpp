#pragma once

#include "core/stop.hpp"
#include "core/table.hpp"

namespace sixfold {

// What is minimised beside the mean squared error / 2, and how far: see moment_fit.cpp.
struct MomentProblem {
  double l1, l2;
  bool positive, centred;
  double rounding;  // of an entry of the moments, in the sizes of its columns
  double goal;      // of half the mean square of a target: the gap at which an iteration ends
};

// Where what was found is put: p = columns + targets, d = columns, k = targets.
struct MomentRoom {
  double *mean, *size;  // p
  double* scatter;      // p x p
  double *w, *b;        // d x k, k
  double* figures;      // k x kMomentFigures
  double *scale, *R;    // d, d x d: the factor, where there are no absolute values
};

// Of a target: mean y^2, mean y, mean r^2, what that may be off by, the penalty, and the gap.
inline constexpr Index kMomentFigures = 6;

enum class MomentEnd { kDone, kStopped, kNotFinite, kNoFactor };

struct MomentResult {
  MomentEnd end;
  double weight;              // their sum
  double inverse_norm, lost;  // of the factor: |R^-1| (Frobenius), and how far it is off at most
};

template <class T>
MomentResult moment_fit(const Table<T>& X, const Table<T>& Y, const double* weight,
                        const MomentProblem& problem, const MomentRoom& room, Stop& stop);

}  // namespace sixfold
