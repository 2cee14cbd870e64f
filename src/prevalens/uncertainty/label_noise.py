"""Errors of the people who labelled the training items: how large they are, and without them.

Two annotators who label the same items disagree where one of them errs. That gives the chance that
an answer is wrong, from which true labels are drawn, item by item, before a quantifier is fitted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from prevalens.classifiers import CrossFit, PerLabel
from prevalens.errors import InputError
from prevalens.estimate import Intervals, PrevalenceEstimate
from prevalens.types import Floats, Groups, Items, LabelMatrix
from prevalens.uncertainty.drift import arcsine, from_arcsine, quantile
from prevalens.uncertainty.misclassification import Rate
from prevalens.uncertainty.target import label_scores
from prevalens.validation import check_choice, check_same_length

Errors = Literal["balanced", "symmetric", "misses"]
#: What is assumed about the errors of annotators, for people.
ASSUMPTIONS: dict[str, str] = {
    "balanced": "they miss a label as often as they set it wrongly",
    "symmetric": "they err on items with and without a label at the same rate",
    "misses": "they miss labels, but never set one wrongly",
}
#: Annotators with a smaller kappa say too little to be corrected.
_LEAST_KAPPA = 0.1
#: Disagreements that the mean over labels starts with.
_START = 0.5
#: A posterior is kept this far from 0 and 1.
_EDGE = 1e-6
_STEP = 1e-4
#: Largest constant that is added to log-odds, and how often its interval is halved.
_MOST_ODDS, _BISECTIONS = 30.0, 50
_ENDS = ("point", "lower", "upper", "band_lower", "band_upper")


@dataclass(frozen=True)
class LabelNoise:
    """How often annotators err, label by label.

    Attributes
    ----------
    kappa : array of float, shape (n_labels,)
        Agreement of two annotators beyond chance; 1 if they never err.
    deviation : array of float, shape (n_labels,)
        Standard error of `kappa`; 0 if it was stated without one.
    observed : array of float, shape (n_labels,)
        Share of the training items that were given each label.
    errors : {"balanced", "symmetric", "misses"}
        What is assumed about errors, because two annotators alone do not tell it: they miss a label
        as often as they set it wrongly; they err on items with and without a label at the same
        rate; or they miss labels, but never set one wrongly.
    agreement : float
        Share of answers in which two annotators agree, over all labels.
    n_pairs : int
        Items that both annotators labelled; 0 if the agreement was stated.
    second : array of float, shape (n_items, n_labels), or None
        Answers of the second annotator; NaN in rows that were not labelled twice.

    Notes
    -----
    Both annotators are taken to be equally good, and to err independently of each other and of
    what an item looks like, given its true labels. With disagreement ``2 q (1 - q) (1 - kappa)``
    and a share of given labels ``q``, each of the assumptions has exactly one solution for the true
    prevalence, sensitivity and specificity, which is never negative.

    Fails where both annotators make the same mistakes, as on items that are hard for everyone:
    they agree, and the errors do not show.

    Examples
    --------
    >>> noise = LabelNoise.from_kappa([[1], [0], [0], [0], [0]], 0.81)
    >>> noise.sensitivity.round(3).tolist(), noise.specificity.round(3).tolist()
    ([0.92], [0.98])
    """

    kappa: Floats
    deviation: Floats
    observed: Floats
    errors: Errors = "balanced"
    agreement: float = 1.0
    n_pairs: int = 0
    second: Floats | None = None

    @classmethod
    def from_second(
        cls, Y: npt.ArrayLike, second: npt.ArrayLike, *, errors: Errors = "balanced"
    ) -> LabelNoise:
        """The noise that the answers of a second annotator show.

        Parameters
        ----------
        Y : 0/1 array, shape (n_items, n_labels)
        second : array of 0, 1 or NaN, shape (n_items, n_labels)
            NaN in rows that the second annotator did not label.
        errors : {"balanced", "symmetric", "misses"}

        Notes
        -----
        Disagreements are taken to be Poisson, and ``1 - kappa`` of a label gamma distributed over
        labels, with the mean and variance that all labels show: a rare label is drawn to the
        others.
        """
        check_choice(errors, "errors", tuple(ASSUMPTIONS))
        first, other = np.asarray(Y, dtype=np.float64), np.asarray(second, dtype=np.float64)
        check_same_length(len(first), "Y", len(other), "the second labels")
        both = ~np.isnan(other).any(axis=1)
        if not both.any():
            raise InputError("No item is labelled by both annotators, so their errors do not show.")
        share = (first[both].mean(axis=0) + other[both].mean(axis=0)) / 2.0
        apart = (first[both] != other[both]).sum(axis=0).astype(np.float64)
        expected = 2.0 * both.sum() * share * (1.0 - share)
        kappa, deviation = _shrunk(apart, expected)
        agreement = 1.0 - float(apart.sum()) / (both.sum() * first.shape[1])
        _check_kappa(kappa, f"The annotators agree in {agreement:.1%} of their answers, which")
        found = cls(kappa, deviation, first.mean(axis=0), errors, agreement, int(both.sum()))
        return replace(found, second=other)

    @classmethod
    def from_agreement(
        cls, Y: npt.ArrayLike, agreement: Any, *, errors: Errors = "balanced"
    ) -> LabelNoise:
        """The noise of annotators of whom it is known in which share of answers they agree.

        Parameters
        ----------
        Y : 0/1 array, shape (n_items, n_labels)
        agreement : float, str or Rate
            Share of the answers, over all labels, that two annotators agree in, such as 0.95 or
            ``"0.95 (0.93-0.97)"``. All labels get the same kappa.
        errors : {"balanced", "symmetric", "misses"}
        """
        share = np.asarray(Y, dtype=np.float64).mean(axis=0)
        rate = _rate(agreement, "The agreement")
        by_chance = float(np.mean(2.0 * share * (1.0 - share)))
        kappa = 1.0 - (1.0 - rate.value) / max(by_chance, _EDGE)
        if kappa < _LEAST_KAPPA:
            raise InputError(
                f"An agreement of {rate.value:g} is hardly more than chance: annotators who give "
                f"labels at random, as often as these, agree in {1 - by_chance:.1%} of the answers."
            )
        spread = _deviation(rate) / max(by_chance, _EDGE)
        return cls._stated(share, kappa, spread, errors, rate.value)

    @classmethod
    def from_kappa(cls, Y: npt.ArrayLike, kappa: Any, *, errors: Errors = "balanced") -> LabelNoise:
        """The noise of annotators of whom Cohen's kappa is known, as `from_agreement` takes it."""
        share = np.asarray(Y, dtype=np.float64).mean(axis=0)
        rate = _rate(kappa, "kappa")
        _check_kappa(np.array([rate.value]), f"A kappa of {rate.value:g}")
        agreement = 1.0 - (1.0 - rate.value) * float(np.mean(2.0 * share * (1.0 - share)))
        return cls._stated(share, rate.value, _deviation(rate), errors, agreement)

    @classmethod
    def _stated(
        cls, share: Floats, kappa: float, deviation: float, errors: Errors, agreement: float
    ) -> LabelNoise:
        check_choice(errors, "errors", tuple(ASSUMPTIONS))
        same = np.ones_like(share)
        return cls(kappa * same, deviation * same, share, errors, agreement)

    @property
    def prevalence(self) -> Floats:
        """True prevalences of the training items, shape (n_labels,)."""
        return _solved(self.observed, self.kappa, self.errors)[0]

    @property
    def sensitivity(self) -> Floats:
        """Share of the items with a label that are given it, shape (n_labels,)."""
        return self._informedness + self._false_alarms

    @property
    def specificity(self) -> Floats:
        """Share of the items without a label that are not given it, shape (n_labels,)."""
        return 1.0 - self._false_alarms

    @property
    def _informedness(self) -> Floats:
        """Sensitivity + specificity - 1."""
        return _solved(self.observed, self.kappa, self.errors)[1]

    @property
    def _false_alarms(self) -> Floats:
        return np.clip(self.observed - self._informedness * self.prevalence, 0.0, 1.0)

    def true_labels(
        self, X: Items, Y: LabelMatrix, *, classifier: Any = None, groups: Groups = None
    ) -> LabelMatrix:
        """Labels drawn from what the answers and the scores of an item say about its true ones.

        Parameters
        ----------
        X : items that the classifier takes
        Y : 0/1 array, shape (n_items, n_labels)
            Answers of the first annotator.
        classifier : classifier with posteriors, optional
            Default: a logistic regression per label.
        groups : sequence, one entry per item, optional

        Notes
        -----
        A classifier learns the answers; its posteriors of items it was not trained on, ``s``, give
        those of the true label, ``(s - 1 + specificity) / (sensitivity + specificity - 1)``, which
        the answers of one or both annotators then update by Bayes' theorem. One constant per label
        is added to their log-odds, so that their mean is the true prevalence. From these chances
        labels are drawn systematically, sorted by chance: their number is off by less than one.
        What is fitted to them sees items and labels as they would be without errors. A label that
        no item would keep stays as it was given.
        """
        classifier = PerLabel() if classifier is None else classifier
        scored = CrossFit().fit(classifier, X, Y, "posteriors", groups=groups)
        scores = label_scores(scored.scores, Y.shape[1])
        gain = np.maximum(self._informedness, _EDGE)
        prior = np.clip((scores - self._false_alarms) / gain, _EDGE, 1.0 - _EDGE)
        odds = prior / (1.0 - prior) * self._evidence(Y)
        if self.second is not None:
            known = ~np.isnan(self.second)
            odds = odds * np.where(known, self._evidence(np.where(known, self.second, 0)), 1.0)
        drawn = _drawn(_with_mean(np.log(odds), self.prevalence))
        constant = (drawn.min(axis=0) == drawn.max(axis=0)) & (Y.min(axis=0) != Y.max(axis=0))
        return np.where(constant, Y, drawn).astype(np.int8)

    def _evidence(self, answers: Any) -> Floats:
        """Likelihood ratios of answers, true label against none."""
        hit, alarm = self.sensitivity, self._false_alarms
        yes = hit / np.maximum(alarm, _EDGE)
        no = np.maximum(1.0 - hit, _EDGE) / np.maximum(1.0 - alarm, _EDGE)
        return np.where(np.asarray(answers) == 1, yes, no)

    def reach(self, point: Floats) -> Floats:
        """Standard error of estimates that comes from that of kappa, on the scale of `arcsine`."""
        low, high = (
            _solved(self.observed, np.clip(self.kappa + step, _EDGE, 1.0), self.errors)[0]
            for step in (-_STEP, _STEP)
        )
        offset = np.abs(high - low) / (2.0 * _STEP) * self.deviation
        slope = self.deviation / (2.0 * self.kappa)
        error = np.hypot(offset, np.abs(point - self.prevalence) * slope)
        return (arcsine(point + error) - arcsine(point - error)) / 2.0

    def stretched(self, intervals: Intervals, point: Floats) -> Intervals:
        """Intervals of a quantifier that took drawn labels for true ones, made wide enough.

        The squared correlation of an answer and the true label is kappa, under each of the
        assumptions: n answers say as much as ``kappa * n`` true labels. Distances from the point
        are divided by its square root, on the scale of `arcsine`.
        """
        centre, factor = arcsine(point), 1.0 / np.sqrt(self.kappa)
        ends = {
            name: from_arcsine(centre + factor * (arcsine(end) - centre))
            for name, end in vars(intervals).items()
            if name != "p_value"
        }
        return replace(intervals, **ends)

    def as_seen(self, estimate: PrevalenceEstimate) -> PrevalenceEstimate:
        """What annotators would count where the true prevalences are those of an estimate."""
        return _mapped(estimate, self._informedness, self._false_alarms)

    def as_true(self, estimate: PrevalenceEstimate) -> PrevalenceEstimate:
        """True prevalences where annotators count what an estimate says (Rogan and Gladen)."""
        gain = 1.0 / np.maximum(self._informedness, _EDGE)
        return _mapped(estimate, gain, -self._false_alarms * gain)

    def sentence(self, labels: Any) -> str:
        """Agreement, assumption and what becomes of the training prevalences, for people."""
        how = f"labelled {self.n_pairs:,} items and" if self.n_pairs else "are said to"
        kappa = f"kappa {np.median(self.kappa):.2f}"
        text = f"Two annotators {how} agree in {self.agreement:.1%} of the answers ({kappa}). "
        text += (
            "Estimates are of true labels, if both are equally good, err independently, and "
            f"{ASSUMPTIONS[self.errors]}"
        )
        change = self.prevalence - self.observed
        most = int(np.argmax(np.abs(change)))
        if abs(change[most]) < _EDGE:
            return f"{text}; the training prevalences stay as they are."
        name, before = list(labels)[most], 100 * self.observed[most]
        text += f": {name}, which {before:.1f} % of the training items were given, becomes "
        text += f"{100 * self.prevalence[most]:.1f} %"
        if not self.deviation[most]:
            return f"{text}."
        reach = quantile(0.9) * self.reach(self.prevalence)[most]
        ends = (arcsine(self.prevalence[most]) + side for side in (-reach, reach))
        return "{} ({:.1f} to {:.1f}).".format(text, *(100 * from_arcsine(end) for end in ends))


def _rate(given: Any, name: str) -> Rate:
    return given if isinstance(given, Rate) else Rate.parse(given, name)


def _deviation(rate: Rate) -> float:
    return float(np.sqrt(rate.value * (1.0 - rate.value) / rate.n))


def _check_kappa(kappa: Floats, subject: str) -> None:
    if kappa.min() < _LEAST_KAPPA:
        raise InputError(
            f"{subject} is hardly more than chance (kappa {kappa.min():.2f}); labels like these "
            "cannot be corrected. Are the columns of both annotators in the same order?"
        )


def _shrunk(apart: Floats, expected: Floats) -> tuple[Floats, Floats]:
    """Kappas drawn to their mean, and their standard errors; see `LabelNoise.from_second`."""
    total = float(expected.sum()) + _START
    mean = (float(apart.sum()) + _START) / total
    usable = expected > 0
    raw, weight = apart[usable] / expected[usable], expected[usable]
    excess = float(weight @ (raw - mean) ** 2) - (len(raw) - 1) * mean
    variance = excess / max(total - float((weight**2).sum()) / total, _EDGE)
    # The variance between labels is hardly known; no label stands for itself alone.
    shape = mean**2 / variance if variance > 0 else np.inf
    pull = min(max(shape, 1.0), 1e6) / mean
    kappa = 1.0 - (pull * mean + apart) / (pull + expected)
    own = np.sqrt(pull * mean + apart) / (pull + expected)
    shared = pull / (pull + expected) * np.sqrt(mean / total)
    return np.minimum(kappa, 1.0), np.hypot(own, shared)


def _solved(q: Floats, kappa: Floats, errors: Errors) -> tuple[Floats, Floats]:
    """True prevalence, and sensitivity + specificity - 1, of given shares and kappas."""
    if errors == "balanced":
        return q, np.sqrt(kappa)
    if errors == "misses":
        found = 1.0 - (1.0 - q) * (1.0 - kappa)
        return q / np.maximum(found, _EDGE), found
    apart = 2.0 * q * (1.0 - q) * (1.0 - kappa)
    gain = np.sqrt(np.maximum(1.0 - 2.0 * apart, _EDGE))
    return np.clip((q - (1.0 - gain) / 2.0) / gain, 0.0, 1.0), gain


def _with_mean(log_odds: Floats, mean: Floats) -> Floats:
    """Chances from log-odds plus a constant per column, found by bisection, that gives the mean."""
    low, high = np.full(mean.shape, -_MOST_ODDS), np.full(mean.shape, _MOST_ODDS)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        above = expit(log_odds + middle).mean(axis=0) > mean
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.asarray(expit(log_odds + low))


def _drawn(chances: Floats) -> npt.NDArray[np.int8]:
    """Labels by systematic sampling, column by column; O(n_items log n_items) each."""
    order = np.argsort(chances, axis=0, kind="stable")
    sums = np.cumsum(np.take_along_axis(chances, order, axis=0), axis=0) + 0.5
    hits = np.diff(np.floor(sums), axis=0, prepend=np.zeros((1, chances.shape[1])))
    drawn = np.empty(chances.shape, dtype=np.int8)
    np.put_along_axis(drawn, order, hits.astype(np.int8), axis=0)
    return drawn


def _mapped(estimate: PrevalenceEstimate, gain: Floats, offset: Floats) -> PrevalenceEstimate:
    """The estimate with point and ends times a gain, plus an offset, between 0 and 1."""
    known = {name: value for name, value in vars(estimate).items() if value is not None}
    moved = {
        name: np.clip(gain * known[name] + offset, 0.0, 1.0) for name in _ENDS if name in known
    }
    return PrevalenceEstimate(**(known | moved))
