"""Find words that the project does not use: `python tools/check_vocabulary.py [FILE ...]`.

Prints `file:line: word -> suggestion` and exits with 1 if there are findings. A line that needs
such a word ends with a comment `vocabulary: ok, REASON`. In Markdown, inline code and program
output (fences of text, console, json or without a language) are checked for old names only: their
words are checked where the source defines them. In the tests, only the names of functions and
classes are checked: their texts are inputs and outputs, which may have any words.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

# One rule per line: banned words [unless allowed phrases] -> suggestion.
WORDS = r"""
desks?|shelf|shelves|granters?|wishes|harvest\w* -> buffer, pool, constraints, results
lanes? -> beam state, slot
demands -> constraints, requirements
rooms? -> package, capacity or space
house -> package, project
places? unless (in|takes?|took|decimal)[ -]places?|places? (it|them)|place-items -> index, position, path, slot
walk(s|ed)? unless (os|ast)\.walk -> loop, traverse, greedy
fore(tells?|told|telling|see|seen) -> forecast, predict
chances? unless (due to|better than) chance -> probability; random, sampled; seed
mend(s|ed|ing)? -> fix
remed(y|ies) -> hint
so many -> n, this many
stands?|stood unless stands? for|stand-in|standing -> is, appears
lies -> is
beside -> next to, compared with, together with
told|said|spoken|speaks? -> reported, printed, output, supports
who(ever|m) -> the user, the caller, the model
shall -> must, will
learnt -> learned
slopes? -> gradient
is no (?!longer|better|worse|more|less|other)\w+ unless there is no -> is not a
\"{3}(Give|Tell)s? -> Return
of our own making -> synthetic
(tokens|words|numbers|bits|steps|rows|objects?|one \w+) an? (second|line|step|character|word|row) -> per
(process|file|sentence|ms|one \w+) an? (layer|head|core|batch|epoch|verb|idea|recipe|port|step) -> per
(un)?(initial|normal|token|optim|recogn|summar|quant|synchron|serial|general|minim|maxim)is(e|es|ed|er|ers|ing|ation|ations) -> -ize (American spelling)
licences?|(col|behavi|neighb|fav)our\w*|labell(ed|ing)|cent(re|red|res) -> American spelling
낱말|걸음|이름표|씨앗|(?<!하이퍼)파라미터|에포크|퍼플렉시티|그래디언트|워밍업 -> 단어, 스텝, 레이블, 시드, 매개변수, 에폭, 퍼플렉서티, 기울기, 웜업
표본 추출|(?<!재)표집|십시오 -> 샘플링, 세요
테스트 세트|시험 집합|개발용 데이터|그리디 -> 평가 집합, 개발 집합, 탐욕 탐색
"""  # noqa: E501 - one rule per line

NAMES = r"""
attendo sample\b|/v1/sample\b -> attendo generate, /v1/generate
attendo generate (dates|numbers|pairs|series) -> attendo synthesize
\bmust_not\b|--must(-not)?\b|\bmust= -> required, forbidden
\bmax_extra\b -> max_extra_tokens
train\.(consistency|rate_scale|peak_rate|pack|graph|shard|accumulate)\b -> TrainConfig
guides/(halves|series)\b -> guides/language_models, guides/time_series
"""

HISTORY = {"CHANGELOG.md", "log.md"}  # may quote old names
CORPUS_TEXT = {"sample_grammar", "synthetic"}  # the sentences of the built-in corpora
BUILT = {"node_modules", "dist"}
OUTPUT_FENCES = {"```", "```text", "```console", "```json"}
NOTHING = re.compile(r"(?!)")
DEFINITION = re.compile(r"\s*(?:async def|def|class) (\w+)")
Rule = tuple[re.Pattern[str], re.Pattern[str], str]


def read_rules(table: str, frame: str) -> list[Rule]:
    """Return the rules of a table: banned pattern, allowed pattern, suggestion."""
    rules = []
    for line in table.strip().splitlines():
        condition, _, tip = line.rpartition(" -> ")
        word, _, allowed = condition.partition(" unless ")
        ok = re.compile(allowed, re.IGNORECASE) if allowed else NOTHING
        rules.append((re.compile(frame % f"(?:{word})", re.IGNORECASE), ok, tip))
    return rules


WORD_RULES = read_rules(WORDS, r"(?<![A-Za-z])%s(?![a-z])")
NAME_RULES = read_rules(NAMES, "%s")


def find(text: str, rules: list[Rule]) -> list[str]:
    """Return `word -> suggestion` for each banned word of a text."""
    return [
        f"{match[0]} -> {tip}"
        for banned, allowed, tip in rules
        for match in banned.finditer(allowed.sub(" ", text))
    ]


def split_identifiers(line: str) -> str:
    """Return the line with snake_case and CamelCase names split into words."""
    return re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", line).replace("_", " ")


def check_names(path: Path) -> list[str]:
    """Return the findings in the names of functions and classes of a Python file."""
    return [
        f"{path}:{number}: {text}"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if (definition := DEFINITION.match(line))
        for text in find(split_identifiers(definition[1]), WORD_RULES)
    ]


def check(path: Path) -> list[str]:
    """Return the findings of one file."""
    findings, fence, is_page = [], "", path.suffix == ".md"
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if is_page and line.lstrip().startswith("```"):
            fence = "" if fence else line.strip()
        elif "vocabulary: ok" not in line:
            prose = re.sub(r"`[^`]*`", " ", line) if is_page and not fence else line
            found = [] if fence in OUTPUT_FENCES else find(split_identifiers(prose), WORD_RULES)
            found += [] if path.name in HISTORY else find(line, NAME_RULES)
            findings += [f"{path}:{number}: {text}" for text in found]
    return findings


def list_files() -> list[Path]:
    """Return sources, pages and messages; the lessons in docs are generated from the sources."""
    sources = [*Path("src").rglob("*.py"), *Path("src").rglob("*.md")]
    sources += [*Path("benchmarks").rglob("*.py"), *Path("examples").rglob("*.py")]
    sources = [path for path in sources if not CORPUS_TEXT & set(path.parts)]
    folders = ("src", "packages", "tests", "e2e")
    front_end = [path for name in folders for path in Path("frontend", name).rglob("*")]
    sources += [
        path
        for path in front_end
        if path.suffix in (".ts", ".svelte") and BUILT.isdisjoint(path.parts)
    ]
    sources += Path("src").rglob("*.po")
    pages = [path for path in Path("docs").rglob("*.md") if "lessons" not in path.parts]
    other = [*Path().glob("README*.md"), Path("CHANGELOG.md"), Path("CONTRIBUTING.md")]
    return sorted([*sources, *pages, *other])


def list_tests() -> list[Path]:
    """Return the tests in Python, of which only the names are checked."""
    return sorted(Path("tests").rglob("*.py"))


def main(arguments: list[str]) -> int:
    """Check the given files, or all of them; return the exit status."""
    files = [Path(argument) for argument in arguments] or [*list_files(), *list_tests()]
    findings = [
        finding
        for path in files
        for finding in (check_names(path) if path.parts[0] == "tests" else check(path))
    ]
    print("\n".join(findings) or f"vocabulary: {len(files)} files checked, no findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
