"""sixfold under scikit-learn's names: one line, and code that says ``from sklearn...`` is fitted by sixfold.

    import sixfold; sixfold.patch_sklearn()      in a script, before or after scikit-learn is imported
    with sixfold.patch_sklearn(): ...            for some lines
    python -m sixfold.patch script.py            without an edit

scikit-learn's defaults, semantics, attributes and errors hold; what we do not offer is left to it.
"""

from sixfold.patch.replace import drop_in_names, patch_sklearn, unpatch_sklearn

__all__ = ["drop_in_names", "patch_sklearn", "unpatch_sklearn"]
