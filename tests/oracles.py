"""Plain NumPy versions of every native loop and solver: slow, short, and obviously right."""

import numpy as np

# -- least squares -------------------------------------------------------------------------------------


def gram_of_shifted_rows(X, Y, weight, shift, row_shift):
    """Return sum_i weight_i z_i z_i' with z = (x - shift - row_shift, y - shift, 1)."""
    X, Y = X.astype(np.float64), Y.astype(np.float64)
    d = X.shape[1]
    x = X - shift[:d] - (0.0 if row_shift is None else row_shift[:, None])
    z = np.column_stack([x, Y - shift[d:], np.ones(X.shape[0])])
    return z.T @ (z if weight is None else weight[:, None] * z)


def least_squares(X, Y, weight=None, l2=0.0, fit_intercept=True):
    """Return the shortest w and b that minimise mean weighted |y - b - w.x|^2 / 2 + l2 |w|^2 / 2, by SVD."""
    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    q = np.full(X.shape[0], 1.0) if weight is None else np.asarray(weight, dtype=np.float64)
    q = q / q.sum()
    mean_x = q @ X if fit_intercept else np.zeros(X.shape[1])
    mean_y = q @ Y if fit_intercept else np.zeros(Y.shape[1])
    rows = np.sqrt(q)[:, None] * (X - mean_x)
    U, s, V = np.linalg.svd(rows, full_matrices=False)
    kept = s > 1e-12 * s.max(initial=0.0)
    target = np.sqrt(q)[:, None] * (Y - mean_y)
    w = V[kept].T @ (s[kept, None] * (U[:, kept].T @ target) / (s[kept, None] ** 2 + l2))
    return w, mean_y - mean_x @ w
