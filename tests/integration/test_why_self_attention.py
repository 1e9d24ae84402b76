"""The benchmark of section 4 counts, weighs and tells what it should; its timings stay out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import pytest
import torch

from attendo.core.errors import ConfigError, InputError

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ("self_attention", "recurrent", "convolutional", "restricted")
LENGTHS = [16, 32, 64, 128]
CPU = torch.device("cpu")


@pytest.fixture
def space(repository, monkeypatch):
    """Return the modules of the benchmark by name."""
    monkeypatch.syspath_prepend(str(repository))
    return lambda name: import_module(f"benchmarks.why_self_attention.{name}")


@pytest.fixture
def call(space):
    """Call the benchmark with arguments in this process."""
    command = space("__main__")
    return lambda *arguments: command.run(command.read_options([*map(str, arguments)]))


@pytest.fixture(scope="module")
def finished(repository, tmp_path_factory) -> tuple[Path, str]:
    """One small run, as the docstring says how to: its folder, and what it printed."""
    out = tmp_path_factory.mktemp("why") / "out"
    options = ["--max-n", "128", "--d-model", "32", "--budget", "60", "--threads", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.why_self_attention", *options, "--out", str(out)],
        cwd=repository,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out, done.stdout


class TestGrowth:
    def test_exponents_of_powers_are_found(self, space):
        fit = space("growth").fit_exponent
        assert fit([64, 128, 256, 512], [7 * n**1.5 for n in (64, 128, 256, 512)]) == 1.5
        assert fit([64, 128, 256], [5, 5, 5]) == 0
        assert fit([64, 128, 256], [None, None, 5]) is None

    def test_the_least_squares_exponent_is_numpys(self, space):
        import numpy as np

        positions, values = [16, 32, 64, 128], [3.0, 4.0, 11.0, 17.0]
        exponent = np.polyfit(np.log(positions), np.log(values), 1)[0]
        assert space("growth").fit_exponent(positions, values) == pytest.approx(exponent, abs=5e-4)

    def test_crossings(self, space):
        find, lengths = space("growth").find_crossing, [16, 64, 256]
        square, line = [n * n for n in lengths], [100 * n for n in lengths]
        assert find(lengths, square, line) == 100.0
        assert find(lengths, line, square) is None
        assert find(lengths, line, [n - 1 for n in line]) == 16.0
        assert find(lengths, [1, 3, 1], [2, 2, 2]) is None  # above only in between
        assert find(lengths, [3, 1, 4], [2, 2, 2]) == 128.0  # the last crossing counts
        assert find(lengths, [1, 4, None], [2, 2, None]) == 32.0

    def test_the_upper_part_begins_at_an_eighth(self, space):
        assert space("growth").choose_upper([16, 32, 64, 128, 256, 512]) == [64, 128, 256, 512]


class TestCounting:
    @pytest.mark.parametrize("length", [16, 64, 160])
    def test_operations_are_those_of_the_formulas(self, space, length):
        d_model, kinds = 32, space("layers").KINDS
        pairs = -(-length // 32) * 32 * 64  # blocks of 32 queries, each next to 16 + 32 + 16 keys
        expected = {
            "self_attention": (2 * length**2 * d_model, 4 * length * d_model**2),
            "recurrent": (8 * length * d_model**2, 0),
            "convolutional": (3 * length * d_model**2, 0),
            "restricted": (2 * pairs * d_model, 4 * length * d_model**2),
        }
        for key, kind in kinds.items():
            layer = kind.make(d_model, 4)
            counted = space("measure").count_operations(layer, length, d_model)
            assert tuple(counted) == expected[key], key

    def test_the_peak_is_what_is_held_at_a_time(self, space):
        def run() -> None:
            first = torch.empty(1000, 1000)  # 4 MB
            del first
            kept = [torch.empty(500, 1000), torch.empty(250, 1000)]  # 2 MB and 1 MB
            kept.append(torch.empty(750, 1000))  # 3 MB: 6 at a time
            del kept

        assert space("measure").measure_peak(run, CPU) == 6_000_000

    def test_a_backward_pass_is_weighed_to_the_byte(self, space):
        x = torch.randn(1000, 1000, requires_grad=True)
        sent = torch.randn(1000, 1000)

        def run() -> None:
            x.exp().backward(sent)  # keeps its result for the backward pass, then makes x.grad
            x.grad = None

        assert space("measure").measure_peak(run, CPU) == 8_000_000

    def test_layers_take_turns_and_one_round_is_always_timed(self, space):
        called: list[str] = []
        runs = {name: lambda name=name: called.append(name) for name in "ab"}
        timings = space("measure").time_in_turns(runs, CPU, seconds=0.0)
        assert called == ["a", "b"] * 2  # one round warms up
        assert timings["b"].rounds == 1
        called.clear()
        measure = space("measure")
        timings = measure.time_in_turns(runs, CPU, seconds=60.0)
        assert called == ["a", "b"] * (measure.WARM_UP + measure.MAX_ROUNDS)
        assert timings["a"].rounds == measure.MAX_ROUNDS
        assert timings["a"].fastest <= timings["a"].seconds


class TestCommand:
    def test_the_figures(self, finished):
        results = json.loads((finished[0] / "results.json").read_text(encoding="utf-8"))
        layers = results["layers"]
        assert results["lengths"] == LENGTHS
        assert layers["self_attention"]["path"] == [1, 1, 1, 1]
        assert layers["recurrent"]["path"] == LENGTHS
        assert layers["convolutional"]["path"] == [n - 1 for n in LENGTHS]
        assert layers["restricted"]["path"] == [1, 2, 4, 8]
        assert results["dilated_path"] == [3, 4, 4, 5]
        assert layers["recurrent"]["sequential"] == LENGTHS
        for key in set(KINDS) - {"recurrent"}:
            assert layers[key]["sequential"] == [1, 1, 1, 1]
        for key in KINDS:
            assert min(layers[key]["time"] + layers[key]["bytes"]) > 0
            assert layers[key]["bytes"][-1] > layers[key]["bytes"][0]
        seen = {"length": 64, "self_attention": 64, "recurrent": 33}
        assert results["seen"] == {**seen, "convolutional": 3, "restricted": 33}
        assert results["setting"]["threads"] == 1
        assert results["machine"]["torch"] == torch.__version__

    def test_growth_and_crossings_compared_with_the_paper(self, finished):
        results = json.loads((finished[0] / "results.json").read_text(encoding="utf-8"))
        exponents = results["growth"]["exponents"]
        assert [exponents[key]["mixing"] for key in KINDS][:3] == [2.0, 1.0, 1.0]
        assert [exponents[key]["path"] for key in KINDS][:2] == [0.0, 1.0]
        tables = {key: found["table"] for key, found in results["crossings"].items()}
        assert tables == {"recurrent": 32, "convolutional": 96, "restricted": 32}
        # 2 n² d + 4 n d² = 8 n d² where n = 2 d
        assert results["crossings"]["recurrent"]["operations"] == 64.0
        widths = results["widths"]["layers"]
        assert [widths[key]["exponents"]["mixing"] for key in KINDS] == [1.0, 2.0, 2.0, 1.0]

    def test_it_shows_and_writes_tables_and_pictures(self, finished):
        out, printed = finished
        assert max(map(len, printed.splitlines()[:-1])) <= 80
        assert "…" not in printed
        report = (out / "results.md").read_text(encoding="utf-8")
        assert "| recurrent | O(n d²) | O(n) | 128 | O(n) | 128 | 33 |" in report
        assert "| 128 | 1 | 128 | 127 | 5 | 8 |" in report
        assert "## What this does not show" in report
        assert (out / "why_self_attention.png").read_bytes().startswith(b"\x89PNG")
        assert "</svg>" in (out / "why_self_attention.svg").read_text(encoding="utf-8")

    def test_an_earlier_run_is_reported_again_elsewhere_without_measuring(
        self, call, finished, tmp_path
    ):
        call("--from", finished[0] / "results.json", "--out", tmp_path, "--lang", "ko")
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"results.md", "why_self_attention.png", "why_self_attention.svg"}
        for name, is_same in (("results.md", True), ("why_self_attention.png", False)):
            first, again = ((folder / name).read_bytes() for folder in (finished[0], tmp_path))
            assert (first == again) == is_same

    def test_without_matplotlib_the_figures_are_reported_anyway(
        self, call, finished, tmp_path, monkeypatch, capsys
    ):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        call("--from", finished[0] / "results.json", "--out", tmp_path)
        assert "no picture: matplotlib is not installed" in capsys.readouterr().out
        assert [path.name for path in tmp_path.iterdir()] == ["results.md"]

    def test_an_earlier_result_is_never_replaced_unasked(self, call, finished):
        before = (finished[0] / "results.json").read_bytes()
        with pytest.raises(InputError, match="already exists"):
            call("--out", finished[0])
        assert (finished[0] / "results.json").read_bytes() == before

    @pytest.mark.parametrize(
        ("content", "wanted"),
        [(None, "cannot be read"), ("{", "is not JSON"), ('{"lengths": []}', "lacks setting")],
    )
    def test_what_is_not_a_result_is_rejected(self, call, tmp_path, content, wanted):
        path = tmp_path / "results.json"
        if content is not None:
            path.write_text(content, encoding="utf-8")
        with pytest.raises(InputError, match=wanted):
            call("--from", path, "--out", tmp_path / "out")
        assert not (tmp_path / "out").exists()


class TestStudy:
    def test_settings_are_rejected_with_all_reasons(self, space):
        setting = space("study").Setting(max_n=8, d_model=100, batch=0, threads=0, budget=0.0)
        with pytest.raises(ConfigError) as caught:
            setting.check()
        names = [reason.split()[0] for reason in caught.value.reasons]
        assert names == ["max_n", "d_model", "batch", "threads", "budget"]

    def test_a_spent_budget_leaves_lengths_out_and_the_report_whole(self, space):
        setting = space("study").Setting(max_n=128, d_model=16, budget=1e-9, threads=1)
        heard: list[tuple[int, int]] = []
        results = space("study").run_study(
            setting, lambda _, done, total: heard.append((done, total))
        )
        for key in KINDS:
            layer = results["layers"][key]
            assert layer["time"][0] > 0
            assert layer["time"][1:] == layer["bytes"][1:] == layer["path"][1:] == [None] * 3
            assert results["growth"]["exponents"][key]["time"] is None
        assert heard == [(done, 9) for done in range(10)]
        report = space("report").to_markdown(results)
        assert "| 128 | – | – | – | – |" in report
        assert b"</svg>" in space("picture").plot(results)[".svg"]
