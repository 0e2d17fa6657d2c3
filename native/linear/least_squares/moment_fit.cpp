// Least squares of few columns from the moments alone, from the first pass over the rows to the figures of a
// certificate in one call: a fit of 100 x 4 is 8 us of arithmetic, and each call from Python takes 1 to 10.
//
//   minimise  w'A w / 2 - c.w + l1 |w|_1 + l2 |w|^2 / 2,     A = mean x x',  c = mean x y  (about the means)
//
// Without absolute values by Cholesky's factorisation, R'R = A + l2 I with columns scaled to a unit diagonal.
// With them (or with w >= 0) coordinate descent and Newton steps on the signs that it finds take turns, as in
// solvers/l1/active_set.py. What does not come to its end here is left to the solvers in Python.
//
// Then w and b are rounded to the type of the table, and what the moments say of them is bounded as in
// solvers/least_squares/slopes.py: slope g = c - A w, off by e_j <= lost size_j (size_y + size.|w|),
// mean residual `off`, mean square S. With t = min(1, l1 / max(|g_j| + e_j)), or 1 where l2 > 0, the dual
// point t r shows that with the best b the model is above the minimum by at most
//
//   (1 - t)^2 S / 2 + sum_j FY_j(w_j, t g_j),   |FY_j(w, g) - FY_j(w, g^)| <= e_j |w_j|          l2 = 0
//                                                                          <= e_j (|z_j - w_j| + e_j / l2)
//
// with z_j = soft(g_j, l1) / l2; without absolute values by |g|^2 / (2 l2), or (|R^-T g| + |R^-1| |e|)^2 / 2
// over (1 - lost)^2 without a penalty. off^2 / 2 is added for b.
#include "linear/least_squares/moment_fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "linear/l1/coordinate_descent.hpp"
#include "linear/least_squares/moments.hpp"
#include "linear/small_systems.hpp"

namespace sixfold {
namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();
constexpr double kUnit = 0.5 * kEps;
constexpr Index kShiftRows = 128;     // that a rough mean is taken from
constexpr double kConstant = 4.0;     // roundings of the square of a column: no more is left of a constant
constexpr double kDependent = 1e-12;  // squared pivot of columns that others add up to
constexpr Index kRounds = 6;          // of coordinate descent and Newton steps
constexpr Index kVisits = 5000;       // of columns a round
constexpr Index kFewestEpochs = 20;
constexpr Index kMostFaces = 10;   // Newton steps in a row, each on fewer columns
constexpr double kSettled = 1e-3;  // of the goal: moves that are no longer worth while

using Values = std::vector<double>;

// |R^-1| (Frobenius), from the last row of the inverse up.
double inverse_norm(const double* R, Index order) {
  Values inverse(static_cast<std::size_t>(order * order), 0.0);
  double total = 0.0;
  for (Index i = order - 1; i >= 0; --i) {
    double* __restrict row = inverse.data() + i * order;
    row[i] = 1.0;
    for (Index k = i + 1; k < order; ++k) {
      const double by = R[i * order + k];
      const double* __restrict other = inverse.data() + k * order;
      for (Index j = k; j < order; ++j) row[j] -= by * other[j];
    }
    const double over = 1.0 / R[i * order + i];
    for (Index j = i; j < order; ++j) {
      row[j] *= over;
      total += row[j] * row[j];
    }
  }
  return std::sqrt(total);
}

// The quadratic function, and what bounds its rounding.
struct Quadratic {
  Index d;
  Values A, c;   // d x d; c of the target at hand
  Values sizes;  // of all columns, as they bound the rounding of A and c
  double y2 = 0.0, size_y = 0.0, mean_y = 0.0;
};

// How far w is above the minimum at most with the best b, slopes g being off by `error` (or not at all).
double excess(const MomentProblem& of, const double* w, const double* g, const double* error, double square,
              Index d) {
  if (of.l1 == 0.0 && !of.positive) {  // |g - l2 w|^2 / (2 l2), the whole slope
    double total = 0.0;
    for (Index j = 0; j < d; ++j) {
      const double off = std::abs(g[j] - of.l2 * w[j]) + (error ? error[j] : 0.0);
      total += off * off;
    }
    return 0.5 * total / of.l2;
  }
  double t = 1.0, total = 0.0;
  if (of.l2 == 0.0) {
    double largest = 0.0;
    for (Index j = 0; j < d; ++j)
      largest = std::max(largest, (of.positive ? g[j] : std::abs(g[j])) + (error ? error[j] : 0.0));
    if (largest > of.l1) t = of.l1 / largest;
    total = 0.5 * (1.0 - t) * (1.0 - t) * square;
  }
  for (Index j = 0; j < d; ++j) {
    const double slope = t * g[j], off = error ? error[j] : 0.0;
    const double over = std::max((of.positive ? slope : std::abs(slope)) - of.l1, 0.0);
    if (of.l2 == 0.0) {
      total += std::max(of.l1 * std::abs(w[j]) - slope * w[j], 0.0) + off * std::abs(w[j]);
    } else {
      const double z = std::copysign(over, slope) / of.l2, apart = w[j] - z;
      total += 0.5 * of.l2 * apart * apart;
      total += std::max(of.l1 * std::abs(w[j]) - w[j] * (slope - of.l2 * z), 0.0);
      total += off * (std::abs(apart) + off / of.l2);
    }
  }
  return total;
}

// Coordinate descent and Newton steps on the signs found, on A without its constant columns.
class SignSearch {
 public:
  SignSearch(const MomentProblem& of, const Quadratic& q)
      : of_(of), q_(q), d_(q.d), slope_(q.c), support_(static_cast<std::size_t>(d_)) {}

  void run(double* w, Stop& stop) {
    const double goal = of_.goal * 0.5 * q_.y2;
    const Descent descent{of_.l1, of_.l2, of_.positive,
                          std::max(kVisits / std::max<Index>(d_, 1), kFewestEpochs),
                          kSettled * goal / static_cast<double>(std::max<Index>(d_, 1))};
    for (Index round = 0; round < kRounds; ++round) {
      if (!descend_gram(q_.A.data(), d_, slope_.data(), w, descent, stop).finished) return;
      for (Index face = 0; face < kMostFaces && step(w); ++face) {
      }
      const double square = q_.y2 - dot(w, q_.c.data(), d_) - dot(w, slope_.data(), d_);
      if (excess(of_, w, slope_.data(), nullptr, square, d_) <= goal) return;
    }
  }

 private:
  // A Newton step on the columns with a weight; true if some signs turned and another is worth while.
  bool step(double* w) {
    Index count = 0;
    for (Index j = 0; j < d_; ++j)
      if (w[j] != 0.0) support_[static_cast<std::size_t>(count++)] = j;
    if (count == 0) return false;
    const auto room = static_cast<std::size_t>(count);
    face_.resize(room * room);
    down_.resize(room), moved_.resize(room), after_.resize(room), scale_.resize(room);
    for (Index i = 0; i < count; ++i) scale_[i] = 1.0 / std::sqrt(entry(support_[i], support_[i]) + of_.l2);
    for (Index i = 0; i < count; ++i) {
      const Index row = support_[i];
      for (Index j = i + 1; j < count; ++j)
        face_[i * count + j] = entry(row, support_[j]) * scale_[i] * scale_[j];
      face_[i * count + i] = 1.0;
      down_[i] = slope_[row] - std::copysign(of_.l1, w[row]) - of_.l2 * w[row];
      moved_[i] = down_[i] * scale_[i];
    }
    if (!factor_upper(face_.data(), count, kDependent)) return false;
    solve_transposed(face_.data(), count, moved_.data());
    solve_upper(face_.data(), count, moved_.data());
    bool turned = false;
    for (Index i = 0; i < count; ++i) {
      const double before = w[support_[i]];
      after_[i] = before + moved_[i] * scale_[i];
      if (!(after_[i] * std::copysign(1.0, before) > 0.0)) after_[i] = 0.0, turned = true;
      moved_[i] = after_[i] - before;
    }
    // With the signs fixed the objective is down.step - step'A step / 2 lower, zeros included.
    image_.assign(static_cast<std::size_t>(d_), 0.0);
    double bend = 0.0, gain = 0.0;
    for (Index i = 0; i < count; ++i) {
      const double* row = q_.A.data() + support_[i] * d_;
      for (Index k = 0; k < d_; ++k) image_[k] += moved_[i] * row[k];
    }
    for (Index i = 0; i < count; ++i) {
      bend += moved_[i] * (image_[support_[i]] + of_.l2 * moved_[i]);
      gain += moved_[i] * down_[i];
    }
    if (turned && !(0.5 * bend < gain)) return false;
    for (Index i = 0; i < count; ++i) w[support_[i]] = after_[i];
    for (Index k = 0; k < d_; ++k) slope_[k] -= image_[k];
    return turned;
  }

  double entry(Index i, Index j) const { return q_.A[static_cast<std::size_t>(i * d_ + j)]; }

  const MomentProblem& of_;
  const Quadratic& q_;
  Index d_;
  Values slope_;
  std::vector<Index> support_;
  Values face_, down_, moved_, after_, scale_, image_;
};

template <class T>
Values rough_mean(const Table<T>& X, const Table<T>& Y) {
  const Index d = X.columns, p = d + Y.columns, every = std::max<Index>(X.rows / kShiftRows, 1);
  const Index count = (X.rows + every - 1) / every;
  Values mean(static_cast<std::size_t>(p), 0.0);
  for (Index i = 0; i < X.rows; i += every) {
    for (Index j = 0; j < d; ++j) mean[j] += static_cast<double>(X.row(i)[j * X.column_stride]);
    for (Index j = d; j < p; ++j) mean[j] += static_cast<double>(Y.row(i)[(j - d) * Y.column_stride]);
  }
  for (double& value : mean) value /= static_cast<double>(std::max<Index>(count, 1));
  return mean;
}

// Factors A + l2 I of scaled columns into room.R.
bool factor_all(const MomentProblem& of, const Quadratic& q, const MomentRoom& room, MomentResult& result) {
  const Index d = q.d;
  double off = 0.0;
  for (Index j = 0; j < d; ++j) {
    room.scale[j] = std::sqrt(std::max(q.A[j * d + j], 0.0) + of.l2);
    if (!(room.scale[j] > 0.0)) return false;
    const double ratio = q.sizes[j] / room.scale[j];
    off += ratio * ratio;
  }
  for (Index i = 0; i < d; ++i) {
    for (Index j = 0; j < d; ++j)
      room.R[i * d + j] = j < i ? 0.0 : q.A[i * d + j] / (room.scale[i] * room.scale[j]);
    room.R[i * d + i] += of.l2 / (room.scale[i] * room.scale[i]);
  }
  if (!factor_upper(room.R, d, 0.0)) return false;
  const double norm = result.inverse_norm = inverse_norm(room.R, d), width = static_cast<double>(d);
  result.lost = norm * norm * (of.rounding * off + 0.5 * (width + 2.0) * width * kEps);
  return true;
}

// What the moments say of w and b, of one target: the figures of a certificate.
void judge(const MomentProblem& of, const Quadratic& q, const double* mean, const MomentRoom& room,
           const MomentResult& factor, const double* w, double b, double* figures) {
  const Index d = q.d;
  const double width = static_cast<double>(d), lost = of.rounding + (2.0 * width + 8.0) * kUnit;
  double total = q.size_y, at_mean = q.mean_y, off_error = 0.0, terms = std::abs(q.mean_y) + std::abs(b);
  for (Index j = 0; j < d; ++j) {
    const double size = std::abs(w[j]);
    total += q.sizes[j] * size;
    at_mean -= mean[j] * w[j];
    off_error += (of.rounding * room.size[j] + 2.0 * kUnit * std::abs(mean[j])) * size;
    terms += std::abs(mean[j]) * size;
  }
  off_error += of.rounding * q.size_y + 2.0 * kUnit * std::abs(q.mean_y) + (width + 4.0) * kUnit * terms;
  const double off = of.centred ? std::abs(at_mean - b) : 0.0;
  if (!of.centred) off_error = 0.0;
  Values slope(q.c), error(static_cast<std::size_t>(d));
  double square = q.y2, absolute = 0.0, squared = 0.0;
  for (Index j = 0; j < d; ++j) {
    const double Aw = dot(q.A.data() + j * d, w, d);
    square += w[j] * (Aw - 2.0 * q.c[j]);
    slope[j] -= Aw;
    error[j] =
        lost * q.sizes[j] * total + 4.0 * kUnit * (std::abs(slope[j]) + of.l1 + of.l2 * std::abs(w[j]));
    absolute += std::abs(w[j]);
    squared += w[j] * w[j];
  }
  square = std::max(square + off * off, 0.0);
  const double square_error = lost * total * total + 2.0 * off * off_error + off_error * off_error;
  const double penalty = of.l1 * absolute + 0.5 * of.l2 * squared, of_b = off + off_error;
  double above = 0.5 * of_b * of_b;
  if (of.l1 == 0.0 && of.l2 == 0.0 && !of.positive) {
    double error_square = 0.0, left_square = 0.0;
    for (Index j = 0; j < d; ++j) {
      slope[j] /= room.scale[j];
      error_square += error[j] / room.scale[j] * (error[j] / room.scale[j]);
    }
    solve_transposed(room.R, d, slope.data());
    left_square = dot(slope.data(), slope.data(), d);
    const double left = std::sqrt(left_square) * (1.0 + width * kEps * factor.inverse_norm);
    const double most = (left + factor.inverse_norm * std::sqrt(error_square)) / (1.0 - factor.lost);
    above += factor.lost < 0.5 ? 0.5 * most * most : std::numeric_limits<double>::infinity();
  } else {
    above += excess(of, w, slope.data(), error.data(), square + square_error, d) + 16.0 * kUnit * penalty;
  }
  const double found[kMomentFigures] = {q.y2, q.mean_y, square, square_error, penalty, above};
  std::copy_n(found, kMomentFigures, figures);
}

}  // namespace

template <class T>
MomentResult moment_fit(const Table<T>& X, const Table<T>& Y, const double* weight,
                        const MomentProblem& problem, const MomentRoom& room, Stop& stop) {
  const Index d = X.columns, targets = Y.columns, p = d + targets;
  MomentResult result{MomentEnd::kStopped, 0.0, 0.0, 0.0};
  const Values shift = rough_mean(X, Y);
  Values gram(static_cast<std::size_t>((p + 1) * (p + 1)));
  if (!moments(X, Y, weight, shift.data(), nullptr, gram.data(), stop)) return result;
  const double total = result.weight = gram.back();
  result.end = MomentEnd::kNotFinite;
  if (!(total > 0.0)) return result;
  Values offset(gram.end() - p - 1, gram.end() - 1), sizes(static_cast<std::size_t>(p));
  for (Index j = 0; j < p; ++j) {
    offset[j] /= total;
    room.mean[j] = shift[j] + offset[j];
    room.size[j] = std::sqrt(gram[j * (p + 2)] / total);
    sizes[j] = problem.centred ? room.size[j] : std::hypot(room.size[j], room.mean[j]);
    if (!(sizes[j] * sizes[j] < std::numeric_limits<double>::infinity())) return result;
  }
  for (Index i = 0; i < p; ++i)
    for (Index j = 0; j < p; ++j)
      room.scatter[i * p + j] = gram[i * (p + 1) + j] - total * offset[i] * offset[j];
  const auto second = [&](Index i, Index j) {
    const double about_mean = room.scatter[i * p + j] / total;
    return problem.centred ? about_mean : about_mean + room.mean[i] * room.mean[j];
  };
  Quadratic q{d, Values(static_cast<std::size_t>(d * d)), Values(static_cast<std::size_t>(d)), sizes};
  for (Index i = 0; i < d; ++i)
    for (Index j = 0; j < d; ++j) {
      q.A[i * d + j] = second(i, j);
      if (!std::isfinite(q.A[i * d + j])) return result;
    }
  const bool kinks = problem.l1 > 0.0 || problem.positive;
  result.end = MomentEnd::kNoFactor;
  if (!kinks && !factor_all(problem, q, room, result)) return result;
  std::vector<char> constant(static_cast<std::size_t>(d));
  for (Index j = 0; j < d; ++j)
    constant[j] = kinks && q.A[j * d + j] <= kConstant * problem.rounding * sizes[j] * sizes[j];
  Quadratic steps = q;  // whose constant columns are exactly 0, so that they get no weight
  for (Index i = 0; i < d; ++i)
    for (Index j = 0; j < d; ++j)
      if (constant[i] || constant[j]) steps.A[i * d + j] = 0.0;
  Values w(static_cast<std::size_t>(d));
  for (Index target = 0; target < targets; ++target) {
    const Index y = d + target;
    for (Index j = 0; j < d; ++j) {
      q.c[j] = second(j, y);
      steps.c[j] = constant[j] ? 0.0 : q.c[j];
    }
    q.y2 = steps.y2 = second(y, y);
    q.size_y = sizes[y];
    q.mean_y = room.mean[y];
    std::fill(w.begin(), w.end(), 0.0);
    if (kinks) {
      SignSearch(problem, steps).run(w.data(), stop);
    } else {
      for (Index j = 0; j < d; ++j) w[j] = q.c[j] / room.scale[j];
      solve_transposed(room.R, d, w.data());
      solve_upper(room.R, d, w.data());
      for (Index j = 0; j < d; ++j) w[j] /= room.scale[j];
    }
    double b = problem.centred ? q.mean_y : 0.0;
    for (Index j = 0; j < d; ++j) {
      w[j] = static_cast<double>(static_cast<T>(w[j]));
      if (problem.centred) b -= room.mean[j] * w[j];
      room.w[j * targets + target] = w[j];
    }
    room.b[target] = b = static_cast<double>(static_cast<T>(b));
    judge(problem, q, room.mean, room, result, w.data(), b, room.figures + target * kMomentFigures);
  }
  result.end = stop.now() ? MomentEnd::kStopped : MomentEnd::kDone;
  return result;
}

template MomentResult moment_fit(const Table<double>&, const Table<double>&, const double*,
                                 const MomentProblem&, const MomentRoom&, Stop&);
template MomentResult moment_fit(const Table<float>&, const Table<float>&, const double*,
                                 const MomentProblem&, const MomentRoom&, Stop&);

}  // namespace sixfold
