// Descent over sparse rows: a unit of its own, so that the three are compiled at the same time.
#include "linear/first_order/stochastic_gradient_impl.hpp"

namespace sixfold {

template bool descend_sparse(const SparseTable<double, std::int32_t>&, const RowOrder&, const DescentRule&,
                             Model&, Epochs&, Stop&);
template bool descend_sparse(const SparseTable<float, std::int32_t>&, const RowOrder&, const DescentRule&,
                             Model&, Epochs&, Stop&);
template bool descend_sparse(const SparseTable<double, Index>&, const RowOrder&, const DescentRule&, Model&,
                             Epochs&, Stop&);
template bool descend_sparse(const SparseTable<float, Index>&, const RowOrder&, const DescentRule&, Model&,
                             Epochs&, Stop&);

}  // namespace sixfold
