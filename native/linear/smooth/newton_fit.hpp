// Newton's method from the start to the end for dense tables of few columns; see newton_fit.cpp.
#pragma once

#include <functional>

#include "core/stop.hpp"
#include "core/table.hpp"
#include "linear/loss_functions.hpp"

namespace sixfold {

// minimise  sum_i q_i loss(w.x_i + b, y_i) + l2 |w|^2 / 2,  q_i = weight_i / sum of weights
template <class T>
struct NewtonProblem {
  Table<T> X;
  Table<T> y;            // -1 and +1, a column a target; or one column of class numbers
  const double* weight;  // null: every row counts the same
  double weight_sum;     // or the number of rows
  LossCode loss;         // logistic, squared hinge or softmax
  Index scores;          // targets, or classes
  double l2;             // above 0 for classes
  bool intercept;
  double enough;     // estimated gap of one target at which it is done
  double scale;      // what gaps are judged against
  Index most_steps;  // of one target; with none, the sums at the model that is given, about the means given
  bool started;      // whether the model that is handed in is where to begin
};

// What a target's sums are, in the order of the columns of `sums`: all over the rows with weights q_i, with s
// the score, u the slope of the loss and p the probability of a class (of one score, whether y is +1).
inline constexpr Index kSums = 8;
enum SumOf : Index { kLoss, kScoreSquares, kSlopeSquares, kSlope, kSlopeSize, kProducts, kMass, kCentred };

// The model of the minimum as the type of the table holds it, and the sums behind its objective and bound.
struct NewtonModel {
  double* w;        // columns x scores
  double* b;        // scores; both are where a started descent begins
  double* means;    // columns: the weighted means, which the columns are moved by where there is an intercept
  double* slope;    // columns x scores: sum_i q_i u_i (x_i - mean)
  double* lengths;  // columns: sum_i q_i (x_ij - mean_j)^2
  double* reach;    // columns: the largest |x_ij - mean_j| of rows that count
  double* sums;     // scores x kSums
  double* curvature;  // scores x width x width, the upper triangles: sum_i q_i loss''(s_i) z_i z_i'; or null
};

enum class NewtonEnd : int { done, stopped, stuck };

// Hears of every step (target, value, gap); true ends the descent.
using NewtonReport = std::function<bool(Index, double, double)>;

struct NewtonOutcome {
  NewtonEnd end = NewtonEnd::stuck;  // only then there is no model; where stopped, the best so far
  Index wrong = 0;          // rows that count whose own class is not on top, or as much so as another one
  double log_chance = 0.0;  // largest log(1 / p) of any class and row that counts
  Index depth = 0;          // additions that a term of a sum over the rows goes through at most
  double largest = 0.0;     // |score| of a row that counts
  double move = 0.0;        // by which the last step has moved such a score at most
};

template <class T>
NewtonOutcome newton_fit(const NewtonProblem<T>& problem, const NewtonModel& model,
                         const NewtonReport& report, Stop& stop);

}  // namespace sixfold
