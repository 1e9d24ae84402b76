"""Old training data in fine-tuning: its share of an epoch, and what is refused."""

from __future__ import annotations

import pytest

from attendo.core.errors import ConfigError
from attendo.tasks.replay import add_replay
from attendo.tasks.request import TrainRequest


@pytest.fixture
def write(tmp_path):
    def write(name: str, count: int) -> tuple[str, str]:
        paths = [tmp_path / f"{name}.{side}" for side in ("src", "tgt")]
        for path in paths:
            path.write_text("".join(f"{path.suffix} {number}\n" for number in range(count)))
        return str(paths[0]), str(paths[1])

    return write


@pytest.mark.parametrize(
    ("num_old", "share", "weight"),
    [(1000, 0.5, 0.1), (1000, None, 0.0429), (100, 0.8, 1.0), (20, 0.5, 1.0)],
)
def test_the_weight_gives_the_share(write, num_old, share, weight):
    new, old = write("new", 100), write("old", num_old)
    corpora = add_replay([{"src": new[0], "tgt": new[1]}], [old], share)
    assert "weight" not in corpora[0]
    assert corpora[1] == {"src": old[0], "tgt": old[1], "weight": weight}
    if share == 0.5 and weight < 1:
        assert weight * num_old / (weight * num_old + 100) == pytest.approx(share)


def test_several_old_corpora_share_the_share(write):
    new, olds = write("new", 100), [write("a", 300), write("b", 100)]
    corpora = add_replay([{"src": new[0], "tgt": new[1], "weight": 2.0}], olds, 0.25)
    assert [one["weight"] for one in corpora] == [2.0, 0.1667, 0.1667]


@pytest.mark.parametrize(
    "options",
    [
        {"replay_src": ["old.src"]},
        {"replay_share": 0.3},
        {"replay_src": ["old.src"], "replay_tgt": ["old.tgt"]},  # without a model
        {"replay_src": ["a"], "replay_tgt": ["b"], "init_from": "m", "replay_share": 1.0},
    ],
)
def test_what_does_not_fit_is_rejected(write, options):
    src, tgt = write("new", 10)
    with pytest.raises(ConfigError):
        TrainRequest(src=[src], tgt=[tgt], **options).build_config()
