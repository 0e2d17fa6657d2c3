// Bindings of the search by lower bounds.
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "neighbors/projected/lower_bounds.hpp"
#include "neighbors/projected/projected_search.hpp"
#include "neighbors/projected/tile_products.hpp"

namespace sixfold {
namespace {

template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using FloatMatrix = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using OutFloatMatrix = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using FloatPanels = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using OutFloatPanels = nb::ndarray<float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using OutIndices = nb::ndarray<Index, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class A>
bool has_shape(const A& array, std::initializer_list<Index> shape) {
  std::size_t axis = 0;
  for (const Index length : shape)
    if (static_cast<Index>(array.shape(axis++)) != length) return false;
  return true;
}

template <class T>
Frame frame_of(const Rows<T>& X, const Vector& centre, double scale) {
  expect(centre.shape(0) == X.shape(1), "the centre must have one entry a column");
  return {centre.data(), scale, static_cast<Index>(X.shape(1))};
}

Directions directions_of(const FloatMatrix& V, Index columns, double skew, double quiet) {
  expect(has_shape(V, {columns, kFineWidth}), "there must be one direction a column, one row a column of X");
  expect(skew >= 0.0 && skew <= 0x1p-10 && quiet > 0.0, "the directions must be orthonormal");
  return {V.data(), skew, quiet};
}

template <class T>
void bind_features(nb::module_& m) {
  m.def(
      "project_rows",
      [](const Rows<T>& X, const Vector& centre, double scale, const FloatMatrix& V, double skew,
         double quiet, OutFloatPanels coarse, OutFloatMatrix fine) {
        const Index rows = static_cast<Index>(X.shape(0));
        const Frame frame = frame_of(X, centre, scale);
        const Directions directions = directions_of(V, frame.columns, skew, quiet);
        expect(has_shape(coarse, {panels_of(rows), kCoarseWidth, kPanelRows}), "coarse has the wrong shape");
        expect(has_shape(fine, {rows, kFineWidth}), "fine has the wrong shape");
        nb::gil_scoped_release release;
        projected_features(X.data(), rows, frame, directions, false,
                           {coarse.data(), fine.data(), nullptr, nullptr});
      },
      nb::arg("X").noconvert(), nb::arg("centre").noconvert(), nb::arg("scale"), nb::arg("V").noconvert(),
      nb::arg("skew"), nb::arg("quiet"), nb::arg("coarse").noconvert(), nb::arg("fine").noconvert());
  m.def(
      "project_queries",
      [](const Rows<T>& X, const Vector& centre, double scale, const FloatMatrix& V, double skew,
         double quiet, OutFloatMatrix coarse, OutVector coarse_base, OutFloatMatrix fine,
         OutVector fine_base) {
        const Index rows = static_cast<Index>(X.shape(0));
        const Frame frame = frame_of(X, centre, scale);
        const Directions directions = directions_of(V, frame.columns, skew, quiet);
        expect(has_shape(coarse, {rows, kCoarseWidth}) && has_shape(coarse_base, {rows}),
               "coarse has the wrong shape");
        expect(has_shape(fine, {rows, kFineWidth}) && has_shape(fine_base, {rows}),
               "fine has the wrong shape");
        nb::gil_scoped_release release;
        projected_features(X.data(), rows, frame, directions, true,
                           {coarse.data(), fine.data(), coarse_base.data(), fine_base.data()});
      },
      nb::arg("X").noconvert(), nb::arg("centre").noconvert(), nb::arg("scale"), nb::arg("V").noconvert(),
      nb::arg("skew"), nb::arg("quiet"), nb::arg("coarse").noconvert(), nb::arg("coarse_base").noconvert(),
      nb::arg("fine").noconvert(), nb::arg("fine_base").noconvert());
  m.def(
      "pack_rows",
      [](const Rows<T>& X, const Vector& centre, double scale, OutFloatPanels coarse) {
        const Index rows = static_cast<Index>(X.shape(0));
        const Frame frame = frame_of(X, centre, scale);
        expect(has_shape(coarse, {panels_of(rows), frame.columns + 1, kPanelRows}),
               "coarse has the wrong shape");
        nb::gil_scoped_release release;
        identity_features(X.data(), rows, frame, false, {coarse.data(), nullptr, nullptr, nullptr});
      },
      nb::arg("X").noconvert(), nb::arg("centre").noconvert(), nb::arg("scale"),
      nb::arg("coarse").noconvert());
  m.def(
      "pack_queries",
      [](const Rows<T>& X, const Vector& centre, double scale, OutFloatMatrix coarse, OutVector base) {
        const Index rows = static_cast<Index>(X.shape(0));
        const Frame frame = frame_of(X, centre, scale);
        expect(has_shape(coarse, {rows, frame.columns + 1}) && has_shape(base, {rows}),
               "coarse has the wrong shape");
        nb::gil_scoped_release release;
        identity_features(X.data(), rows, frame, true, {coarse.data(), nullptr, base.data(), nullptr});
      },
      nb::arg("X").noconvert(), nb::arg("centre").noconvert(), nb::arg("scale"),
      nb::arg("coarse").noconvert(), nb::arg("base").noconvert());
}

// The features of queries: coarse with its base, and fine with its base if there is a second level.
struct QueryFeatures {
  FloatMatrix coarse;
  Vector coarse_base;
  std::optional<FloatMatrix> fine;
  std::optional<Vector> fine_base;
};

template <class T, class Q>
SearchTables<T, Q> tables_of(const Rows<T>& X, const Rows<Q>& queries, const FloatPanels& coarse,
                             const std::optional<FloatMatrix>& fine, const QueryFeatures& of_queries,
                             double scale, bool root) {
  const Index rows = static_cast<Index>(X.shape(0)), columns = static_cast<Index>(X.shape(1));
  const Index count = static_cast<Index>(queries.shape(0)), width = static_cast<Index>(coarse.shape(1));
  expect(static_cast<Index>(queries.shape(1)) == columns, "X and queries must have the same columns");
  expect(has_shape(coarse, {panels_of(rows), width, kPanelRows}), "coarse has the wrong shape");
  expect(has_shape(of_queries.coarse, {count, width}) && has_shape(of_queries.coarse_base, {count}),
         "coarse features of queries have the wrong shape");
  expect(
      fine.has_value() == of_queries.fine.has_value() && fine.has_value() == of_queries.fine_base.has_value(),
      "rows and queries must have the same levels");
  if (fine)
    expect(has_shape(*fine, {rows, kFineWidth}) && has_shape(*of_queries.fine, {count, kFineWidth}) &&
               has_shape(*of_queries.fine_base, {count}),
           "fine features have the wrong shape");
  return {X.data(),
          queries.data(),
          rows,
          count,
          columns,
          coarse.data(),
          width,
          fine ? fine->data() : nullptr,
          of_queries.coarse.data(),
          of_queries.coarse_base.data(),
          fine ? of_queries.fine->data() : nullptr,
          fine ? of_queries.fine_base->data() : nullptr,
          scale,
          {Family::squares, 2.0, root}};
}

template <class T, class Q>
void bind_search(nb::module_& m) {
  m.def(
      "nearest_by_bounds",
      [](const Rows<T>& X, const Rows<Q>& queries, const FloatPanels& coarse,
         const std::optional<FloatMatrix>& fine, const FloatMatrix& query_coarse, const Vector& coarse_base,
         const std::optional<FloatMatrix>& query_fine, const std::optional<Vector>& fine_base, double scale,
         bool root, OutMatrix distances, OutIndices rows, double seconds_left, const Flag& flag) {
        const SearchTables<T, Q> tables = tables_of(
            X, queries, coarse, fine, {query_coarse, coarse_base, query_fine, fine_base}, scale, root);
        const Index k = static_cast<Index>(distances.shape(1));
        expect(k >= 1 && k <= tables.rows, "k must be between 1 and the number of rows");
        expect(has_shape(distances, {tables.query_count, k}) && has_shape(rows, {tables.query_count, k}),
               "distances and rows must have a row a query");
        Passed passed;
        Stop stop(seconds_left, flag.data());
        bool finished = false;
        {
          nb::gil_scoped_release release;
          finished = nearest_by_bounds(tables, k, distances.data(), rows.data(), passed, stop);
        }
        return nb::make_tuple(finished, passed.coarse, passed.fine);
      },
      nb::arg("X").noconvert(), nb::arg("queries").noconvert(), nb::arg("coarse").noconvert(),
      nb::arg("fine").none(), nb::arg("query_coarse").noconvert(), nb::arg("coarse_base").noconvert(),
      nb::arg("query_fine").none(), nb::arg("fine_base").none(), nb::arg("scale"), nb::arg("root"),
      nb::arg("distances").noconvert(), nb::arg("rows").noconvert(), nb::arg("seconds_left"),
      nb::arg("flag").noconvert());
  m.def(
      "within_by_bounds",
      [](const Rows<T>& X, const Rows<Q>& queries, const FloatPanels& coarse,
         const std::optional<FloatMatrix>& fine, const FloatMatrix& query_coarse, const Vector& coarse_base,
         const std::optional<FloatMatrix>& query_fine, const std::optional<Vector>& fine_base, double scale,
         bool root, double radius, double seconds_left, const Flag& flag) {
        const SearchTables<T, Q> tables = tables_of(
            X, queries, coarse, fine, {query_coarse, coarse_base, query_fine, fine_base}, scale, root);
        std::vector<double> distances;
        std::vector<Index> rows, counts;
        Passed passed;
        Stop stop(seconds_left, flag.data());
        bool finished = false;
        {
          nb::gil_scoped_release release;
          std::vector<std::vector<Near>> found;
          finished = within_by_bounds(tables, radius, found, passed, stop);
          for (const auto& of_query : found) {
            counts.push_back(static_cast<Index>(of_query.size()));
            for (const Near& near : of_query) {
              distances.push_back(near.distance);
              rows.push_back(near.row);
            }
          }
        }
        return nb::make_tuple(finished, array_of(std::move(counts)), array_of(std::move(distances)),
                              array_of(std::move(rows)), passed.fine);
      },
      nb::arg("X").noconvert(), nb::arg("queries").noconvert(), nb::arg("coarse").noconvert(),
      nb::arg("fine").none(), nb::arg("query_coarse").noconvert(), nb::arg("coarse_base").noconvert(),
      nb::arg("query_fine").none(), nb::arg("fine_base").none(), nb::arg("scale"), nb::arg("root"),
      nb::arg("radius"), nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

}  // namespace

void bind_projected(nb::module_& m) {
  m.attr("BOUND_SHAPE") = nb::make_tuple(kPanelRows, kDirections, kCoarseWidth, kFineWidth);
  bind_features<double>(m);
  bind_features<float>(m);
  bind_features<std::uint8_t>(m);
  bind_search<double, double>(m);
  bind_search<float, float>(m);
  bind_search<float, double>(m);
  bind_search<std::uint8_t, std::uint8_t>(m);
  bind_search<std::uint8_t, double>(m);
}

}  // namespace sixfold
