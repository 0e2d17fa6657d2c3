"""Kernels: dot products in a space that is never written down, as objects that add and multiply."""

from sixfold.geometry.kernels.base import Form, Kernel, Product, Scaled, Sum
from sixfold.geometry.kernels.custom import Called, Precomputed, require_gram
from sixfold.geometry.kernels.standard import (
    KERNELS,
    RBF,
    Linear,
    OfProduct,
    Polynomial,
    Quadratic,
    Sigmoid,
    linear,
    make_kernel,
    quadratic,
)

__all__ = [
    "KERNELS",
    "RBF",
    "Called",
    "Form",
    "Kernel",
    "Linear",
    "OfProduct",
    "Polynomial",
    "Precomputed",
    "Product",
    "Quadratic",
    "Scaled",
    "Sigmoid",
    "Sum",
    "linear",
    "make_kernel",
    "quadratic",
    "require_gram",
]
