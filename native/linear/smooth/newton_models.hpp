// Value, gradient and curvature of a linear model on packed rows: one score a row (OneScore), or one a class
// (AllClasses), neither penalised; see newton_fit.cpp.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "core/threads.hpp"
#include "core/vector_math.hpp"
#include "linear/smooth/newton_rows.hpp"
#include "linear/smooth/smooth_losses.hpp"

namespace sixfold {

inline constexpr Index kTileSums = whole(kTile * kTile, kLanes);

// c[i * stride + j] += sum_r a_i[r] b_j[r] for columns of a block, in tiles; those below the diagonal are
// left out where c is symmetric.
inline void add_products(const double* a, Index rows, const double* b, Index columns, Index count, bool upper,
                         double* c, Index stride) {
  for (Index i = 0; i < rows; i += kTile)
    for (Index j = upper ? i : 0; j < columns; j += kTile) {
      Lanes sums[kTileSums] = {};
      for (Index r = 0; r < count; r += kLanes) {
        Lanes left[kTile], right[kTile];
#pragma GCC unroll 4
        for (Index m = 0; m < kTile; ++m) {
          left[m] = load(a + (i + m) * kBlock + r);
          right[m] = load(b + (j + m) * kBlock + r);
        }
#pragma GCC unroll 4
        for (Index m = 0; m < kTile; ++m)
#pragma GCC unroll 4
          for (Index v = 0; v < kTile; ++v) sums[m * kTile + v] += left[m] * right[v];
      }
      double totals[kTileSums];
#pragma GCC unroll 5
      for (Index k = 0; k < kTileSums; k += kLanes) {
        Lanes some[kLanes];
#pragma GCC unroll 8
        for (Index v = 0; v < kLanes; ++v) some[v] = sums[k + v];
        store(totals + k, sums_of(some));
      }
      for (Index m = 0; m < kTile; ++m)
        for (Index v = 0; v < kTile; ++v) c[(i + m) * stride + j + v] += totals[m * kTile + v];
    }
}

// to_j[r] = factor[r] column_j[r]
inline void scale_columns(const Packed& of, const double* z, const double* factor, Index count, double* to) {
  for (Index j = 0; j < of.tall; ++j) {
    const double* column = z + j * kBlock;
    for (Index r = 0; r < count; r += kLanes) store(to + j * kBlock + r, load(factor + r) * load(column + r));
  }
}

// score[r] = theta.z_r
inline void block_scores(const Packed& of, const double* z, const double* theta, Index count, double* score) {
  for (Index r = 0; r < count; r += kLanes) {
    Lanes even{}, odd{};
    Index j = 0;
    for (; j + 2 <= of.width; j += 2) {
      even += theta[j] * load(z + j * kBlock + r);
      odd += theta[j + 1] * load(z + (j + 1) * kBlock + r);
    }
    if (j < of.width) even += theta[j] * load(z + j * kBlock + r);
    store(score + r, even + odd);
  }
}

// The sums behind a bound, of one score.
struct Moments {
  Lanes score_squares{}, slope_squares{}, slope{}, size{}, products{}, mass{};

  void add(Lanes q, Lanes s, Lanes u) {
    score_squares += q * s * s;
    slope_squares += q * u * u;
    slope += q * u;
    size += q * magnitude(u);
    products += q * magnitude(s * u);
  }
  void add(const Moments& other) {
    score_squares += other.score_squares;
    slope_squares += other.slope_squares;
    slope += other.slope;
    size += other.size;
    products += other.products;
    mass += other.mass;
  }
  void write(double* to) const {
    to[kScoreSquares] = sum(score_squares);
    to[kSlopeSquares] = sum(slope_squares);
    to[kSlope] = sum(slope);
    to[kSlopeSize] = sum(size);
    to[kProducts] = sum(products);
    to[kMass] = sum(mass);
  }
};

// What one thread adds up over its chunk of the rows, and where it works.
struct Part {
  double value = 0.0, log_chance = 0.0;
  AlignedArray<double> slopes, bends, scaled, grams, total, packed;
  std::vector<Moments> moments;

  // `kept` numbers a row, and products of `pairs` kinds.
  Part(const Packed& of, Index scores, Index kept, Index pairs)
      : slopes(aligned_zeros(whole(scores, kTile) * kBlock)),
        bends(kept * kBlock),
        scaled(of.tall * kBlock),
        grams(pairs * of.tall * of.tall),
        total(whole(scores, kTile) * of.tall),
        packed(aligned_zeros(of.room())),
        moments(static_cast<std::size_t>(scores)) {}
};

inline std::vector<Part> make_parts(const Packed& of, Index scores, Index kept, Index pairs) {
  std::vector<Part> parts;
  parts.reserve(static_cast<std::size_t>(of.chunks()));
  for (Index c = 0; c < of.chunks(); ++c) parts.emplace_back(of, scores, kept, pairs);
  return parts;
}

// Calls run(part, block) for every block, and adds up in `parts[0]`: in the same order for any number of
// threads.
template <class Run>
void add_blocks(const Packed& of, std::vector<Part>& parts, Index scores, Index pairs, bool curved, Run run) {
  const Index chunks = of.chunks(), grams = curved ? pairs * of.tall * of.tall : 0;
  const Index total = whole(scores, kTile) * of.tall;
  const double products = 1.0 + static_cast<double>(curved ? pairs * of.width : scores) / 16.0;
  const int team = team_size(chunks, static_cast<double>(of.rows * of.width) * products);
#pragma omp parallel for num_threads(team) schedule(dynamic) if (team > 1)
  for (Index c = 0; c < chunks; ++c) {
    Part& part = parts[static_cast<std::size_t>(c)];
    part.value = part.log_chance = 0.0;
    std::fill_n(part.grams.data(), grams, 0.0);
    std::fill_n(part.total.data(), total, 0.0);
    std::fill(part.moments.begin(), part.moments.end(), Moments{});
    for (Index block = cut(of.blocks, chunks, c); block < cut(of.blocks, chunks, c + 1); ++block)
      run(part, block);
  }
  Part& sum = parts[0];
  for (Index c = 1; c < chunks; ++c) {
    const Part& part = parts[static_cast<std::size_t>(c)];
    sum.value += part.value;
    sum.log_chance = std::max(sum.log_chance, part.log_chance);
    for (Index j = 0; j < grams; ++j) sum.grams.data()[j] += part.grams.data()[j];
    for (Index j = 0; j < total; ++j) sum.total.data()[j] += part.total.data()[j];
    for (std::size_t k = 0; k < sum.moments.size(); ++k) sum.moments[k].add(part.moments[k]);
  }
}

// One target: theta has `width` entries.
template <class Loss>
struct OneScore {
  const Packed& of;
  const double* y;
  double l2;
  Index scores = 1;
  std::vector<Part> parts = make_parts(of, 1, 1, 1);

  OneScore(const Packed& rows, const double* labels, double penalty) : of(rows), y(labels), l2(penalty) {}

  Index size() const { return of.width; }

  // The value; gradient, and curvature (the upper triangle) and the sums behind a bound unless null.
  double pass(const double* theta, double* score, double* gradient, double* curvature, Moments* moments) {
    add_blocks(of, parts, 1, 1, curvature != nullptr, [&](Part& part, Index block) {
      const Index count = of.count(block), at = block * kBlock;
      const double* z = of.block(block, part.packed.data());
      block_scores(of, z, theta, count, score + at);
      Lanes loss{};
      for (Index r = 0; r < count; r += kLanes) {
        const Lanes q = load(of.q.data() + at + r), s = load(score + at + r);
        const LossTerms terms = Loss::at(s, load(y + at + r));
        loss += q * terms.value;
        store(part.slopes.data() + r, q * terms.slope);
        store(part.bends.data() + r, q * terms.curvature);
        if (moments == nullptr) continue;
        part.moments[0].add(q, s, terms.slope);
        part.moments[0].mass += load(y + at + r) > 0.0 ? q : Lanes{};
      }
      part.value += sum(loss);
      add_products(part.slopes.data(), 1, z, of.tall, count, false, part.total.data(), of.tall);
      if (curvature == nullptr) return;
      scale_columns(of, z, part.bends.data(), count, part.scaled.data());
      add_products(part.scaled.data(), of.tall, z, of.tall, count, true, part.grams.data(), of.tall);
    });
    std::copy_n(parts[0].total.data(), of.width, gradient);
    if (curvature != nullptr)
      for (Index j = 0; j < of.width; ++j)
        std::copy_n(parts[0].grams.data() + j * of.tall + j, of.width - j, curvature + j * of.width + j);
    if (moments != nullptr) *moments = parts[0].moments[0];
    return parts[0].value;
  }

  double slope_along(const double* from, const double* to, double length) const {
    Lanes slope{};
    for (Index r = 0; r < of.padded; r += kLanes) {
      const Lanes start = load(from + r), way = load(to + r) - start;
      slope += load(of.q.data() + r) * Loss::at(start + length * way, load(y + r)).slope * way;
    }
    return sum(slope);
  }

  double log_chance() const { return 0.0; }

  Index wrong(const double* score) const {
    Index count = 0;
    for (Index i = 0; i < of.rows; ++i) count += of.q.data()[i] > 0.0 && !(y[i] * score[i] > 0.0);
    return count;
  }
};

// Softmax: theta has `width` entries a class, one class after the other.
struct AllClasses {
  const Packed& of;
  const double* y;
  double l2;
  Index scores, pairs = scores * (scores - 1) / 2;
  std::vector<Part> parts = make_parts(of, scores, scores + 1, pairs);

  AllClasses(const Packed& rows, const double* labels, double penalty, Index classes)
      : of(rows), y(labels), l2(penalty), scores(classes) {}

  Index size() const { return scores * of.width; }

  double pass(const double* theta, double* score, double* gradient, double* curvature, Moments* moments) {
    const Index square = of.tall * of.tall;
    add_blocks(of, parts, scores, pairs, curvature != nullptr, [&](Part& part, Index block) {
      const Index count = of.count(block), at = block * kBlock;
      const double* z = of.block(block, part.packed.data());
      for (Index k = 0; k < scores; ++k)
        block_scores(of, z, theta + k * of.width, count, score + k * of.padded + at);
      add_terms(part, at, count, score, moments != nullptr);
      add_products(part.slopes.data(), scores, z, of.tall, count, false, part.total.data(), of.tall);
      if (curvature == nullptr) return;
      double* gram = part.grams.data();
      double* share = part.bends.data() + scores * kBlock;
      for (Index k = 0; k < scores; ++k)
        for (Index other = 0; other < k; ++other, gram += square) {
          const double *p = part.bends.data() + k * kBlock, *p_other = part.bends.data() + other * kBlock;
          for (Index r = 0; r < count; r += kLanes)
            store(share + r, load(of.q.data() + at + r) * load(p + r) * load(p_other + r));
          scale_columns(of, z, share, count, part.scaled.data());
          add_products(part.scaled.data(), of.tall, z, of.tall, count, true, gram, of.tall);
        }
    });
    for (Index k = 0; k < scores; ++k)
      std::copy_n(parts[0].total.data() + k * of.tall, of.width, gradient + k * of.width);
    if (curvature != nullptr) put_together(parts[0].grams.data(), curvature);
    if (moments != nullptr) std::copy_n(parts[0].moments.data(), scores, moments);
    return parts[0].value;
  }

  // Slopes and probabilities of a block, and its part of the value. p_y - 1 is minus the sum of the others,
  // which keeps its digits when p_y is nearly 1; so does the loss.
  void add_terms(Part& part, Index at, Index count, const double* score, bool measured) const {
    Lanes loss{}, least{};
    for (Index r = 0; r < count; r += kLanes) {
      const Lanes q = load(of.q.data() + at + r), label = load(y + at + r);
      const double* s = score + at + r;
      double* p = part.bends.data() + r;
      Lanes most = load(s), lowest = most, own = most, mine{}, others{};
      for (Index k = 1; k < scores; ++k) {
        const Lanes one = load(s + k * of.padded);
        most = larger(most, one);
        lowest = smaller(lowest, one);
        own = label == static_cast<double>(k) ? one : own;
      }
      for (Index k = 0; k < scores; ++k) {
        const Lanes e = exponential(load(s + k * of.padded) - most);
        const auto is_own = label == static_cast<double>(k);
        mine = is_own ? e : mine;
        others += is_own ? Lanes{} : e;
        store(p + k * kBlock, e);
      }
      const Lanes share = 1.0 / (others + mine);
      const Lanes rest = own == most ? others : larger(others + mine - 1.0, Lanes{});
      const Lanes excess = log_of_one_plus(rest);
      loss += q * (excess + (most - own));
      least = smaller(least, q > 0.0 ? lowest - most - excess : Lanes{});
      for (Index k = 0; k < scores; ++k) {
        const Lanes chance = load(p + k * kBlock) * share;
        const Lanes slope = label == static_cast<double>(k) ? -others * share : chance;
        store(p + k * kBlock, chance);
        store(part.slopes.data() + k * kBlock + r, q * slope);
        if (!measured) continue;
        Moments& moments = part.moments[static_cast<std::size_t>(k)];
        moments.add(q, load(s + k * of.padded), slope);
        moments.mass += q * chance;
      }
    }
    for (Index v = 0; v < kLanes; ++v) part.log_chance = std::max(part.log_chance, -least[v]);
    part.value += sum(loss);
  }

  double log_chance() const { return parts[0].log_chance; }

  // The curvature from its blocks of pairs: those on the diagonal are minus the sum of the others.
  void put_together(const double* gram, double* curvature) const {
    const Index order = size(), width = of.width;
    std::fill_n(curvature, order * order, 0.0);
    for (Index k = 0; k < scores; ++k)
      for (Index other = 0; other < k; ++other, gram += of.tall * of.tall)
        for (Index i = 0; i < width; ++i)
          for (Index j = i; j < width; ++j) {
            const double value = gram[i * of.tall + j];
            curvature[(k * width + i) * order + k * width + j] += value;
            curvature[(other * width + i) * order + other * width + j] += value;
            curvature[(other * width + i) * order + k * width + j] = -value;
            curvature[(other * width + j) * order + k * width + i] = -value;
          }
    for (Index j = 0; j < width; ++j) {
      double mean = 0.0;
      for (Index k = 0; k < scores; ++k) mean += curvature[(k * width + j) * (order + 1)];
      mean /= static_cast<double>(scores * scores);
      for (Index k = 0; k < scores; ++k)
        for (Index other = k; other < scores; ++other)
          curvature[(k * width + j) * order + other * width + j] += mean;
    }
  }

  double slope_along(const double* from, const double* to, double length) const {
    const Lanes zero{};
    Lanes slope = zero;
    for (Index r = 0; r < of.padded; r += kLanes) {
      const auto at = [&](Index k) {
        const Lanes start = load(from + k * of.padded + r);
        return start + length * (load(to + k * of.padded + r) - start);
      };
      Lanes most = at(0), total{}, moved{};
      for (Index k = 1; k < scores; ++k) most = larger(most, at(k));
      for (Index k = 0; k < scores; ++k) {
        const Lanes e = exponential(at(k) - most);
        const Lanes way = load(to + k * of.padded + r) - load(from + k * of.padded + r);
        total += e;
        moved += e * way;
      }
      const Lanes q = load(of.q.data() + r), own_class = load(y + r);
      slope += q * moved / total;
      for (Index k = 0; k < scores; ++k) {
        const Lanes way = load(to + k * of.padded + r) - load(from + k * of.padded + r);
        slope -= own_class == static_cast<double>(k) ? q * way : zero;
      }
    }
    return sum(slope);
  }

  Index wrong(const double* score) const {
    Index count = 0;
    for (Index i = 0; i < of.rows; ++i) {
      const Index own = static_cast<Index>(y[i]);
      bool top = true;
      for (Index k = 0; k < scores; ++k)
        top &= k == own || score[own * of.padded + i] > score[k * of.padded + i];
      count += of.q.data()[i] > 0.0 && !top;
    }
    return count;
  }
};

}  // namespace sixfold
