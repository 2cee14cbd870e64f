"""Model selection by quantification loss: the settings whose estimates are best, not whose votes.

A part of the training items is kept aside; samples are drawn from it by a protocol, and the
settings with the smallest error of prevalence win. Classifier settings are the outer loop (items
are scored once for each), aggregator settings the inner one (the same scores, aggregated again).
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted
from tqdm import tqdm

from prevalens.aggregators.base import Aggregator
from prevalens.classifiers.settings import PerLabelSettings
from prevalens.collection import label_matrix
from prevalens.crossfit import Division, TrainsTogether, warn_of_copies
from prevalens.estimate import PrevalenceEstimate
from prevalens.metrics import MEASURES
from prevalens.protocols import MLAPP
from prevalens.response import is_joint
from prevalens.scores import Scores
from prevalens.selection.trials import (
    Task,
    Trial,
    best_trial,
    by_classifier,
    losses_of,
    per_label_choice,
    try_chunk,
)
from prevalens.splits import stratified_holdout
from prevalens.types import Floats, Groups, LabelMatrix, Settings
from prevalens.validation import (
    InputError,
    PrevalensWarning,
    check_choice,
    check_fraction,
    check_int,
    check_items,
    check_rng,
    take_items,
)

__all__ = ["GridSearch"]

#: Items of a validation sample by default, as in the paper.
SAMPLE_SIZE = 100
#: Validation samples at most by default; the paper's datasets reach it only with 983 labels.
MAX_SAMPLES = 20_000
#: How settings are chosen: see `GridSearch`.
CHOICES = ("auto", "together", "per-label", "binary-app")


class TunableQuantifier(Protocol):
    """What the search needs of a quantifier: `prevalens.Quantifier` and nothing it imports."""

    prevalence_: Floats

    @property
    def name(self) -> str: ...

    @property
    def group(self) -> str: ...

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...

    def set_params(self, **params: Any) -> Self: ...

    def halves(self) -> tuple[Any, Aggregator]: ...

    def scheme_or_default(self) -> Any: ...

    def fit(self, X: Any, Y: Any, *, labels: Any = None, groups: Groups = None) -> Self: ...

    def score(self, X: Any) -> Scores: ...

    def quantify(self, X: Any) -> PrevalenceEstimate: ...

    def quantify_many(self, X: Any, groups: Any) -> PrevalenceEstimate: ...


class GridSearch(BaseEstimator):  # type: ignore[misc]
    """Choose the settings of a quantifier by its error of prevalence, then fit it on all items.

    Parameters
    ----------
    quantifier : Quantifier
    grid : dict of parameter name to list of values
        Names as in scikit-learn: ``classifier__C``, ``aggregator__regressor__C``.
    protocol : Protocol, optional
        How validation samples are drawn. Default: ML-APP as in the paper, with samples of 100
        items, five per label and grid point, one from 90 labels on, 20,000 in all at most. If
        fewer than 100 items are kept aside, a sample has half of them.
    loss : str
        Name of a measure, such as ``"ae"``.
    validation : float
        Share of the items that the samples are drawn from.
    choose : {"auto", "together", "per-label", "binary-app"}
        ``"together"``: one setting for all labels. ``"per-label"``: each label its own, by
        its error over all samples; only where classifier and aggregator treat labels alone.
        ``"binary-app"``: the same, by its error over the samples that steer this label alone.
        ``"auto"``: per label where possible.
    min_positives : int
        Where labels choose for themselves, one with fewer positives than this on either side
        keeps the settings that the quantifier came with.
    order : {1, 2}
        Of the stratification that divides the items: 1 balances labels, 2 pairs of labels too.
    n_candidates : int, optional
        Try this many settings at random instead of all.
    time_limit : float, optional
        Seconds for one setting of the classifier; a setting that takes longer is out.
    refit : bool
        Whether to fit the chosen quantifier on all items.
    random_state : int
    n_jobs : int, optional
        Classifier settings tried at the same time. Settings that are solved together need none.
    progress : bool, optional
        Whether to show a bar; default: only on a terminal.

    Attributes
    ----------
    best_params_ : dict
        Parameter name to value; where chosen per label, to the list of values.
    best_score_ : float
        Minus the loss of the chosen settings; over the labels that chose, where they do.
    best_quantifier_ : Quantifier
        Fitted on all items.
    cv_results_ : dict of arrays
        A row per setting: ``params``, ``param_*``, ``mean_test_score`` (minus loss),
        ``rank_test_score``, ``seconds``, ``failure``.

    Notes
    -----
    Costs C trainings of the classifier and C x A of the aggregator for C and A settings of each,
    never C x A trainings of the classifier. All settings of the batched logistic regression are
    solved together. The winner is a little lucky: its validation loss is not its loss on new data.

    References
    ----------
    Moreo and Sebastiani, "Re-assessing the classify and count quantification method", ECIR 2021.

    Examples
    --------
    >>> from prevalens import Quantifier
    >>> from prevalens.aggregators import PCC
    >>> from prevalens.classifiers import PerLabel
    >>> from prevalens.datasets import synthetic
    >>> from prevalens.protocols import Natural
    >>> data = synthetic(n_train=300, n_test=100, n_labels=3, random_state=0)
    >>> search = GridSearch(
    ...     Quantifier(PerLabel(), PCC()),
    ...     {"classifier__C": [0.1, 10.0]},
    ...     protocol=Natural(size=50, n_samples=10),
    ...     choose="together",
    ... )
    >>> search.fit(data.train.X, data.train.Y).best_params_["classifier__C"] in (0.1, 10.0)
    True
    """

    code = "tuned"

    def __init__(
        self,
        quantifier: Any,
        grid: Mapping[str, Sequence[Any]],
        *,
        protocol: Any = None,
        loss: str = "ae",
        validation: float = 0.4,
        choose: str = "auto",
        min_positives: int = 0,
        order: int = 1,
        n_candidates: int | None = None,
        time_limit: float | None = None,
        refit: bool = True,
        random_state: int = 0,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.quantifier = quantifier
        self.grid = grid
        self.protocol = protocol
        self.loss = loss
        self.validation = validation
        self.choose = choose
        self.min_positives = min_positives
        self.order = order
        self.n_candidates = n_candidates
        self.time_limit = time_limit
        self.refit = refit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    @property
    def name(self) -> str:
        """The method in the words of the catalogue, ``tuned(...)`` around the quantifier's."""
        return f"tuned({self.quantifier.name})"

    @property
    def group(self) -> str:
        """The group of the quantifier."""
        return str(self.quantifier.group)

    def fit(self, X: Any, Y: Any, *, labels: Any = None, groups: Groups = None) -> Self:
        """Try every setting on a part of the items, choose, and fit on all.

        Parameters
        ----------
        X : array, sparse matrix, data frame or texts, one row per item
        Y : 0/1 matrix, data frame or list of label sets, one row per item
        labels : sequence of str, optional
        groups : sequence, one entry per item, optional
            Items of one group are never on both sides of a division, neither of the one that
            settings are judged by nor of those inside the quantifier; see `Quantifier.fit`.
        """
        X = check_items(X)
        Y, names = label_matrix(Y, labels)
        groups = None if groups is None else np.asarray(groups)
        if groups is None:
            warn_of_copies(X, Y)
        check_choice(self.loss, "loss", tuple(MEASURES))
        classifier, aggregator = self.quantifier.resolved_parts()
        candidates = self._candidates()
        alone = self._per_label(classifier, aggregator, candidates)
        task = self._task(X, Y, groups)
        trials = self._try_all(classifier, aggregator, candidates, task)
        self._keep_results(trials)
        chosen = self._choose(trials, task) if alone else best_trial(trials)
        self._keep_choice(trials, chosen)
        if self.refit:
            self.best_quantifier_ = self._fit_on_all(
                self._chosen_quantifier(trials, chosen), X, Y, names, groups
            )
            self.labels_ = names
            self.prevalence_ = self.best_quantifier_.prevalence_
        return self

    def score(self, X: Any) -> Scores:
        """The scores of items as the chosen quantifier reads them."""
        return self._fitted().score(X)

    def quantify(self, X: Any) -> PrevalenceEstimate:
        """Estimate the prevalence of each label in one batch, by the chosen quantifier."""
        return self._fitted().quantify(X)

    def quantify_many(self, X: Any, groups: Any) -> PrevalenceEstimate:
        """Estimate the prevalence of each label in many batches, by the chosen quantifier."""
        return self._fitted().quantify_many(X, groups)

    def _fitted(self) -> TunableQuantifier:
        check_is_fitted(self, "best_quantifier_")
        found: TunableQuantifier = self.best_quantifier_
        return found

    def _candidates(self) -> list[tuple[Settings, Settings]]:
        """Every pair of classifier setting and aggregator setting, or some at random."""
        if not isinstance(self.grid, Mapping):
            raise InputError(f"grid must map parameter names to lists; got {self.grid!r}.")
        known = self.quantifier.get_params(deep=True)
        for name, values in self.grid.items():
            if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
                raise InputError(f"grid[{name!r}] must be a list of values; got {values!r}.")
            if not name.startswith(("classifier__", "aggregator__")):
                raise InputError(
                    f"The grid names {name!r}; a setting belongs to the classifier or the "
                    "aggregator: classifier__... or aggregator__...."
                )
            if name not in known:
                raise InputError(f"{self.quantifier.name} has no parameter {name!r}.")
        points = list(itertools.product(*self.grid.values()))
        if self.n_candidates is not None:
            count = min(check_int(self.n_candidates, "n_candidates", minimum=1), len(points))
            some = check_rng(self.random_state).choice(len(points), size=count, replace=False)
            points = [points[i] for i in np.sort(some)]
        return [self._halved(dict(zip(self.grid, point, strict=True))) for point in points]

    @staticmethod
    def _halved(params: Mapping[str, Any]) -> tuple[Settings, Settings]:
        halves = ({}, {})  # type: tuple[dict[str, Any], dict[str, Any]]
        for name, value in params.items():
            half, inner = name.split("__", 1)
            halves[half == "aggregator"][inner] = value
        return halves

    def _per_label(
        self, classifier: Any, aggregator: Aggregator, candidates: Sequence[tuple[Any, Any]]
    ) -> bool:
        """Whether each label chooses for itself."""
        choose = check_choice(self.choose, "choose", CHOICES)
        if choose == "together":
            return False
        alone = classifier is not None and not is_joint(classifier) and not aggregator.joint
        possible = alone and not any(settings for _, settings in candidates)
        if not possible and choose != "auto":
            raise InputError(
                f"choose={choose!r} needs a classifier and an aggregator that treat labels alone, "
                f"and only classifier settings; {self.quantifier.name} with "
                f"{sorted(self.grid)} does not fit. Use choose='together'."
            )
        return possible

    def _divide(self, Y: LabelMatrix, groups: Groups) -> Division:
        """Rows to train on and rows to judge by."""
        share = check_fraction(self.validation, "validation")
        return stratified_holdout(Y, share, order=self.order, seed=self.random_state, groups=groups)

    def _fit_on_all(
        self, quantifier: TunableQuantifier, X: Any, Y: LabelMatrix, labels: Any, groups: Groups
    ) -> TunableQuantifier:
        with warnings.catch_warnings():
            # Copies have been warned of; constant labels of this division are another matter.
            warnings.filterwarnings("ignore", ".*exact copies", PrevalensWarning)
            return quantifier.fit(X, Y, labels=labels, groups=groups)

    def _task(self, X: Any, Y: LabelMatrix, groups: Groups) -> Task:
        rest, held = self._divide(Y, groups)
        protocol = self._protocol(len(held), Y.shape[1]).with_items(take_items(X, held))
        samples = protocol.draw(Y[held], self.random_state)
        return Task(
            X=take_items(X, rest),
            Y=Y[rest],
            X_held=take_items(X, held),
            positives_held=Y[held].sum(axis=0, dtype=np.int64),
            samples=samples,
            true=samples.mean(Y[held]),
            loss=self.loss,
            own_samples=self.choose == "binary-app",
            scheme=self.quantifier.scheme_or_default(),
            groups=None if groups is None else groups[rest],
            time_limit=self.time_limit,
        )

    def _protocol(self, n_held: int, n_labels: int) -> Any:
        if self.protocol is not None:
            return self.protocol
        size = SAMPLE_SIZE if n_held >= SAMPLE_SIZE else max(1, n_held // 2)
        repeats = 5 if n_labels < 90 else 1
        return MLAPP(size=size, repeats=repeats, max_samples=MAX_SAMPLES)

    def _try_all(
        self,
        classifier: Any,
        aggregator: Aggregator,
        candidates: Sequence[tuple[Settings, Settings]],
        task: Task,
    ) -> list[Trial]:
        """All trials, in the order of the candidates."""
        chunks = self._chunks(classifier, aggregator, candidates)
        hidden = not (sys.stderr.isatty() if self.progress is None else self.progress)
        jobs = (delayed(try_chunk)(*chunk, task) for chunk in chunks)
        done = Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs)
        bar = tqdm(done, total=len(chunks), desc="Settings", disable=hidden)
        return list(itertools.chain.from_iterable(bar))

    def _chunks(
        self,
        classifier: Any,
        aggregator: Aggregator,
        candidates: Sequence[tuple[Settings, Settings]],
    ) -> list[tuple[Any, Aggregator, list[tuple[Settings, list[Settings]]]]]:
        """What is tried in one go: a classifier, an aggregator and settings of both."""
        groups = by_classifier(candidates)
        if classifier is None:
            # The aggregator trains the classifier itself; with another setting it is another one.
            return [(None, self._adopted(group[0]), [group]) for group in groups]
        if isinstance(classifier, TrainsTogether):
            return [(classifier, aggregator, groups)]
        return [(classifier, aggregator, [group]) for group in groups]

    def _adopted(self, settings: Settings) -> Aggregator:
        """The aggregator that has taken over a classifier with these settings."""
        params = {f"classifier__{name}": value for name, value in settings.items()}
        _, aggregator = clone(self.quantifier).set_params(**params).resolved_parts()
        return aggregator

    def _choose(self, trials: Sequence[Trial], task: Task) -> list[int | None]:
        """Each label's trial; None for labels that are too rare to be judged."""
        least = check_int(self.min_positives, "min_positives", minimum=0)
        rare = task.fewest_positives() < least
        return [
            None if alone else number
            for number, alone in zip(per_label_choice(trials), rare, strict=True)
        ]

    def _keep_results(self, trials: Sequence[Trial]) -> None:
        losses = np.array([trial.loss for trial in trials])
        params = [trial.params for trial in trials]
        self.cv_results_: dict[str, Any] = {
            "params": params,
            "mean_test_score": -losses,
            "rank_test_score": np.argsort(np.argsort(losses, kind="stable"), kind="stable") + 1,
            "seconds": np.array([trial.seconds for trial in trials]),
            "failure": [trial.failure for trial in trials],
        }
        for name in params[0] if params else ():
            self.cv_results_[f"param_{name}"] = [one[name] for one in params]
        if not np.isfinite(losses).any():
            raise InputError(f"No setting could be fitted; the first said: {trials[0].failure}")

    def _keep_choice(self, trials: Sequence[Trial], chosen: Any) -> None:
        if isinstance(chosen, int):
            self.best_index_: Any = chosen
            self.best_params_: dict[str, Any] = trials[chosen].params
            self.best_score_ = -trials[chosen].loss
            return
        self.best_index_ = chosen
        own = self.quantifier.get_params(deep=True)
        self.best_params_ = {
            name: [own[name] if i is None else trials[i].params[name] for i in chosen]
            for name in trials[0].params
        }
        each = [losses_of(trials[i])[j] for j, i in enumerate(chosen) if i is not None]
        self.best_score_ = -float(np.mean(each)) if each else float("nan")

    def _chosen_quantifier(self, trials: Sequence[Trial], chosen: Any) -> TunableQuantifier:
        quantifier = clone(self.quantifier)
        if isinstance(chosen, int):
            return quantifier.set_params(**trials[chosen].params)
        classifier, _ = self.quantifier.resolved_parts()
        settings: list[Settings] = [trial.classifier for trial in trials]
        choice = [len(settings) if i is None else i for i in chosen]
        return quantifier.set_params(
            classifier=PerLabelSettings(classifier, [*settings, {}], choice=choice)
        )
