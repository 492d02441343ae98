"""The classifier: logistic regression as Mazzone (2019, §5.3) fits it. scikit-learn is the extra `utility`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sqldeid.arrays import Flags, Floats
from sqldeid.errors import JobError
from sqldeid.findings import Scores

if TYPE_CHECKING:
    import pandas as pd

Model = Literal["logistic"]
Labels = npt.NDArray[np.object_]

Implied = Mapping[str, tuple[str, ...]]
"""The indicators that a label stands for: its own and those of its ancestors."""

GREATEST = 1e140
"""Numbers beyond it count as missing: the squares of some billion of them have no sum."""
MOST_CLASSES = 100
"""Classes of a label, at most: more are a number or a name, not a class."""


@dataclass(frozen=True, slots=True)
class Features:
    """Rows as a model takes them.

    Parameters
    ----------
    columns
        DOUBLE for numbers, text for categories; NULL is a missing value. Each of length (rows,).
    labels
        The class of each row, as text; shape (rows,).
    implied
        What the labels of a column stand for, by column; those of no other column stand for anything but themselves.
    """

    names: tuple[str, ...]
    columns: tuple[pa.Array, ...]
    labels: Labels
    implied: Mapping[str, Implied] = field(default_factory=dict)

    @property
    def numeric(self) -> list[str]:
        """Names of the columns that hold numbers."""
        return [n for n, c in zip(self.names, self.columns, strict=True) if pa.types.is_floating(c.type)]


def require() -> None:
    """Raise JobError where scikit-learn is not installed; before anything is computed."""
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise JobError("a model needs scikit-learn: pip install 'sqldeid[utility]'") from None


def most_frequent(train: Labels, test: Labels) -> float:
    """Accuracy of always naming the most frequent class of the training part, the first of several."""
    names, counts = np.unique(train.astype(str), return_counts=True)
    return float(np.mean(test.astype(str) == names[counts.argmax()]))


def fit_and_score(model: Model, train: Features, test: Features) -> tuple[Scores, tuple[str, ...]]:
    """Fit a model on one part and test it on the other.

    Numbers are standardised, missing values are the most frequent ones of their column, categories one-hot; a category
    that the training part has not counts as none of its categories. A label of mixed levels is one indicator for itself
    and for each of its ancestors, of which those that no training row has weigh nothing. An infinite number counts as
    missing, and one whose square would be: neither can be standardised.

    Returns
    -------
    The scores, and what is to be said about the fit.
    """
    if len(set(train.labels)) < 2:
        always = float(np.mean(test.labels == train.labels[0]))
        return Scores(always, None, len(train.labels)), ("the released rows have one class only: it is always named",)
    pipeline = _pipeline(model, train, test)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pipeline.fit(_frame(train), train.labels.astype(str))
    told = tuple({"the model did not converge" for w in caught if "converge" in str(w.message)})
    infinite = sorted({name for part in (train, test) for name in _infinite(part)})
    if infinite:
        told = (*told, f"infinite numbers of {', '.join(infinite)}, and those beyond {GREATEST:g}, count as missing")
    chances = pipeline.predict_proba(_frame(test))
    classes = np.asarray(pipeline.classes_)
    named = classes[chances.argmax(axis=1)]
    labels = test.labels.astype(str)
    return Scores(float(np.mean(named == labels)), _roc_auc(classes, chances, labels), len(train.labels)), told


def _pipeline(model: Model, train: Features, test: Features) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    if model != "logistic":
        raise JobError.at("--model", f"there is no model {model}; it must be logistic")
    numeric = train.numeric
    categories = [n for n in train.names if n not in numeric and n not in train.implied]
    implied = [(n, _indicators({**test.implied[n], **known}), [n]) for n, known in train.implied.items()]
    fill = {"strategy": "most_frequent", "keep_empty_features": True}
    prepared = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(**fill), StandardScaler()), numeric),
            ("categories", make_pipeline(SimpleImputer(**fill), OneHotEncoder(handle_unknown="ignore")), categories),
            *implied,
        ]
    )
    return make_pipeline(prepared, LogisticRegression(max_iter=1000))


def _indicators(implied: Implied) -> Any:
    """Of a column's labels, the indicators of all that they stand for."""
    from scipy.sparse import csr_array
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

    labels = sorted(implied)
    place = {name: i for i, name in enumerate(sorted({name for names in implied.values() for name in names}))}
    row = np.repeat(np.arange(len(labels)), [len(implied[label]) for label in labels])
    named = np.array([place[name] for label in labels for name in implied[label]], dtype=np.int64)
    meaning = csr_array((np.ones(len(row)), (row, named)), shape=(len(labels), len(place)))
    own = OneHotEncoder(categories=[np.array(labels, dtype=object)], handle_unknown="ignore")
    return make_pipeline(own, FunctionTransformer(partial(_stand_for, meaning), accept_sparse=True))


def _stand_for(meaning: Any, labels: Any) -> Any:
    return labels @ meaning


def _infinite(rows: Features) -> list[str]:
    """Names of the columns that hold an infinite number, or one that is too great."""
    numbers = zip(rows.names, rows.columns, strict=True)
    return [
        n for n, c in numbers if pa.types.is_floating(c.type) and _too_great(c.to_numpy(zero_copy_only=False)).any()
    ]


def _too_great(numbers: Floats) -> Flags:
    great: Flags = np.abs(numbers) > GREATEST
    return great


def _frame(rows: Features) -> pd.DataFrame:
    import pandas as pd

    made: dict[str, Any] = {}
    for name, values in zip(rows.names, rows.columns, strict=True):
        if pa.types.is_floating(values.type):
            numbers = values.to_numpy(zero_copy_only=False)
            made[name] = np.where(_too_great(numbers), np.nan, numbers)
        else:
            texts = np.empty(len(values), dtype=object)
            texts[:] = [np.nan if v is None else v for v in values.to_pylist()]
            made[name] = pd.Series(texts, dtype=object)
    return pd.DataFrame(made)


def _roc_auc(classes: npt.NDArray[np.str_], chances: Floats, labels: npt.NDArray[np.str_]) -> float | None:
    """Of two classes the area; of more the mean over the classes that the test part has and has not only."""
    from sklearn.metrics import roc_auc_score

    areas = []
    for i, name in enumerate(classes):
        positive = labels == name
        if positive.any() and not positive.all():
            areas.append(float(roc_auc_score(positive, chances[:, i])))
    return float(np.mean(areas)) if areas else None
