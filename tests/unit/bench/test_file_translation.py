from __future__ import annotations

from attendo.bench import file_translation
from attendo.bench.file_translation import FileBenchConfig, benchmark_file


def test_each_stage_has_its_share_of_the_time(uppercaser, tmp_path):
    source = tmp_path / "text"
    source.write_text("ka to\n\nmi\nso\n", encoding="utf-8")
    reported: list[str] = []
    config = FileBenchConfig(beam_sizes=(2, 1), rounds=2, num_lines=3)
    report = benchmark_file(uppercaser, source, config, log=reported.append)
    assert (report["num_lines"], report["num_characters"]) == (3, 7)
    assert [case["beam_size"] for case in report["cases"]] == [2, 1]
    for case in report["cases"]:
        assert tuple(case["stages"]) == file_translation.STAGES
        assert case["lines_per_second"] > 0
        assert case["peers"] == []  # not CTranslate2
    rows = file_translation.table_rows(report)
    assert {len(row) for row in rows} == {len(file_translation.table_headers())}
    assert len(reported) == 2


def test_the_comparison_is_reported():
    peer = {
        "name": "translate_iterable",
        "seconds": 3.0,
        "attendo_is_times_as_fast": 1.5,
        "cpu_ratio": 2,
    }
    report = {"cases": [{"beam_size": 4, "peers": [peer]}]}
    (line,) = file_translation.describe_peers(report)
    assert "1.50" in line
    assert "2.00" in line
