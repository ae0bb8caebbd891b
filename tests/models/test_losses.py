"""Losses, scores and means of several networks for each task, against loops over graphs and targets."""

import math

import numpy as np
import pytest
import torch

from gcaps.models.losses import loss_sum, loss_with_gradient, mean_loss, mean_outputs, score_sum, scores_of

NAN = math.nan


def case(task, seed=0):
    generator = torch.Generator().manual_seed(seed)
    outputs = torch.randn(7, 3, generator=generator, dtype=torch.float64)
    if task == "classification":
        return outputs, torch.randint(3, (7,), generator=generator)
    y = torch.randn(7, 3, generator=generator, dtype=torch.float64)
    y = (y > 0).double() if task == "multilabel" else y
    y[torch.rand(7, 3, generator=generator) < 0.3] = NAN
    y[0] = NAN
    return outputs, y


def oracle_loss(task, outputs, y, weight):
    total = 0.0
    for g in range(len(outputs)):
        if task == "classification":
            w = 1.0 if weight is None else weight[g]
            total -= w * math.log(math.exp(outputs[g, y[g]]) / sum(math.exp(v) for v in outputs[g]))
            continue
        for t in range(outputs.shape[1]):
            if math.isnan(y[g, t]):
                continue
            w = 1.0 if weight is None else weight[g, t] if weight.ndim == 2 else weight[g]
            p = 1 / (1 + math.exp(-outputs[g, t]))
            loss = (outputs[g, t] - y[g, t]) ** 2
            if task == "multilabel":
                loss = -math.log(p if y[g, t] == 1 else 1 - p)
            total += w * loss / outputs.shape[1]
    return total


TASKS = ("classification", "multilabel", "regression")


@pytest.mark.parametrize("weights", ["none", "graphs", "targets"])
@pytest.mark.parametrize("task", TASKS)
def test_loss_is_the_sum_over_known_targets(task, weights):
    outputs, y = case(task)
    if weights == "targets" and task == "classification":
        weights = "graphs"
    shape = {"none": None, "graphs": (7,), "targets": (7, 3)}[weights]
    weight = None if shape is None else torch.rand(shape, dtype=torch.float64)
    expected = oracle_loss(task, outputs.numpy(), y.numpy(), None if weight is None else weight.numpy())
    assert float(loss_sum(task, outputs, y, weight)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("task", TASKS)
def test_a_missing_target_has_no_gradient(task):
    outputs, y = case(task)
    outputs.requires_grad_()
    loss_sum(task, outputs, y).backward()
    assert torch.isfinite(outputs.grad).all()
    if task != "classification":
        assert (outputs.grad[torch.isnan(y)] == 0).all()
        assert (outputs.grad[~torch.isnan(y)] != 0).all()


@pytest.mark.parametrize("task", TASKS)
def test_loss_passes_gradcheck(task):
    outputs, y = case(task)
    assert torch.autograd.gradcheck(lambda z: loss_sum(task, z, y), outputs.requires_grad_())


def test_scores_of_an_epoch():
    outputs, y = case("classification")
    assert float(score_sum("classification", outputs, y)) == (outputs.argmax(1) == y).sum()
    outputs = torch.tensor([[1.0, -1.0], [1.0, 1.0]])
    labels = torch.tensor([[1.0, 1.0], [0.0, NAN]])
    assert float(score_sum("multilabel", outputs, labels)) == pytest.approx(0.5 + 0.0)
    values = torch.tensor([[1.0, 0.0], [0.0, NAN]])
    assert float(score_sum("regression", outputs, values)) == pytest.approx((1 - 0.5) + (1 - 1.0))


def test_a_class_that_training_lacks_is_left_out_of_the_mean_loss():
    outputs = torch.randn(4, 2)
    y = torch.tensor([0, 1, -1, 1])
    known = y >= 0
    expected = torch.nn.functional.cross_entropy(outputs[known], y[known])
    assert mean_loss("classification", outputs, y) == pytest.approx(float(expected))


@pytest.mark.parametrize("task", TASKS)
def test_the_mean_of_networks_is_the_mean_of_what_they_predict(task):
    several = [case(task, seed)[0] for seed in range(3)]
    expected = np.mean([scores_of(task, one).numpy() for one in several], axis=0)
    np.testing.assert_allclose(scores_of(task, mean_outputs(task, several)).numpy(), expected, atol=1e-12)


def test_extreme_logits_stay_finite():
    outputs = torch.tensor([[900.0, -900.0]])
    assert torch.isfinite(mean_outputs("multilabel", [outputs, outputs])).all()
    assert torch.isfinite(loss_sum("multilabel", outputs, torch.tensor([[0.0, 1.0]])))


@pytest.mark.parametrize("task", ["classification", "multilabel", "regression"])
@pytest.mark.parametrize("weighted", [False, True])
def test_loss_and_gradient_are_those_of_autograd_bit_for_bit(task, weighted):
    outputs, y = case(task)
    for given in (outputs, outputs.float(), 30 * outputs):
        weight = torch.linspace(0, 2, len(y), dtype=given.dtype) if weighted else None
        leaf = given.clone().requires_grad_()
        expected = loss_sum(task, leaf, y, weight)
        (expected / 9).backward()
        loss, grad = loss_with_gradient(task, given, y, weight, 9)
        assert torch.equal(loss, expected.detach())
        assert torch.equal(grad, leaf.grad)
