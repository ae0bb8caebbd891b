"""What a network's outputs mean for each task: loss, score, mean of several networks, and what is predicted.

Outputs are logits [B, C] (classification), logits [B, T] (multilabel) or standardised values [B, T] (regression).
Targets are class numbers [B], or [B, T] with NaN where a value is missing; a missing value adds nothing to a loss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from gcaps.data.targets import Task


def loss_sum(task: Task, outputs: Tensor, y: Tensor, sample_weight: Tensor | None = None) -> Tensor:
    """Sum of the losses of the graphs, times their weights [B] or [B, T] if given.

    The loss of a graph is its cross-entropy, or the mean over the T targets of the binary cross-entropy or of the
    squared error, with 0 for a missing value.
    """
    if task == "classification":
        if sample_weight is None:
            return F.cross_entropy(outputs, y, reduction="sum")
        return (F.cross_entropy(outputs, y, reduction="none") * sample_weight).sum()
    known, truth = _known(y, outputs)
    if task == "multilabel":
        losses = F.binary_cross_entropy_with_logits(outputs, truth, reduction="none")
    else:
        losses = (outputs - truth) ** 2
    if sample_weight is not None:
        losses = losses * (sample_weight if sample_weight.dim() == 2 else sample_weight.unsqueeze(1)).to(losses.dtype)
    return torch.where(known, losses, 0.0).sum() / y.size(1)


def loss_with_gradient(
    task: Task, outputs: Tensor, y: Tensor, sample_weight: Tensor | None, graphs: int
) -> tuple[Tensor, Tensor]:
    """Return :func:`loss_sum`, and the gradient of ``loss_sum / graphs`` at the outputs."""
    if task == "classification" and sample_weight is None:  # what autograd calls, without its graph
        logs = torch.log_softmax(outputs.detach(), dim=1)
        given = logs, y, None, 2, -100  # classes have no weights; a sum; and no class is left out
        loss, total = torch.ops.aten.nll_loss_forward(*given)
        of_logs = torch.ops.aten.nll_loss_backward(torch.ones_like(loss) / graphs, *given, total)
        return loss, torch.ops.aten._log_softmax_backward_data(of_logs, logs, 1, logs.dtype)
    with torch.enable_grad():
        leaf = outputs.detach().requires_grad_()
        loss = loss_sum(task, leaf, y, sample_weight)
        (grad,) = torch.autograd.grad(loss / graphs, leaf)
    return loss.detach(), grad


def score_sum(task: Task, outputs: Tensor, y: Tensor) -> Tensor:
    """Sum over the graphs of the score that is shown and recorded after each epoch.

    For classification 1 for a correct class; for multilabel the share of a graph's known labels that are correct; for
    regression 1 − the mean squared error of its known standardised values, so that the mean over graphs is the share of
    the training targets' variance that is explained.
    """
    if task == "classification":
        return (outputs.argmax(1) == y).double().sum()
    known, truth = _known(y, outputs)
    hits = (outputs > 0) == (truth > 0.5) if task == "multilabel" else (outputs - truth) ** 2
    share = torch.where(known, hits.double(), 0.0).sum(1) / known.sum(1).clamp_min(1)
    return share.sum() if task == "multilabel" else (1 - share).sum()


def mean_loss(task: Task, outputs: Tensor, y: Tensor) -> float:
    """Mean loss of graphs whose target is known; a class that the training graphs lack has no logit."""
    if task == "classification":
        known = y >= 0
        return float(F.cross_entropy(outputs[known], y[known]))
    return float(loss_sum(task, outputs, y)) / max(len(y), 1)


def _known(y: Tensor, outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Which targets [B, T] are known, and the targets with 0 for the others, in the outputs' type."""
    known = ~torch.isnan(y)
    return known, torch.where(known, y, 0.0).to(outputs.dtype)


def mean_outputs(task: Task, outputs: Sequence[Tensor]) -> Tensor:
    """Outputs of an ensemble: logarithm or logit of the mean of the probabilities, or the mean of the values."""
    if task == "classification":
        stacked = torch.stack([torch.log_softmax(one, dim=1) for one in outputs])
        return torch.logsumexp(stacked, dim=0) - math.log(len(outputs))
    if task == "multilabel":
        positive, negative = (
            torch.logsumexp(torch.stack([F.logsigmoid(sign * one) for one in outputs]), dim=0) for sign in (1, -1)
        )
        return positive - negative
    return torch.stack(list(outputs)).mean(dim=0)


def scores_of(task: Task, outputs: Tensor) -> Tensor:
    """Probabilities of the classes [B, C] or of each second class [B, T]; standardised values unchanged."""
    if task == "classification":
        return torch.softmax(outputs, dim=1)
    return torch.sigmoid(outputs) if task == "multilabel" else outputs
