"""The objective of a linear model and its minimum in 60-digit arithmetic.

    R(w, b) = sum_j (l1 |w_j| + l2 w_j^2 / 2) + sum_i q_i f(s_i, y_i),   s = w.x + b

Every number of the data is exact, so the objective of a model is known to all digits that a double could
miss. The minimum is approached from above: any model's objective bounds it, and the lowest that is found
here, by Newton steps (smooth losses) or by solving the equations of the rows and columns at their kinks, is
within 1e-25 or so. A lower bound that exceeds it is false.
"""

from mpmath import mp, mpf

mp.dps = 60
TINY = mpf(10) ** -45


class Exact:
    """One problem: the rows that count, in exact numbers."""

    def __init__(self, claim):
        X = claim.X.toarray() if hasattr(claim.X, "toarray") else claim.X
        n = X.shape[0]
        weights = [mpf(1)] * n if claim.weights is None else [mpf(float(v)) for v in claim.weights]
        total = sum(weights)
        some = [i for i in range(n) if weights[i] > 0]
        self.q = [weights[i] / total for i in some]
        self.X = [[mpf(float(v)) for v in X[i]] for i in some]
        self.loss, self.classes = claim.loss, claim.loss == "softmax"
        if self.classes:
            self.y = [int(claim.y[i]) for i in some]
        else:
            self.y = [[mpf(float(v)) for v in claim.y[i]] for i in some]
        self.l1, self.l2 = mpf(float(claim.l1)), mpf(float(claim.l2))
        self.intercept, self.d = claim.fit_intercept, X.shape[1]
        self.scores = claim.w.shape[1]

    def theta(self, w, b):
        """Return the model as exact numbers: for each score its weights and its intercept."""
        return [[mpf(float(v)) for v in w[:, k]] + [mpf(float(b[k]))] for k in range(self.scores)]

    def score(self, theta):
        """Return the scores of all rows."""
        return [[mp.fdot(zip(row, part[:-1], strict=True)) + part[-1] for part in theta] for row in self.X]

    def objective(self, theta):
        """Return R."""
        weights = [v for part in theta for v in part[:-1]]
        total = self.l1 * sum(map(abs, weights)) + self.l2 * sum(v * v for v in weights) / 2
        for q, y, s in zip(self.q, self.y, self.score(theta), strict=True):
            if self.classes:
                top = max(s)
                total += q * (mp.log(sum(mp.exp(v - top) for v in s)) + top - s[y])
            else:
                total += q * sum(VALUE[self.loss](one, target) for one, target in zip(s, y, strict=True))
        return total

    def lowest(self, theta):
        """Return the lowest objective that is found, from this model on."""
        value = self.objective(theta)
        if self.l1 > 0:
            return min(value, self._lasso(theta))
        if self.loss == "squared":
            return min(value, self._least_squares())
        if self.loss in ("absolute", "hinge"):
            return min(value, self._kinks(theta))
        return self._newton(theta, value)

    # -- solvers ------------------------------------------------------------------------------------------

    def _rows(self):
        one = [mpf(1)] if self.intercept else []
        return [row + one for row in self.X]

    def _least_squares(self):
        rows = self._rows()
        best = []
        for k in range(self.scores):
            H, g = self._normal(rows, self.q, [y[k] for y in self.y])
            for j in range(self.d):
                H[j][j] += self.l2
            best.append(self._padded(solve(H, g)))
        return self.objective(best)

    def _normal(self, rows, weight, target):
        size = len(rows[0]) if rows else 0
        H = [[mpf(0)] * size for _ in range(size)]
        g = [mpf(0)] * size
        for row, v, y in zip(rows, weight, target, strict=True):
            for i in range(size):
                part = v * row[i]
                g[i] += part * y
                for j in range(i + 1):
                    H[i][j] += part * row[j]
        for i in range(size):
            for j in range(i):
                H[j][i] = H[i][j]
        return H, g

    def _padded(self, part):
        return list(part) if self.intercept else [*part, mpf(0)]

    def _newton(self, theta, value):
        """Newton steps on all scores together, halved until they descend."""
        for _ in range(60):
            step, decrement = self._newton_step(theta)
            if not decrement > TINY * abs(value):
                break
            length, gained = mpf(1), False
            while length > mpf(2) ** -40:
                moved = [
                    [v + length * s for v, s in zip(*both, strict=True)]
                    for both in zip(theta, step, strict=True)
                ]
                new = self.objective(moved)
                if new < value:
                    theta, value, gained = moved, new, True
                    break
                length /= 4
            if not gained:
                break
        return value

    def _newton_step(self, theta):
        rows, scores = self._rows(), self.score(theta)
        width = len(rows[0])
        groups = [list(range(self.scores))] if self.classes else [[k] for k in range(self.scores)]
        step, decrement = [[mpf(0)] * (self.d + 1) for _ in theta], mpf(0)
        for group in groups:
            size = width * len(group)
            H = [[mpf(0)] * size for _ in range(size)]
            g = [mpf(0)] * size
            for row, q, y, s in zip(rows, self.q, self.y, scores, strict=True):
                slope, bend = self._derivatives(s, y, group)
                for a in range(len(group)):
                    for i in range(width):
                        g[a * width + i] += q * slope[a] * row[i]
                    for c in range(len(group)):
                        if bend[a][c] == 0:
                            continue
                        for i in range(width):
                            part = q * bend[a][c] * row[i]
                            for j in range(width):
                                H[a * width + i][c * width + j] += part * row[j]
            for a, k in enumerate(group):
                for j in range(self.d):
                    H[a * width + j][a * width + j] += self.l2
                    g[a * width + j] += self.l2 * theta[k][j]
            move = solve(H, [-v for v in g])
            decrement -= mp.fdot(zip(g, move, strict=True))
            for a, k in enumerate(group):
                step[k] = self._padded(move[a * width : (a + 1) * width])
        return step, decrement

    def _derivatives(self, s, y, group):
        if self.classes:
            top = max(s)
            e = [mp.exp(v - top) for v in s]
            total = sum(e)
            p = [v / total for v in e]
            slope = [p[k] - (k == y) for k in group]
            return slope, [[p[k] * ((k == m) - p[m]) for m in group] for k in group]
        k = group[0]
        margin = y[k] * s[k]
        if self.loss == "logistic":
            p = 1 / (1 + mp.exp(margin))
            return [-y[k] * p], [[p * (1 - p)]]
        if self.loss == "squared_hinge":
            short = 1 - margin
            return ([-y[k] * short], [[mpf(1)]]) if short > 0 else ([mpf(0)], [[mpf(0)]])
        raise ValueError(self.loss)

    def _kinks(self, theta):
        """Return the objective where the rows next to a kink are put on it, target by target."""
        best = []
        for k, part in enumerate(theta):
            options = [part] + [
                found
                for share in (1e-12, 1e-9, 1e-6, 1e-3)
                if (found := self._on_kinks(k, part, mpf(share))) is not None
            ]
            best.append(min(options, key=lambda one, k=k: self._alone(k, one)))
        return self.objective(best)

    def _alone(self, k, part):
        total = self.l2 * sum(v * v for v in part[:-1]) / 2
        for q, y, row in zip(self.q, self.y, self.X, strict=True):
            total += q * VALUE[self.loss](mp.fdot(zip(row, part[:-1], strict=True)) + part[-1], y[k])
        return total

    def _on_kinks(self, k, part, share):
        rows = self._rows()
        width = len(rows[0])
        on, targets, g = [], [], [mpf(0)] * width
        for row, q, y, s in zip(rows, self.q, self.y, self.score([part]), strict=True):
            kink = y[k]  # of |s - y| at y, of the hinge at 1 / y = y
            if abs(s[0] - kink) <= share * (abs(kink) + abs(s[0])):
                on.append(row)
                targets.append(kink)
                continue
            slope = (
                mp.sign(s[0] - y[k]) if self.loss == "absolute" else (-y[k] if y[k] * s[0] < 1 else mpf(0))
            )
            g = [a + q * slope * b for a, b in zip(g, row, strict=True)]
        # l2 w + sum of the others + A' m = 0, A theta = targets
        m = len(on)
        size = width + m
        if size > 3 * width + 4:
            return None
        K = [[mpf(0)] * size for _ in range(size)]
        for j in range(self.d):
            K[j][j] = self.l2
        for i, row in enumerate(on):
            for j in range(width):
                K[width + i][j] = K[j][width + i] = row[j]
        found = solve(K, [-v for v in g] + targets)
        return self._padded(found[:width])

    def _lasso(self, theta):
        """Return the objective of the best weights with these signs, one target after the other."""
        if self.loss != "squared":
            return self.objective(theta)
        rows, best = self._rows(), []
        for k, part in enumerate(theta):
            used = [j for j in range(self.d) if part[j] != 0] + ([self.d] if self.intercept else [])
            some = [[row[j] for j in used] for row in rows]
            H, g = self._normal(some, self.q, [y[k] for y in self.y])
            for i, j in enumerate(used):
                if j < self.d:
                    H[i][i] += self.l2
                    g[i] -= self.l1 * mp.sign(part[j])
            found, whole = solve(H, g), [mpf(0)] * (self.d + 1)
            for j, v in zip(used, found, strict=True):
                whole[j] = v
            best.append(whole)
        return self.objective(best)


def solve(matrix, right):
    """Return a solution of a symmetric system in any units; of dependent unknowns some are 0."""
    size = len(right)
    scale = [mp.sqrt(abs(matrix[i][i])) or max(map(abs, matrix[i])) or mpf(1) for i in range(size)]
    A = [
        [matrix[i][j] / scale[i] / scale[j] for j in range(size)] + [right[i] / scale[i]] for i in range(size)
    ]
    rows, columns, pivots = list(range(size)), list(range(size)), []
    for _ in range(size):
        largest, at = max(((abs(A[i][j]), (i, j)) for i in rows for j in columns), key=lambda one: one[0])
        if not largest > TINY:
            break
        i, j = at
        rows.remove(i)
        columns.remove(j)
        pivots.append(at)
        for other in rows:
            factor = A[other][j] / A[i][j]
            if factor != 0:
                A[other] = [a - factor * b for a, b in zip(A[other], A[i], strict=True)]
    found = [mpf(0)] * size
    for i, j in reversed(pivots):
        known = mp.fdot((A[i][m], found[m]) for m in range(size) if m != j)
        found[j] = (A[i][size] - known) / A[i][j]
    return [v / s for v, s in zip(found, scale, strict=True)]


VALUE = {
    "squared": lambda s, y: (s - y) ** 2 / 2,
    "absolute": lambda s, y: abs(s - y),
    "logistic": lambda s, y: mp.log1p(mp.exp(-y * s)) if y * s > 0 else mp.log1p(mp.exp(y * s)) - y * s,
    "hinge": lambda s, y: max(1 - y * s, mpf(0)),
    "squared_hinge": lambda s, y: max(1 - y * s, mpf(0)) ** 2 / 2,
}
