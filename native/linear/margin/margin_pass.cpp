// One pass over the rows of a hinge (solvers/margin/margin_band.py states what it is for):
//
//     m_i = y_i z_i.v        loss = sum_i q_i max(0, 1 - m_i)        sum of q_i z_i where m_i - 1 <= -width
#include "linear/margin/margin_pass.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace sixfold {
namespace {

constexpr Index kLeastBin = (1023 - 40) * 2;  // exponent and first binary place of 2^-40
constexpr Index kSummedRows = 1024;           // that are added up before their sum joins that of the others

inline Index bin_of(double distance) {
  const auto place = static_cast<Index>(std::bit_cast<std::uint64_t>(distance) >> 51);
  return std::clamp<Index>(place - kLeastBin + 1, 0, kDistanceBins - 1);
}

struct Piece {
  std::vector<double> sums, recent;  // of all rows but the last ones, and of these
  std::vector<Index> counts;
  MarginSums found{};
  Index waiting = 0;

  void settle() {
    for (std::size_t j = 0; j < sums.size(); ++j) {
      sums[j] += recent[j];
      recent[j] = 0.0;
    }
    waiting = 0;
  }
};

}  // namespace

bool margin_pass(const AnyRows& table, const double* v, const SignedRows& rows, double width, double* beyond,
                 double* sums, Index* counts, MarginSums* found, Stop& stop) {
  const Index n = rows_of(table), d = columns_of(table), span = d + 2;
  std::vector<Piece> parts(static_cast<std::size_t>(pieces(n)));
  for (Piece& part : parts) {
    part.sums.assign(static_cast<std::size_t>(2 * span), 0.0);
    part.recent.assign(static_cast<std::size_t>(2 * span), 0.0);
    part.counts.assign(kDistanceBins, 0);
  }
  const bool finished = for_few_rows(table, stop, [&](const auto& X, Index piece, Index first, Index count) {
    Piece& part = parts[static_cast<std::size_t>(piece)];
    double score[kFewRows], g[2 * kFewRows];
    X.scores(first, count, v, score);
    double loss = 0.0, low = 0.0, high = 0.0;
    Index wrong = 0;
    for (Index k = 0; k < count; ++k) {
      const Index i = first + k;
      const double y = rows.y[i * rows.y_stride], q = rows.weight == nullptr ? 1.0 : rows.weight[i];
      const double margin = y * score[k], past = margin - 1.0;
      const bool counted = q > 0.0, inside = counted && past <= -width;
      beyond[i] = counted ? past : std::numeric_limits<double>::quiet_NaN();
      loss += counted && past < 0.0 ? -q * past : 0.0;
      wrong += counted && margin <= 0.0;
      g[k] = inside && y < 0.0 ? q : 0.0;
      g[kFewRows + k] = inside && y > 0.0 ? q : 0.0;
      low += g[k];
      high += g[kFewRows + k];
      if (counted) ++part.counts[static_cast<std::size_t>(bin_of(std::abs(past)))];
    }
    part.found.loss += loss;
    part.found.wrong += wrong;
    if (low > 0.0 || high > 0.0) {
      double* recent = part.recent.data();
      X.template add_slopes<2>(first, count, g, recent);  // the first 2 (d + 1) entries
      recent[2 * d + 2] += low;
      recent[2 * d + 3] += high;
    }
    if ((part.waiting += count) >= kSummedRows) part.settle();
  });
  std::fill_n(sums, 2 * span, 0.0);
  std::fill_n(counts, kDistanceBins, Index{0});
  *found = MarginSums{};
  for (Piece& part : parts) {
    part.settle();
    for (Index c = 0; c < 2; ++c) {
      for (Index j = 0; j <= d; ++j)
        sums[c * span + j] += part.sums[static_cast<std::size_t>(c * (d + 1) + j)];
      sums[c * span + d + 1] += part.sums[static_cast<std::size_t>(2 * (d + 1) + c)];
    }
    for (std::size_t k = 0; k < kDistanceBins; ++k) counts[k] += part.counts[k];
    found->loss += part.found.loss;
    found->wrong += part.found.wrong;
  }
  return finished;
}

}  // namespace sixfold
