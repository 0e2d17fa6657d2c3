"""Model files: a fitted model as one file that holds no code.

>>> import tempfile, pathlib
>>> from sixfold import LogisticRegression, load, save
>>> model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
>>> with tempfile.TemporaryDirectory() as folder:
...     path = save(model, pathlib.Path(folder) / "answer.sixfold", facts={"target": "answer"})
...     same = load(path)
>>> same.predict([[2.5]])
array(['yes'], dtype='<U3')
"""

from sixfold.app.model_file.read import ModelFile, load, read_header, read_model
from sixfold.app.model_file.versions import FORMAT
from sixfold.app.model_file.write import save

__all__ = ["FORMAT", "ModelFile", "load", "read_header", "read_model", "save"]
