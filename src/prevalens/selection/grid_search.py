"""Model selection by quantification loss: choose settings by the error of their estimates.

A part of the training items is held out; a protocol draws samples from it, and the settings with
the smallest error of prevalence are chosen. The outer loop is over classifier settings (items are
scored once for each), the inner loop over aggregator settings (the same scores, aggregated again).
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted
from tqdm.auto import tqdm

from prevalens.aggregators import Aggregator, QuantifierLike
from prevalens.classifiers.settings import PerLabelSettings
from prevalens.collection import label_matrix
from prevalens.crossfit import Division, Scheme, trains_together, warn_of_copies
from prevalens.estimate import PrevalenceEstimate
from prevalens.metrics import MEASURES
from prevalens.protocols import MLAPP
from prevalens.protocols import Protocol as SamplingProtocol
from prevalens.response import is_joint
from prevalens.samples import Samples
from prevalens.scores import Scores
from prevalens.selection.trials import ClassifierSettings, SettingTrial, Task, try_settings
from prevalens.splits import stratified_holdout
from prevalens.types import Classifier, Floats, Groups, Items, LabelMatrix, Labels, Settings
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

#: Items of a validation sample by default, as in the paper.
SAMPLE_SIZE = 100
#: Validation samples at most by default; the paper's datasets reach it only with 983 labels.
MAX_SAMPLES = 20_000
#: How settings are chosen: see `GridSearch`.
CHOICES = ("auto", "together", "per-label", "binary-app")

#: Settings of the classifier and of the aggregator.
_Setting = tuple[Settings, Settings]


class SampleQuantifier(QuantifierLike, Protocol):
    """A quantifier with a name that estimates many samples of scored items at once.

    `prevalens.Quantifier`, `GridSearch` and the variants of a study have this interface. Such a
    quantifier can be evaluated, saved in a model and run in experiments. `fit` may take further
    keyword arguments.
    """

    labels_: tuple[str, ...]
    prevalence_: Floats

    @property
    def name(self) -> str:
        """The method's name in the catalogue."""

    @property
    def group(self) -> str:
        """BC or MLC + BA or MLA."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, as scikit-learn has it."""

    def set_params(self, **params: object) -> Self:
        """Change parameters by name."""

    def fit(
        self,
        X: Items,
        Y: Labels,
        *,
        labels: Sequence[str] | None = None,
        groups: Groups = None,
    ) -> Self:
        """Learn from labelled items."""

    def score(self, X: Items) -> Scores:
        """The scores of items as the aggregator reads them."""

    def aggregate(
        self, scores: Scores, samples: Samples, interval: float | None = None
    ) -> PrevalenceEstimate:
        """Estimate the prevalences of samples of items that have been scored."""

    def quantify(self, X: Items, *, interval: float | None = None) -> PrevalenceEstimate:
        """Estimate the prevalence of each label in one batch."""

    def quantify_many(
        self, X: Items, groups: Samples | Groups, *, interval: float | None = None
    ) -> PrevalenceEstimate:
        """Estimate the prevalence of each label in many batches."""


class TunableQuantifier(SampleQuantifier, Protocol):
    """A quantifier whose parts a search can train one after the other."""

    def resolved_parts(self) -> tuple[Classifier | None, Aggregator]:
        """Classifier and aggregator with defaults filled in."""

    def scheme_or_default(self) -> Scheme:
        """How labelled scores arise."""


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
        If settings are chosen per label, a label with fewer positives than this on either side
        keeps the settings of the given quantifier.
    order : {1, 2}
        1 balances labels in the stratification, 2 balances pairs of labels too.
    n_candidates : int, optional
        Try this many settings at random instead of all.
    time_limit : float, optional
        Seconds for one setting of the classifier; a setting that takes longer fails.
    refit : bool
        Whether to fit the chosen quantifier on all items.
    random_state : int
    n_jobs : int, optional
        Classifier settings tried at the same time. Settings that are solved together need none.
    progress : bool, optional
        Whether to show a bar; default: only on a terminal or in a notebook.

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
    solved together. The validation loss of the chosen setting is optimistic: on new data the loss
    is larger on average.

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
        quantifier: TunableQuantifier,
        grid: Mapping[str, Sequence[object]],
        *,
        protocol: SamplingProtocol | None = None,
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
        """The method's name: ``tuned(...)`` around that of the quantifier."""
        return f"tuned({self.quantifier.name})"

    @property
    def group(self) -> str:
        """The group of the quantifier."""
        return str(self.quantifier.group)

    def fit(
        self,
        X: Items,
        Y: Labels,
        *,
        labels: Sequence[str] | None = None,
        groups: Groups = None,
    ) -> Self:
        """Try every setting on a part of the items, choose, and fit on all.

        Parameters
        ----------
        X : array, sparse matrix, data frame or texts, one row per item
        Y : 0/1 matrix, data frame or list of label sets, one row per item
        labels : sequence of str, optional
        groups : sequence, one entry per item, optional
            Items of one group are never on both sides of a division, neither in this search nor
            inside the quantifier; see `Quantifier.fit`.
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
        chosen = self._choose(trials, Y, task) if alone else _best(trials)
        self._keep_choice(trials, chosen)
        if self.refit:
            self.best_quantifier_ = self._fit_on_all(
                self._chosen_quantifier(trials, chosen), X, Y, names, groups
            )
            self.labels_ = names
            self.prevalence_ = self.best_quantifier_.prevalence_
        return self

    def score(self, X: Items) -> Scores:
        """The scores of items as the chosen quantifier reads them."""
        return self._fitted().score(X)

    def aggregate(
        self, scores: Scores, samples: Samples, interval: float | None = None
    ) -> PrevalenceEstimate:
        """Estimate the prevalences of samples of scored items, by the chosen quantifier."""
        return self._fitted().aggregate(scores, samples, interval)

    def quantify(self, X: Items, *, interval: float | None = None) -> PrevalenceEstimate:
        """Estimate the prevalence of each label in one batch, by the chosen quantifier."""
        return self._fitted().quantify(X, interval=interval)

    def quantify_many(
        self, X: Items, groups: Samples | Groups, *, interval: float | None = None
    ) -> PrevalenceEstimate:
        """Estimate the prevalence of each label in many batches, by the chosen quantifier."""
        return self._fitted().quantify_many(X, groups, interval=interval)

    def _fitted(self) -> SampleQuantifier:
        check_is_fitted(self, "best_quantifier_")
        return self.best_quantifier_

    def _candidates(self) -> list[_Setting]:
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
        return [_by_part(dict(zip(self.grid, point, strict=True))) for point in points]

    def _per_label(
        self, classifier: Classifier | None, aggregator: Aggregator, candidates: Sequence[_Setting]
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
        """Rows to train on and rows to judge by; a subclass may choose others."""
        share = check_fraction(self.validation, "validation")
        return stratified_holdout(Y, share, order=self.order, seed=self.random_state, groups=groups)

    def _fit_on_all(
        self,
        quantifier: TunableQuantifier,
        X: Items,
        Y: LabelMatrix,
        labels: Sequence[str],
        groups: Groups,
    ) -> TunableQuantifier:
        """Fit the chosen quantifier; a subclass may fit it on other rows."""
        with warnings.catch_warnings():
            # `fit` has warned of copies already. Constant labels differ between divisions.
            warnings.filterwarnings("ignore", ".*exact copies", PrevalensWarning)
            return quantifier.fit(X, Y, labels=labels, groups=groups)

    def _task(self, X: Items, Y: LabelMatrix, groups: Groups) -> Task:
        rest, held = self._divide(Y, groups)
        protocol = self._protocol(len(held), Y.shape[1]).with_items(take_items(X, held))
        samples = protocol.draw(Y[held], self.random_state)
        return Task(
            X=take_items(X, rest),
            Y=Y[rest],
            X_held=take_items(X, held),
            samples=samples,
            true=samples.mean(Y[held]),
            loss=self.loss,
            own_samples=self.choose == "binary-app",
            scheme=self.quantifier.scheme_or_default(),
            groups=None if groups is None else groups[rest],
            time_limit=self.time_limit,
        )

    def _protocol(self, n_held: int, n_labels: int) -> SamplingProtocol:
        if self.protocol is not None:
            return self.protocol
        size = SAMPLE_SIZE if n_held >= SAMPLE_SIZE else max(1, n_held // 2)
        repeats = 5 if n_labels < 90 else 1
        return MLAPP(size=size, repeats=repeats, max_samples=MAX_SAMPLES)

    def _try_all(
        self,
        classifier: Classifier | None,
        aggregator: Aggregator,
        candidates: Sequence[_Setting],
        task: Task,
    ) -> list[SettingTrial]:
        """All trials, in the order of the candidates."""
        chunks = self._chunks(classifier, aggregator, candidates)
        # disable=None: no bar if standard error is neither a terminal nor a notebook.
        hidden = None if self.progress is None else not self.progress
        jobs = (delayed(try_settings)(*chunk, task) for chunk in chunks)
        done = Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs)
        bar = tqdm(done, total=len(chunks), desc="Settings", disable=hidden)
        return list(itertools.chain.from_iterable(bar))

    def _chunks(
        self,
        classifier: Classifier | None,
        aggregator: Aggregator,
        candidates: Sequence[_Setting],
    ) -> list[tuple[Classifier | None, Aggregator, list[ClassifierSettings]]]:
        """Jobs: a classifier, an aggregator and the settings of both that are tried together."""
        settings = _by_classifier(candidates)
        if classifier is None:
            # The aggregator trains the classifier itself, so each setting needs its own aggregator.
            return [(None, self._aggregator(each[0]), [each]) for each in settings]
        groups = [settings] if trains_together(classifier) else [[each] for each in settings]
        return [(classifier, aggregator, group) for group in groups]

    def _aggregator(self, settings: Settings) -> Aggregator:
        """The aggregator that trains a classifier with these settings itself."""
        params = {f"classifier__{name}": value for name, value in settings.items()}
        quantifier: TunableQuantifier = clone(self.quantifier).set_params(**params)
        return quantifier.resolved_parts()[1]

    def _choose(
        self, trials: Sequence[SettingTrial], Y: LabelMatrix, task: Task
    ) -> list[int | None]:
        """Each label's best trial; None for labels that are too rare to be judged.

        A label without samples of its own takes the best trial over all.
        """
        least = check_int(self.min_positives, "min_positives", minimum=0)
        known = task.Y.sum(axis=0, dtype=np.int64)
        rare = np.minimum(known, Y.sum(axis=0, dtype=np.int64) - known) < least
        table = np.array([trial.losses for trial in trials])
        choice = np.argmin(table, axis=0)
        choice[~np.isfinite(table).any(axis=0)] = _best(trials)
        return [None if alone else int(i) for i, alone in zip(choice, rare, strict=True)]

    def _keep_results(self, trials: Sequence[SettingTrial]) -> None:
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
            self.cv_results_[f"param_{name}"] = [setting[name] for setting in params]
        if not np.isfinite(losses).any():
            raise InputError(f"No setting could be fitted; the first said: {trials[0].failure}")

    def _keep_choice(
        self, trials: Sequence[SettingTrial], chosen: int | Sequence[int | None]
    ) -> None:
        self.best_index_ = chosen
        if isinstance(chosen, int):
            self.best_params_: dict[str, Any] = trials[chosen].params
            self.best_score_ = -trials[chosen].loss
            return
        own = self.quantifier.get_params(deep=True)
        self.best_params_ = {
            name: [own[name] if i is None else trials[i].params[name] for i in chosen]
            for name in trials[0].params
        }
        each = [trials[i].losses[label] for label, i in enumerate(chosen) if i is not None]
        self.best_score_ = -float(np.mean(each)) if each else float("nan")

    def _chosen_quantifier(
        self, trials: Sequence[SettingTrial], chosen: int | Sequence[int | None]
    ) -> TunableQuantifier:
        quantifier: TunableQuantifier = clone(self.quantifier)
        if isinstance(chosen, int):
            return quantifier.set_params(**trials[chosen].params)
        classifier, _ = self.quantifier.resolved_parts()
        settings: list[Settings] = [trial.classifier for trial in trials]
        choice = [len(settings) if i is None else i for i in chosen]
        return quantifier.set_params(
            classifier=PerLabelSettings(classifier, [*settings, {}], choice=choice)
        )


def _by_part(params: Settings) -> _Setting:
    """Settings of the classifier and of the aggregator, without their prefixes."""
    parts: dict[str, dict[str, object]] = {"classifier": {}, "aggregator": {}}
    for name, value in params.items():
        part, inner = name.split("__", 1)
        parts[part][inner] = value
    return parts["classifier"], parts["aggregator"]


def _by_classifier(candidates: Sequence[_Setting]) -> list[ClassifierSettings]:
    """Group candidates by their classifier settings, in the order of first occurrence."""
    grouped: list[ClassifierSettings] = []
    for classifier, aggregator in candidates:
        inside = next((inside for known, inside in grouped if known == classifier), None)
        if inside is None:
            grouped.append((classifier, [aggregator]))
        else:
            inside.append(aggregator)
    return grouped


def _best(trials: Sequence[SettingTrial]) -> int:
    """The position of the first trial with the smallest loss."""
    return int(np.argmin([trial.loss for trial in trials]))
