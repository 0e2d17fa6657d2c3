// Bindings of the k-d tree.
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "neighbors/kd_tree/kd_tree.hpp"

namespace sixfold {
namespace {

template <class T, Index kDimensions>
using Array = nb::ndarray<T, nb::ndim<kDimensions>, nb::c_contig, nb::device::cpu>;

// The arrays of a tree and the shape they must have.
template <class T, class Value, class Bound, class Bits, class Number>
KdShape shape_of(const Array<Value, 3>& leaves, const Array<Bound, 4>& boxes, const Array<Bits, 1>& points,
                 const Array<Number, 1>& numbers) {
  const Index count = static_cast<Index>(leaves.shape(0)), rows = static_cast<Index>(numbers.shape(0));
  expect(count > 0 && (count & (count - 1)) == 0, "leaves must be as many as a power of two");
  expect(rows > 0 && rows < (Index{1} << 32), "a tree has from 1 to 2^32 - 1 rows");
  expect(count <= rows, "every leaf has a row");
  const KdShape shape(rows, static_cast<Index>(leaves.shape(1)), count);
  expect(static_cast<Index>(leaves.shape(2)) == shape.capacity, "leaves must have room for their rows");
  expect(static_cast<Index>(boxes.shape(0)) == shape.nodes && boxes.shape(1) == 2 &&
             static_cast<Index>(boxes.shape(2)) == shape.columns && boxes.shape(3) == kFan,
         "boxes must have the shape (nodes, 2, columns, 8)");
  expect(static_cast<Index>(points.shape(0)) == shape.nodes, "points must have an entry a node");
  return shape;
}

template <class T>
void bind(nb::module_& m) {
  using Leaves = Array<const T, 3>;
  using Boxes = Array<const double, 4>;
  using Points = Array<const std::uint8_t, 1>;
  using Numbers = Array<const Index, 1>;
  m.def(
      "build_kd_tree",
      [](const Array<const T, 2>& X, Array<T, 3> leaves, Array<double, 4> boxes,
         Array<std::uint8_t, 1> points, Array<Index, 1> numbers, double seconds_left, const Flag& flag) {
        const KdShape shape = shape_of<T>(leaves, boxes, points, numbers);
        expect(
            static_cast<Index>(X.shape(0)) == shape.rows && static_cast<Index>(X.shape(1)) == shape.columns,
            "the arrays of the tree must be those of X");
        const KdRoom<T> room{leaves.data(), boxes.data(), points.data(), numbers.data()};
        Stop stop(seconds_left, flag.data());
        nb::gil_scoped_release release;
        return build_kd_tree(X.data(), shape, room, stop);
      },
      nb::arg("X").noconvert(), nb::arg("leaves").noconvert(), nb::arg("boxes").noconvert(),
      nb::arg("points").noconvert(), nb::arg("numbers").noconvert(), nb::arg("seconds_left"),
      nb::arg("flag").noconvert());
  m.def(
      "kd_nearest",
      [](const Leaves& leaves, const Boxes& boxes, const Points& points, const Numbers& numbers,
         const InMatrix& queries, OutMatrix distances, Array<Index, 2> rows, const std::string& family,
         double p, bool root, double seconds_left, const Flag& flag) {
        const KdShape shape = shape_of<T>(leaves, boxes, points, numbers);
        const Measure measure = measure_of(family, p, root);
        const Index count = static_cast<Index>(queries.shape(0)), k = static_cast<Index>(rows.shape(1));
        expect(measure.family != Family::count, "a k-d tree does not count unequal columns");
        expect(static_cast<Index>(queries.shape(1)) == shape.columns, "queries must have the columns of X");
        expect(1 <= k && k <= shape.rows, "there are not as many rows");
        expect(distances.shape(0) == queries.shape(0) && rows.shape(0) == queries.shape(0) &&
                   distances.shape(1) == rows.shape(1),
               "distances and rows must have a row a query and k columns");
        const KdTree<T> tree{leaves.data(), boxes.data(), points.data(), numbers.data()};
        Stop stop(seconds_left, flag.data());
        nb::gil_scoped_release release;
        return kd_nearest<T>({shape, tree, measure, queries.data(), count}, k, distances.data(), rows.data(),
                             stop);
      },
      nb::arg("leaves").noconvert(), nb::arg("boxes").noconvert(), nb::arg("points").noconvert(),
      nb::arg("numbers").noconvert(), nb::arg("queries").noconvert(), nb::arg("distances").noconvert(),
      nb::arg("rows").noconvert(), nb::arg("family"), nb::arg("p"), nb::arg("root"), nb::arg("seconds_left"),
      nb::arg("flag").noconvert());
  m.def(
      "kd_within",
      [](const Leaves& leaves, const Boxes& boxes, const Points& points, const Numbers& numbers,
         const InMatrix& queries, double radius, const std::string& family, double p, bool root,
         double seconds_left, const Flag& flag) {
        const KdShape shape = shape_of<T>(leaves, boxes, points, numbers);
        const Measure measure = measure_of(family, p, root);
        const Index count = static_cast<Index>(queries.shape(0));
        expect(measure.family != Family::count, "a k-d tree does not count unequal columns");
        expect(static_cast<Index>(queries.shape(1)) == shape.columns, "queries must have the columns of X");
        const KdTree<T> tree{leaves.data(), boxes.data(), points.data(), numbers.data()};
        std::vector<Index> ends(count + 1), rows;
        std::vector<double> distances;
        Stop stop(seconds_left, flag.data());
        Index computed = 0;
        {
          nb::gil_scoped_release release;
          computed = kd_within<T>({shape, tree, measure, queries.data(), count}, radius, ends.data(),
                                  distances, rows, stop);
        }
        return nb::make_tuple(computed, array_of(std::move(ends)), array_of(std::move(distances)),
                              array_of(std::move(rows)));
      },
      nb::arg("leaves").noconvert(), nb::arg("boxes").noconvert(), nb::arg("points").noconvert(),
      nb::arg("numbers").noconvert(), nb::arg("queries").noconvert(), nb::arg("radius"), nb::arg("family"),
      nb::arg("p"), nb::arg("root"), nb::arg("seconds_left"), nb::arg("flag").noconvert());
}

}  // namespace

void bind_kd_tree(nb::module_& m) {
  m.def(
      "kd_tree_shape",
      [](Index rows, Index leaf_size) {
        expect(rows >= 1 && leaf_size >= 1, "a tree has rows, and a leaf too");
        const KdShape shape(rows, 1, KdShape::leaves_for(rows, leaf_size));
        return nb::make_tuple(shape.leaves, shape.capacity, shape.nodes);
      },
      nb::arg("rows"), nb::arg("leaf_size"));
  bind<double>(m);
  bind<float>(m);
}

}  // namespace sixfold
