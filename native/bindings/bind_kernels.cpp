// Bindings of kernel matrices and of their products with coefficients.
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "bindings/bindings.hpp"
#include "kernel/kernel_products.hpp"

namespace sixfold {
namespace {

template <class T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutStrided = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;
template <class T>
using OutRows = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Lengths = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

KernelForm form_of(std::string_view kind, double gamma, double coef0, int degree) {
  constexpr std::string_view kKinds[] = {"linear", "polynomial", "rbf", "sigmoid"};
  const auto* found = std::find(std::begin(kKinds), std::end(kKinds), kind);
  expect(found != std::end(kKinds), "the kernel must be linear, polynomial, rbf or sigmoid");
  expect(degree >= 0, "the degree must not be negative");
  return {static_cast<KernelKind>(found - std::begin(kKinds)), gamma, coef0, degree};
}

template <class S>
ChosenRows<S> chosen(const Rows<S>& table, const std::optional<Indices>& index,
                     const std::optional<Vector>& centre) {
  const Index rows = static_cast<Index>(table.shape(0)), columns = static_cast<Index>(table.shape(1));
  expect(!centre || static_cast<Index>(centre->shape(0)) == columns,
         "the centre must have an entry a column");
  const double* middle = centre ? centre->data() : nullptr;
  if (!index) return {table.data(), rows, columns, nullptr, middle, columns};
  const Index count = static_cast<Index>(index->shape(0));
  for (Index i = 0; i < count; ++i)
    expect(0 <= index->data()[i] && index->data()[i] < rows, "the index must hold numbers of rows");
  return {table.data(), count, columns, index->data(), middle, columns};
}

// Checks the shape of a matrix that is written to.
template <class T>
StridedRows<T> strided(const OutStrided<T>& out, Index rows, Index columns) {
  expect(static_cast<Index>(out.shape(0)) == rows && static_cast<Index>(out.shape(1)) == columns,
         "out must have a row and a column for each row, mirrored likewise");
  expect(out.size() == 0 || columns == 1 || out.stride(1) == 1, "the rows of out must be contiguous");
  expect(reinterpret_cast<std::uintptr_t>(out.data()) % sizeof(T) == 0, "the numbers of out must be aligned");
  return {out.data(), out.stride(0)};
}

template <class S, class T>
bool block(std::string_view kind, double gamma, double coef0, int degree, const Rows<S>& A,
           const std::optional<Indices>& a_index, const Rows<S>& B, const std::optional<Indices>& b_index,
           const std::optional<Vector>& centre, bool same, const OutStrided<T>& out,
           const std::optional<OutStrided<T>>& mirrored, double seconds_left, Flag flag) {
  const KernelForm form = form_of(kind, gamma, coef0, degree);
  const ChosenRows<S> a = chosen(A, a_index, centre), b = same ? a : chosen(B, b_index, centre);
  expect(a.columns == b.columns, "both sets of rows must have the same columns");
  expect(!same || !mirrored, "a matrix of rows with themselves is its own mirror");
  const StridedRows<T> there = strided(out, a.count, b.count);
  const StridedRows<T> opposite = same       ? there
                                  : mirrored ? strided(*mirrored, b.count, a.count)
                                             : StridedRows<T>{nullptr, 0};
  nb::gil_scoped_release release;
  Stop stop(seconds_left, flag.data());
  return kernel_block(form, a, b, same, there, opposite, stop);
}

template <class S>
bool scores(std::string_view kind, double gamma, double coef0, int degree, const Rows<S>& A,
            const std::optional<Indices>& a_index, const Rows<S>& B, const std::optional<Indices>& b_index,
            const std::optional<Vector>& centre, const InMatrix& coefficients, bool single, OutMatrix out,
            double seconds_left, Flag flag) {
  const KernelForm form = form_of(kind, gamma, coef0, degree);
  const ChosenRows<S> a = chosen(A, a_index, centre), b = chosen(B, b_index, centre);
  expect(a.columns == b.columns, "both sets of rows must have the same columns");
  expect(static_cast<Index>(coefficients.shape(0)) == b.count, "coefficients must have a row a row of B");
  expect(static_cast<Index>(out.shape(0)) == a.count && out.shape(1) == coefficients.shape(1),
         "out must have a row a row of A and the columns of the coefficients");
  const Index width = static_cast<Index>(coefficients.shape(1));
  nb::gil_scoped_release release;
  Stop stop(seconds_left, flag.data());
  return single ? kernel_scores<float>(form, a, b, coefficients.data(), width, out.data(), stop)
                : kernel_scores<double>(form, a, b, coefficients.data(), width, out.data(), stop);
}

template <class S>
auto rounding(std::string_view kind, double gamma, double coef0, int degree, const Rows<S>& table,
              const Indices& sample, const std::optional<Vector>& centre) {
  const KernelForm form = form_of(kind, gamma, coef0, degree);
  const ChosenRows<S> some = chosen(table, std::optional(sample), centre);
  const ChosenRows<S> all = chosen(table, std::nullopt, centre);
  KernelRounding found{};
  {
    nb::gil_scoped_release release;
    found = kernel_rounding(form, some, all);
  }
  return nb::make_tuple(found.value, found.apart, found.number, found.squared_length);
}

template <class T>
void apply(std::string_view kind, double gamma, double coef0, int degree, OutRows<T> products,
           const std::optional<Lengths<T>>& a_lengths, const std::optional<Lengths<T>>& b_lengths) {
  const KernelForm form = form_of(kind, gamma, coef0, degree);
  const bool given = a_lengths && b_lengths;
  expect(given || form.kind != KernelKind::rbf, "the rbf kernel needs squared lengths");
  expect(!given || (a_lengths->shape(0) == products.shape(0) && b_lengths->shape(0) == products.shape(1)),
         "there must be a squared length for each row and each column of products");
  nb::gil_scoped_release release;
  kernel_apply(form, products.data(), static_cast<Index>(products.shape(0)),
               static_cast<Index>(products.shape(1)), given ? a_lengths->data() : nullptr,
               given ? b_lengths->data() : nullptr);
}

}  // namespace

void bind_kernels(nb::module_& m) {
  const auto bind_block = [&]<class S, class T>(S, T) {
    m.def("kernel_block", &block<S, T>, nb::arg("kind"), nb::arg("gamma"), nb::arg("coef0"),
          nb::arg("degree"), nb::arg("A").noconvert(), nb::arg("a_index").noconvert().none(),
          nb::arg("B").noconvert(), nb::arg("b_index").noconvert().none(),
          nb::arg("centre").noconvert().none(), nb::arg("same"), nb::arg("out").noconvert(),
          nb::arg("mirrored").noconvert().none(), nb::arg("seconds_left"), nb::arg("flag").noconvert());
  };
  bind_block(double(), double());
  bind_block(double(), float());
  bind_block(float(), double());
  bind_block(float(), float());
  const auto bind_one = [&]<class T>(T) {
    m.def("kernel_scores", &scores<T>, nb::arg("kind"), nb::arg("gamma"), nb::arg("coef0"), nb::arg("degree"),
          nb::arg("A").noconvert(), nb::arg("a_index").noconvert().none(), nb::arg("B").noconvert(),
          nb::arg("b_index").noconvert().none(), nb::arg("centre").noconvert().none(),
          nb::arg("coefficients").noconvert(), nb::arg("single"), nb::arg("out").noconvert(),
          nb::arg("seconds_left"), nb::arg("flag").noconvert());
    m.def("kernel_rounding", &rounding<T>, nb::arg("kind"), nb::arg("gamma"), nb::arg("coef0"),
          nb::arg("degree"), nb::arg("table").noconvert(), nb::arg("sample").noconvert(),
          nb::arg("centre").noconvert().none());
    m.def("kernel_apply", &apply<T>, nb::arg("kind"), nb::arg("gamma"), nb::arg("coef0"), nb::arg("degree"),
          nb::arg("products").noconvert(), nb::arg("a_lengths").noconvert().none(),
          nb::arg("b_lengths").noconvert().none());
  };
  bind_one(double());
  bind_one(float());
}

}  // namespace sixfold
