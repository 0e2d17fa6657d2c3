"""What every figure has to leave as it was, and where figures are drawn in these tests."""

import pytest


@pytest.fixture(autouse=True)
def no_trace_left():
    """Look that no figure of pyplot's is left open, and that rcParams are as before."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.close("all")
    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before
    assert pyplot.get_fignums() == []


@pytest.fixture
def new_axes():
    """Return a function that makes axes of a user's own figure, with a ground of any colour."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    def make(ground="white", **options):
        figure = Figure(figsize=(8, 5), facecolor=ground, **options)
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        axes.set_facecolor(ground)
        return axes

    return make


@pytest.fixture
def drawn():
    """Return a function that renders axes, so that what fails at drawing fails here, and returns them."""

    def render(axes):
        axes.figure.canvas.draw()
        return axes

    return render
