import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.classifiers.clems import COSTS, cost_blocks, embed, starting_points
from prevalens.validation import InputError


def labelsets(n_labels=5, n_states=12, seed=0):
    rng = np.random.default_rng(seed)
    Y = rng.integers(0, 2, (200, n_labels))
    states = np.unique(Y, axis=0)[:n_states]
    return states, rng.integers(1, 9, len(states))


def by_hand(name, truth, answer):
    """Each cost as its definition says, one pair of labelsets at a time."""
    t, a = set(np.flatnonzero(truth)), set(np.flatnonzero(answer))
    if name == "hamming":
        return len(t ^ a) / len(truth)
    if name == "f1":
        return 1 - (2 * len(t & a) / (len(t) + len(a)) if t or a else 1)
    if name == "jaccard":
        return 1 - (len(t & a) / len(t | a) if t or a else 1)
    pairs = [(i, j) for i in t for j in range(len(truth)) if j not in t]
    return sum(1.0 if answer[i] < answer[j] else 0.5 * (answer[i] == answer[j]) for i, j in pairs)


@pytest.mark.parametrize("name", COSTS)
def test_costs_are_their_definitions(name):
    states, _ = labelsets(n_states=32)
    assert not states[0].any()
    roots = np.vstack([block for _, block in cost_blocks(states, name)()])
    expected = [[by_hand(name, truth, answer) for answer in states] for truth in states]
    np.testing.assert_allclose(roots**2, expected, atol=1e-12)


def test_a_cost_may_be_a_function():
    states, _ = labelsets()
    own = cost_blocks(states, lambda truth, answer: np.mean(truth != answer))
    named = cost_blocks(states, "hamming")
    for (rows, left), (same_rows, right) in zip(own(), named(), strict=True):
        assert rows == same_rows
        np.testing.assert_allclose(left, right)


def test_wrong_costs_are_refused():
    states, _ = labelsets()
    with pytest.raises(InputError, match="'hamming', 'f1', 'jaccard', 'rank'; got 'ham'"):
        cost_blocks(states, "ham")
    with pytest.raises(InputError, match="not below 0"):
        cost_blocks(states, lambda truth, answer: -1.0)


def test_small_blocks_give_the_same(monkeypatch):
    states, weights = labelsets()
    start = starting_points(states, weights, 5)
    whole = embed(cost_blocks(states, "f1"), weights, start)
    monkeypatch.setattr("prevalens.classifiers.clems._BLOCK", 30)
    blocks = cost_blocks(states, "f1")
    assert len(list(blocks())) == 6
    cut = embed(blocks, weights, start)
    np.testing.assert_allclose(cut[0], whole[0], atol=1e-9)
    np.testing.assert_allclose(cut[1], whole[1], atol=1e-9)


def test_labelsets_are_the_solution_for_the_hamming_cost():
    states, weights = labelsets()
    truths, answers, stress = embed(
        cost_blocks(states, "hamming"), weights, starting_points(states, weights, 5)
    )
    assert len(stress) == 1
    np.testing.assert_allclose(stress, 0, atol=1e-12)
    np.testing.assert_array_equal(truths, answers)
    np.testing.assert_allclose(
        ((truths[:, np.newaxis] - answers) ** 2).sum(axis=2),
        np.mean(states[:, np.newaxis] != states, axis=2),
        atol=1e-12,
    )


@given(name=st.sampled_from(sorted(COSTS)), n_components=st.integers(1, 7), seed=st.integers(0, 50))
def test_stress_never_rises(name, n_components, seed):
    states, weights = labelsets(seed=seed)
    start = starting_points(states, weights, n_components)
    assert start.shape == (len(states), n_components)
    _, _, stress = embed(cost_blocks(states, name), weights, start, max_iter=30, tol=0)
    assert np.all(np.diff(stress) <= 1e-9 * stress[0] + 1e-12)


def smacof_by_pseudo_inverse(goal, weights, start, n_steps):
    """The Guttman transform of all points in both roles, with the full matrices written out."""
    n = len(weights)
    W, D = np.zeros((2 * n, 2 * n)), np.zeros((2 * n, 2 * n))
    W[:n, n:] = weights[:, np.newaxis]
    D[:n, n:] = goal
    W, D = W + W.T, D + D.T
    V = np.diag(W.sum(axis=1)) - W
    points = np.vstack([start, start])
    for _ in range(n_steps):
        distance = np.sqrt(((points[:, np.newaxis] - points) ** 2).sum(axis=2))
        ratio = np.divide(D, distance, out=np.zeros_like(D), where=distance > 0)
        B = np.diag((W * ratio).sum(axis=1)) - W * ratio
        points = np.linalg.pinv(V) @ B @ points
    return points[:n], points[n:]


@pytest.mark.parametrize("name", ["f1", "rank"])
def test_steps_are_those_of_smacof_with_the_full_matrices(name):
    states, weights = labelsets()
    blocks = cost_blocks(states, name)
    goal = np.vstack([block for _, block in blocks()])
    start = starting_points(states, weights, 4)
    truths, answers, _ = embed(blocks, weights, start, max_iter=3, tol=0)
    their_truths, their_answers = smacof_by_pseudo_inverse(goal, weights, start, 3)
    shift = their_truths.mean(axis=0) - truths.mean(axis=0)
    np.testing.assert_allclose(truths + shift, their_truths, atol=1e-9)
    np.testing.assert_allclose(answers + shift, their_answers, atol=1e-9)


def test_two_roles_serve_an_asymmetric_cost_better_than_one_could():
    # With one point per labelset, distances are the same both ways, so that half the squared
    # difference between the two costs of a pair is lost at the least.
    states, _ = labelsets()

    def alarms_cost_more(truth, answer):
        return np.sum((truth == 1) & (answer == 0)) + 9 * np.sum((truth == 0) & (answer == 1))

    blocks = cost_blocks(states, alarms_cost_more)
    goal = np.vstack([block for _, block in blocks()])
    weights = np.ones(len(states))
    _, _, stress = embed(blocks, weights, starting_points(states, weights, 10))
    lost_with_one_role = ((goal - goal.T) ** 2).sum() / 4
    assert stress[-1] < 0.5 * lost_with_one_role
