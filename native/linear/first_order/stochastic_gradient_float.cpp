// Descent over dense rows of floats: a unit of its own, so that the three are compiled at the same time.
#include "linear/first_order/stochastic_gradient_impl.hpp"

namespace sixfold {

template bool descend_dense(const Table<float>&, const RowOrder&, const double*, const double*,
                            const DescentRule&, Model&, Epochs&, ReferenceModel&, Stop&);

}  // namespace sixfold
