// Bindings of the search in sparse rows.
#include <limits>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "core/threads.hpp"
#include "neighbors/sparse/sparse_search.hpp"

namespace sixfold {
namespace {

template <class T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Columns = Array<std::int32_t>;
using OutRows = nb::ndarray<Index, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class A>
Index size(const A& array) {
  return static_cast<Index>(array.shape(0));
}

template <class T>
SparseRows<T> sparse_rows(const Indices& starts, const Columns& columns, const Array<T>& values) {
  expect(size(starts) > 0 && size(columns) == size(values), "columns and values must have the same size");
  const SparseRows<T> rows{starts.data(), columns.data(), values.data(), size(starts) - 1};
  expect(rows.starts[0] >= 0 && rows.starts[rows.count] <= size(columns), "starts must lie within columns");
  return rows;
}

void expect_rising(const Index* starts, Index count) {
  for (Index i = 0; i < count; ++i) expect(starts[i] <= starts[i + 1], "starts must not fall");
}

// The same from a tuple of the three arrays.
template <class T>
SparseRows<T> sparse_rows(const nb::tuple& parts) {
  expect(parts.size() == 3, "sparse rows are starts, columns and values");
  return sparse_rows(nb::cast<Indices>(parts[0], false), nb::cast<Columns>(parts[1], false),
                     nb::cast<Array<T>>(parts[2], false));
}

// lengths, order, lists, rest_of, rest, rest_lengths, rest_columns, most: as InvertedLists has them.
InvertedLists inverted_lists(const nb::tuple& parts) {
  expect(parts.size() == 8, "inverted lists have eight parts");
  const auto lengths = nb::cast<Vector>(parts[0], false);
  const auto order = nb::cast<Indices>(parts[1], false);
  const auto rest_of = nb::cast<Columns>(parts[3], false);
  const auto rest_lengths = nb::cast<Array<float>>(parts[5], false);
  const Index rows = size(lengths), rest_columns = nb::cast<Index>(parts[6]);
  const InvertedLists found{lengths.data(),
                            order.data(),
                            sparse_rows<float>(nb::cast<nb::tuple>(parts[2])),
                            rest_of.data(),
                            sparse_rows<float>(nb::cast<nb::tuple>(parts[4])),
                            rest_lengths.data(),
                            rest_columns,
                            nb::cast<Index>(parts[7])};
  expect(size(order) == rows && size(rest_lengths) == rows && found.rest.count == rows && rows > 0,
         "lengths, order and rest must have one entry a row");
  expect(size(rest_of) == found.lists.count, "there must be a list for every column");
  return found;
}

// Queries come from outside, so their columns are looked at one by one, and the lists that they lead to.
SparseRows<double> queries_of(const nb::tuple& parts, const InvertedLists& inverted) {
  const auto queries = sparse_rows<double>(parts);
  expect_rising(queries.starts, queries.count);
  const SparseRows<float>& lists = inverted.lists;
  for (Index k = queries.starts[0]; k < queries.starts[queries.count]; ++k) {
    const Index column = queries.columns[k];
    expect(column >= 0 && column < lists.count, "queries must have the columns of X");
    const Index from = lists.starts[column], to = lists.starts[column + 1];
    expect(0 <= from && from <= to && to <= lists.starts[lists.count], "starts must not fall");
    expect(inverted.rest_of[column] < inverted.rest_columns, "rest_of must number the columns of the rest");
  }
  return queries;
}

template <class T>
nb::tuple nearest(const Indices& starts, const Columns& columns, const Array<T>& values,
                  const nb::tuple& lists, const nb::tuple& queries, bool root, OutMatrix distances,
                  OutRows rows, double seconds_left, const Flag& flag) {
  const InvertedLists inverted = inverted_lists(lists);
  const SparseRows<T> table = sparse_rows(starts, columns, values);
  const SparseRows<double> asked = queries_of(queries, inverted);
  const Index k = static_cast<Index>(distances.shape(1));
  expect(table.count == inverted.rest.count, "the lists must be those of X");
  expect(static_cast<Index>(distances.shape(0)) == asked.count && rows.shape(0) == distances.shape(0) &&
             rows.shape(1) == distances.shape(1) && k >= 1 && k <= table.count,
         "distances and rows must have k entries a query, 1 <= k <= rows");
  Stop stop(seconds_left, flag.data());
  Index computed = 0;
  bool finished = false;
  {
    nb::gil_scoped_release release;
    finished = sparse_nearest(table, inverted, asked, {Family::squares, 2.0, root}, k, distances.data(),
                              rows.data(), &computed, stop);
  }
  return nb::make_tuple(finished, computed);
}

template <class T>
nb::tuple within(const Indices& starts, const Columns& columns, const Array<T>& values,
                 const nb::tuple& lists, const nb::tuple& queries, bool root, double radius,
                 double seconds_left, const Flag& flag) {
  const InvertedLists inverted = inverted_lists(lists);
  const SparseRows<T> table = sparse_rows(starts, columns, values);
  const SparseRows<double> asked = queries_of(queries, inverted);
  expect(table.count == inverted.rest.count, "the lists must be those of X");
  Stop stop(seconds_left, flag.data());
  Index computed = 0;
  bool finished = false;
  std::vector<Index> counts, rows;
  std::vector<double> distances;
  {
    nb::gil_scoped_release release;
    std::vector<std::vector<Near>> found;
    finished =
        sparse_within(table, inverted, asked, {Family::squares, 2.0, root}, radius, &found, &computed, stop);
    for (std::vector<Near>& of_query : found) {
      counts.push_back(static_cast<Index>(of_query.size()));
      for (const Near& one : of_query) {
        distances.push_back(one.distance);
        rows.push_back(one.row);
      }
      std::vector<Near>().swap(of_query);  // the memory serves the queries that follow
    }
  }
  return nb::make_tuple(finished, computed, array_of(std::move(counts)), array_of(std::move(distances)),
                        array_of(std::move(rows)));
}

template <class T>
void lengths(const Indices& starts, const Array<T>& values, OutVector out) {
  const Index rows = size(starts) - 1;
  expect(rows >= 0 && size(out) == rows, "out must have one entry a row");
  expect(starts.data()[0] >= 0 && starts.data()[rows] <= size(values), "starts must lie within values");
  expect_rising(starts.data(), rows);
  nb::gil_scoped_release release;
#pragma omp parallel for schedule(static) num_threads(team_size(rows, size(values)))
  for (Index i = 0; i < rows; ++i) {
    const Index from = starts.data()[i];
    out.data()[i] = length(SparseRow<T>{nullptr, values.data() + from, starts.data()[i + 1] - from});
  }
}

// Every row has one place, and the list of every column, empty for those of the rest, has room for exactly
// its entries: nothing is written beyond the end of an array.
template <class T>
void expect_room(const SparseRows<T>& rows, const EmptyLists& to, Index columns, Index in_lists) {
  expect(rows.count <= std::numeric_limits<std::int32_t>::max(), "lists hold at most 2^31 - 1 rows");
  expect_rising(rows.starts, rows.count);
  std::vector<bool> placed(static_cast<std::size_t>(rows.count));
  for (Index i = 0; i < rows.count; ++i) {
    const Index row = to.order[i];
    expect(row >= 0 && row < rows.count && !placed[row], "order must hold every row once");
    placed[row] = true;
  }
  expect(to.cursors[0] == 0 && to.cursors[columns] == in_lists, "cursors must be the starts of the lists");
  std::vector<Index> room(static_cast<std::size_t>(columns));
  for (Index j = 0; j < columns; ++j) room[j] = to.cursors[j + 1] - to.cursors[j];
  for (Index k = rows.starts[0]; k < rows.starts[rows.count]; ++k) {
    const Index column = rows.columns[k];
    expect(column >= 0 && column < columns, "columns must be those of rest_of");
    if (to.rest_of[column] < 0) --room[column];
  }
  for (const Index left : room) expect(left == 0, "every list must have room for the entries of its column");
}

template <class T>
void fill(const Indices& starts, const Columns& columns, const Array<T>& values, const Vector& lengths,
          const Indices& order, Out<Index> cursors, Out<std::int32_t> list_places, Out<float> list_values,
          const Columns& rest_of, Out<Index> rest_starts, Out<std::int32_t> rest_columns,
          Out<float> rest_values, Out<float> rest_lengths) {
  const SparseRows<T> rows = sparse_rows(starts, columns, values);
  expect(size(lengths) == rows.count && size(order) == rows.count && size(rest_lengths) == rows.count &&
             size(rest_starts) == rows.count + 1,
         "lengths, order and rest must have one entry a row");
  expect(size(cursors) == size(rest_of) + 1, "cursors and rest_of must be those of the columns");
  expect(size(list_places) == size(list_values) && size(rest_columns) == size(rest_values) &&
             size(list_places) + size(rest_columns) == rows.starts[rows.count] - rows.starts[0],
         "lists and rest must have room for every entry");
  const EmptyLists to{lengths.data(),     order.data(),       cursors.data(),     list_places.data(),
                      list_values.data(), rest_of.data(),     rest_starts.data(), rest_columns.data(),
                      rest_values.data(), rest_lengths.data()};
  nb::gil_scoped_release release;
  expect_room(rows, to, size(rest_of), size(list_places));
  fill_lists(rows, to);
}

}  // namespace

void bind_sparse_search(nb::module_& m) {
  const auto bind = [&]<class T>(T) {
    m.def("sparse_nearest", &nearest<T>, nb::arg("starts").noconvert(), nb::arg("columns").noconvert(),
          nb::arg("values").noconvert(), nb::arg("lists"), nb::arg("queries"), nb::arg("root"),
          nb::arg("distances").noconvert(), nb::arg("rows").noconvert(), nb::arg("seconds_left"),
          nb::arg("flag").noconvert());
    m.def("sparse_within", &within<T>, nb::arg("starts").noconvert(), nb::arg("columns").noconvert(),
          nb::arg("values").noconvert(), nb::arg("lists"), nb::arg("queries"), nb::arg("root"),
          nb::arg("radius"), nb::arg("seconds_left"), nb::arg("flag").noconvert());
    m.def("sparse_lengths", &lengths<T>, nb::arg("starts").noconvert(), nb::arg("values").noconvert(),
          nb::arg("out").noconvert());
    m.def("sparse_fill", &fill<T>, nb::arg("starts").noconvert(), nb::arg("columns").noconvert(),
          nb::arg("values").noconvert(), nb::arg("lengths").noconvert(), nb::arg("order").noconvert(),
          nb::arg("cursors").noconvert(), nb::arg("list_places").noconvert(),
          nb::arg("list_values").noconvert(), nb::arg("rest_of").noconvert(),
          nb::arg("rest_starts").noconvert(), nb::arg("rest_columns").noconvert(),
          nb::arg("rest_values").noconvert(), nb::arg("rest_lengths").noconvert());
  };
  bind(double());
  bind(float());
}

}  // namespace sixfold
