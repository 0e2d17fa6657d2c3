// A dense table of any layout, as native loops read it.
#pragma once

#include <cstdint>

namespace sixfold {

using Index = std::int64_t;

template <class T>
struct Table {
  const T* data;
  Index rows, columns, row_stride, column_stride;  // strides in elements

  const T* row(Index i) const { return data + i * row_stride; }
};

// First row of part `part` when `rows` are cut into `parts` nearly equal pieces.
inline Index cut(Index rows, Index parts, Index part) { return rows * part / parts; }

}  // namespace sixfold
