from __future__ import annotations

import pytest
import torch

from attendo.bench.reference_models import TorchPeer
from attendo.bench.timing import LoopRunner, ModelWithLoss, TimingRound, TrainerRunner, first_loss

CPU = torch.device("cpu")


def rows_of(batches):
    return [rows.tolist() for rows in batches]


@pytest.fixture
def runner(config, work, tmp_path):
    return TrainerRunner(config, config.build(), work, tmp_path / "run")


def test_the_trainer_times_the_batches_of_its_turn(runner, work):
    for turn in (TimingRound(0, 1, 2), TimingRound(3, 1, 2), TimingRound(0, 1, 2)):
        span = runner.run(turn)
        assert rows_of(span.batches) == rows_of(work.batches[turn.begin + 1 : turn.end])
        assert span.seconds > 0
    assert runner.trainer.step == 9


def test_it_really_trains_and_keeps_nothing(runner, tmp_path):
    before = [parameter.detach().clone() for parameter in runner.trainer.raw.parameters()]
    runner.run(TimingRound(0, 1, 2))
    after = runner.trainer.raw.parameters()
    assert any(not old.equal(new) for old, new in zip(before, after, strict=True))
    assert not list((tmp_path / "run" / "checkpoints").iterdir())


def test_settings_of_the_process_come_back(runner):
    before = torch.backends.cuda.cudnn_sdp_enabled()
    runner.run(TimingRound(0, 1, 1))
    assert torch.backends.cuda.cudnn_sdp_enabled() == before


def test_the_loss_of_the_first_step_is_the_plain_one(config, work, tmp_path):
    model = config.build(dropout=0.0)
    batch = work.plan.read(work.batches[0])
    with torch.no_grad():
        plain = float(ModelWithLoss(model).eval()(*batch)) / batch.num_tokens
    assert first_loss(config, model, work, tmp_path / "check") == pytest.approx(plain, rel=1e-5)


def test_the_loop_times_the_same_batches_and_trains(config, work):
    torch.manual_seed(2)
    model = TorchPeer(config.build(dropout=0.0))
    loop = LoopRunner(model, work, device=CPU, precision=torch.float32)
    batch = work.plan.read(work.batches[0])
    with torch.no_grad():
        before = float(loop.module(*batch))
    for _ in range(5):
        span = loop.run(TimingRound(0, 1, 2))
    assert rows_of(span.batches) == rows_of(work.batches[1:3])
    with torch.no_grad():
        assert float(loop.module(*batch)) < before


def test_the_loop_computes_in_bfloat16_where_that_is_asked_for(config, work):
    class Spy(TorchPeer):
        def forward(self, *ids):
            logits = super().forward(*ids)
            seen.add(logits.dtype)
            return logits

    for precision in (torch.float32, torch.bfloat16):
        seen: set[torch.dtype] = set()
        loop = LoopRunner(Spy(config.build()), work, device=CPU, precision=precision)
        loop.run(TimingRound(0, 1, 1))
        assert seen == {precision}
        assert {one.dtype for one in loop.module.parameters()} == {torch.float32}
