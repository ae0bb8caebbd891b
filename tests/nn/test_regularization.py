import pytest
import torch

from gcaps.nn.regularization import Dropout


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.8])
def test_dropout_keeps_the_mean_and_drops_the_share(p):
    torch.manual_seed(0)
    x = torch.ones(400, 501)
    out = Dropout(p).train()(x)
    assert abs(float((out == 0).double().mean()) - p) < 0.01
    assert abs(float(out.mean()) - 1) < 0.02
    kept = out[out != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - p)), rtol=1e-4, atol=0)


def test_evaluation_returns_the_input():
    x = torch.randn(5, 7)
    assert torch.equal(Dropout(0.5).eval()(x), x)


def test_masks_follow_the_seed():
    drop, x = Dropout(0.5).train(), torch.ones(8, 9)
    torch.manual_seed(3)
    first = drop(x)
    torch.manual_seed(3)
    assert torch.equal(first, drop(x))
    assert not torch.equal(first, drop(x))
