"""From a recipe to the steps of its build."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attendo.data.corpus_config import CorpusConfig
from attendo.text.lines import read_lines
from attendo.workflow.commands import (
    HELD_OUT_DIR,
    clean_command,
    held_out_commands,
    inputs_of,
    join_command,
    split_command,
    translate_commands,
)
from attendo.workflow.report import (
    OUTPUTS_DIR,
    REPORT_FILE,
    REPORT_FILES,
    write_build_report,
    write_test_outputs,
)
from attendo.workflow.sizes import SIZES, decoding_cost
from attendo.workflow.step import Command, Output, Step, StepGraph, Work
from attendo.workflow.training import MODEL, make_training

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attendo.workflow.recipe import BuildConfig, TrainingStep
    from attendo.workflow.step import StepPaths

CLEAN_VERSION = TRANSLATE_VERSION = SCORE_VERSION = TEST_VERSION = 1
EXPORT_VERSION = REPORT_VERSION = 2
"""Raised when the code of a step would write something else for the same input."""


class BuildPlan:
    """Makes the steps of a recipe.

    Args:
        config: the recipe.
        cluster: the Ray cluster that translates; the results are the same without one.

    """

    def __init__(self, config: BuildConfig, *, cluster: str | None = None) -> None:
        self.config, self.cluster = config, cluster
        self.size = SIZES[config.resolved_size]
        self.pairs = {corpus.name: corpus for corpus in config.corpora}
        self.mono_tgt = [text.name for text in config.mono_tgt]
        self.mono_src = [text.name for text in config.mono_src]
        enabled = config.filter.enabled
        self.has_filter = self.size.has_filter if enabled is None else enabled
        self.corpora_step = "filter" if self.has_filter else "clean"
        self._models: dict[str, Path] = {}
        """Models that are there already."""

    def graph(self) -> StepGraph:
        """Return the steps, each after those that it needs."""
        config = self.config
        steps = [self._clean()]
        if self.has_filter or config.teacher.init_from == "forward":
            steps += self._plain_model("forward", config.forward)
        if self.has_filter or self.mono_tgt:
            steps += self._plain_model("backward", config.backward)
        if self.has_filter:
            steps += [self._score(), self._filter()]
        if self.mono_tgt:
            steps.append(self._back_translate())
        steps += self._teacher()
        steps += [self._forward_translate(), self._student(), self._export()]
        steps += [self._translate_test(), self._report()]
        return StepGraph(steps)

    # -- clean

    def _side_files(self, name: str) -> tuple[str, str]:
        """Return the names of the two files of a cleaned corpus."""
        return f"{name}.{self.config.src_lang}", f"{name}.{self.config.tgt_lang}"

    def _clean(self) -> Step:
        """Return the cleaning, which is the same for both directions: one result serves both."""
        config = self.config
        languages = sorted((config.src_lang, config.tgt_lang))
        is_swapped = languages[0] != config.src_lang
        settings: dict[str, Any] = {
            "src_lang": languages[0],
            "tgt_lang": languages[1],
            "cleaning": config.cleaning.model_dump(mode="json"),
            "rules": config.rules.model_dump(mode="json"),
            "dev_size": 0 if config.dev else config.dev_size,
            "seed": config.seed,
        }
        files: dict[str, Path] = {}
        corpora = []
        for corpus in config.corpora:
            entry = corpus.model_dump(mode="json", exclude={"weight", "filter"}, exclude_none=True)
            entry = _swap_sides(entry) if is_swapped else entry
            for key in ("src", "tgt", "path", "labels", "scores"):
                if key in entry:
                    files[f"{corpus.name}.{key}"] = Path(entry.pop(key))
            corpora.append(entry)
        named = sorted(self._texts, key=lambda text: str(text.name))
        texts = [
            text.model_dump(mode="json", exclude={"text"}, exclude_none=True) for text in named
        ]
        files |= {f"{text.name}.text": text.text for text in named}
        held_out = {
            name: _swap_corpus(corpus) if is_swapped else corpus
            for name, corpus in (("dev", config.dev), ("test", config.test))
            if corpus is not None
        }
        excluded = [path for corpus in held_out.values() for path in corpus.paths]
        excluded += config.exclude
        files |= {f"exclude.{number}": path for number, path in enumerate(excluded)}
        settings |= {"corpora": corpora, "texts": texts}

        def commands(paths: StepPaths) -> list[Command]:
            filled = {
                **settings,
                "corpora": [
                    {
                        **entry,
                        **inputs_of(
                            paths, entry["name"], ("src", "tgt", "path", "labels", "scores")
                        ),
                    }
                    for entry in corpora
                ],
                "texts": [{**one, "text": str(paths[f"{one['name']}.text"])} for one in texts],
                "exclude": [str(paths[f"exclude.{n}"]) for n in range(len(excluded))],
            }
            out = paths.folder / "clean"
            return [
                *held_out_commands(paths, held_out, languages),
                clean_command(paths, filled, out),
            ]

        outputs = [f"clean/{file}" for name in self.pairs for file in self._side_files(name)]
        outputs += [f"clean/{text.name}.{text.lang}" for text in self._texts]
        outputs += [output.path for output in self._dev_inputs().values()]
        if config.test:
            outputs += [output.path for output in self._test_inputs().values()]
        return Step(
            "clean", CLEAN_VERSION, settings, commands, (*outputs, "clean/report.json"), files
        )

    @property
    def _texts(self) -> list[Any]:
        return [*self.config.mono_tgt, *self.config.mono_src]

    def _corpus_outputs(self, step: str) -> dict[str, Output]:
        """Return the inputs that are the two sides of each corpus."""
        folder = "clean"
        return {
            f"{name}.{side}": Output(step, f"{folder}/{file}")
            for name in self.pairs
            for side, file in zip(("src", "tgt"), self._side_files(name), strict=True)
        }

    def _dev_inputs(self) -> dict[str, Output]:
        """Return the two sides of dev, given or split off."""
        folder = "clean" if self.config.dev is None else HELD_OUT_DIR
        sides = zip(("src", "tgt"), self._side_files("dev"), strict=True)
        return {f"dev.{side}": Output("clean", f"{folder}/{file}") for side, file in sides}

    def _test_inputs(self) -> dict[str, Output]:
        """Return the two sides of the test set, by default those of dev."""
        if self.config.test is None:
            return {name.replace("dev", "test"): one for name, one in self._dev_inputs().items()}
        sides = zip(("src", "tgt"), self._side_files("test"), strict=True)
        return {f"test.{side}": Output("clean", f"{HELD_OUT_DIR}/{file}") for side, file in sides}

    # -- training

    def _train(
        self,
        name: str,
        given: TrainingStep,
        corpora: Sequence[tuple[str, str, float]],
        needs: Mapping[str, Output],
        **options: Any,
    ) -> Step:
        """Return a step that trains on corpora, given by the names of two inputs and a weight."""
        needs = {**needs, **self._dev_inputs()}
        return make_training(name, given, corpora, needs, self.config, **options)

    def _plain_model(self, name: str, given: TrainingStep) -> list[Step]:
        """Return the training of the forward or backward model, unless it is there already."""
        if given.folder is not None:
            self._models[name] = given.folder
            return []
        is_swapped = name == "backward"
        corpora = [
            (f"{corpus}.tgt", f"{corpus}.src", one.weight)
            if is_swapped
            else (f"{corpus}.src", f"{corpus}.tgt", one.weight)
            for corpus, one in self.pairs.items()
        ]
        needs = self._corpus_outputs("clean")
        model = self.size.plain
        return [self._train(name, given, corpora, needs, model=model, is_swapped=is_swapped)]

    def _model_input(self, name: str) -> tuple[dict[str, Path], dict[str, Output]]:
        """Return the input that is a model: a file, or the output of a step."""
        if name in self._models:
            return {name: _find_model(self._models[name])}, {}
        return {}, {name: Output(name, MODEL)}

    # -- filter

    def _score(self) -> Step:
        names = [name for name, corpus in self.pairs.items() if corpus.filter]
        files, needs = _merge(self._model_input("forward"), self._model_input("backward"))

        def commands(paths: StepPaths) -> list[Command]:
            return [
                Command(
                    (
                        *("score", str(paths["forward"]), "--backward", str(paths["backward"])),
                        *("--src", str(paths[f"{name}.src"]), "--tgt", str(paths[f"{name}.tgt"])),
                        *("--output", str(paths.folder / f"{name}.scores"), "--force"),
                    ),
                    paths.folder / f"{name}.scores",
                )
                for name in names
            ]

        return Step(
            "score",
            SCORE_VERSION,
            {"corpora": names},
            commands,
            tuple(f"{name}.scores" for name in names),
            files,
            {**self._corpus_outputs("clean"), **needs},
            uses_gpu=True,
        )

    def _filter(self) -> Step:
        config = self.config
        settings: dict[str, Any] = {
            "src_lang": config.src_lang,
            "tgt_lang": config.tgt_lang,
            "keep": config.filter.keep,
            "rules": {"enabled": False, "near_duplicates": False},
            "corpora": [{"name": name, "filter": one.filter} for name, one in self.pairs.items()],
        }
        scored = [name for name, corpus in self.pairs.items() if corpus.filter]

        def commands(paths: StepPaths) -> list[Command]:
            corpora = [
                {"name": name, **inputs_of(paths, name, ("src", "tgt", "scores"))}
                for name in self.pairs
            ]
            return [clean_command(paths, {**settings, "corpora": corpora}, paths.folder / "clean")]

        outputs = [f"clean/{file}" for name in self.pairs for file in self._side_files(name)]
        needs = self._corpus_outputs("clean")
        needs |= {f"{name}.scores": Output("score", f"{name}.scores") for name in scored}
        return Step(
            "filter", CLEAN_VERSION, settings, commands, (*outputs, "clean/report.json"), {}, needs
        )

    # -- translation

    def _translate(self, *arguments: Any) -> list[Command]:
        return translate_commands(*arguments, cluster=self.cluster)

    def _back_translate(self) -> Step:
        options = self.config.back_translation
        settings = options.model_dump(mode="json", exclude={"weight"}) | {"seed": self.config.seed}
        files, model = self._model_input("backward")
        needs = {
            f"{text.name}.text": Output("clean", f"clean/{text.name}.{text.lang}")
            for text in self.config.mono_tgt
        }

        def commands(paths: StepPaths) -> list[Command]:
            inputs = [paths[f"{name}.text"] for name in self.mono_tgt]
            words = ["--precision", options.precision]
            if options.sample:
                words += ["--sample", "--beam-size", "1", "--seed", str(self.config.seed)]
                words += ["--temperature", str(options.temperature)]
                words += ["--set", f"top_k={options.top_k}"]
            else:
                words += ["--beam-size", str(options.beam_size)]
            words += ["--tag", options.tag] if options.tag else []
            translated = self._translate(paths, "backward", "text", inputs, words)
            outputs = [paths.folder / f"{name}.txt" for name in self.mono_tgt]
            return [*translated, split_command(paths, "text", inputs, outputs)]

        outputs = tuple(f"{name}.txt" for name in self.mono_tgt)
        backward = self._model_settings(self.config.backward, self.size.plain)
        work = self._translation_work(
            *self.config.mono_tgt, model=backward, beam_size=options.beam_size
        )
        return Step(
            "back-translate",
            TRANSLATE_VERSION,
            settings,
            commands,
            outputs,
            files,
            {**needs, **model},
            uses_gpu=True,
            work=work,
        )

    def _forward_translate(self) -> Step:
        options = self.config.forward_translation
        names, mono = list(self.pairs), self.mono_src
        corpora = self._corpus_outputs(self.corpora_step)
        texts = {
            f"{text.name}.text": Output("clean", f"clean/{text.name}.{text.lang}")
            for text in self.config.mono_src
        }
        settings = options.model_dump(mode="json")

        def commands(paths: StepPaths) -> list[Command]:
            sources = [paths[f"{name}.src"] for name in names]
            outputs = [paths.folder / f"{name}.txt" for name in names]
            references = [paths[f"{name}.tgt"] for name in names]
            search = ["--engine", "auto", "--precision", options.precision]
            search += ["--beam-size", str(options.beam_size)]
            search += ["--batch-size", str(options.batch_size)] if options.batch_size else []
            agreeing = []
            if options.n_best > 1:
                agreeing = ["--n-best", str(options.n_best)]
                agreeing += ["--agree-with", str(paths.folder / "pairs.ref")]
            words = [*search, *agreeing]
            made = [
                join_command(paths, "pairs.ref", references),
                *self._translate(paths, self._teacher_name, "pairs", sources, words),
                split_command(paths, "pairs", sources, outputs),
            ]
            if mono:
                inputs = [paths[f"{name}.text"] for name in mono]
                outputs = [paths.folder / f"{name}.txt" for name in mono]
                made += self._translate(paths, self._teacher_name, "text", inputs, search)
                made.append(split_command(paths, "text", inputs, outputs))
            return made

        texts_and_corpora = (*self.config.mono_src, *self.config.corpora)
        work = self._translation_work(
            *texts_and_corpora, model=self._teacher_settings, beam_size=options.beam_size
        )
        return Step(
            "forward-translate",
            TRANSLATE_VERSION,
            settings,
            commands,
            tuple(f"{name}.txt" for name in [*names, *mono]),
            {},
            {**corpora, **texts, self._teacher_name: Output(self._teacher_name, MODEL)},
            uses_gpu=True,
            work=work,
        )

    @staticmethod
    def _model_settings(given: TrainingStep, chosen: dict[str, Any]) -> dict[str, Any]:
        """Return the settings of a model, with the size of its vocabulary."""
        vocab_size = given.data.get("tokenizer", {}).get("vocab_size")
        size = {} if vocab_size is None else {"vocab_size": vocab_size}
        return {**({} if given.is_complete else chosen), **given.model, **size}

    @property
    def _teacher_settings(self) -> dict[str, Any]:
        if self.config.teacher.init_from == "forward":
            return self._model_settings(self.config.forward, self.size.plain)
        return self._model_settings(self.config.teacher, self.size.teacher)

    @staticmethod
    def _translation_work(*entries: Any, model: dict[str, Any], beam_size: int) -> Work | None:
        """Return the lines of corpora or texts, times a cost; None if they are elsewhere."""
        paths = [getattr(one, "text", None) or one.paths[0] for one in entries]
        if not all(path.is_file() for path in paths):
            return None
        count = sum(sum(1 for _ in read_lines(path)) for path in paths)
        greedy = 0.5 if beam_size == 1 else 1.0  # sampling is like greedy search
        return Work("translate", count * greedy * decoding_cost(model))

    # -- teacher and student

    @property
    def _teacher_name(self) -> str:
        return "fine-tune" if self.mono_tgt and self.config.fine_tuning.enabled else "teacher"

    @property
    def _robustness(self) -> dict[str, Any]:
        augmentation = self.config.augmentation
        if not augmentation.enabled:
            return {}
        return {"augmentation": augmentation.model_dump(mode="json")}

    def _teacher(self) -> list[Step]:
        config = self.config
        corpora = [(f"{name}.src", f"{name}.tgt", one.weight) for name, one in self.pairs.items()]
        needs = self._corpus_outputs(self.corpora_step)
        mixture, mixture_needs = list(corpora), dict(needs)
        weight = config.back_translation.weight
        for text in config.mono_tgt:
            mixture.append((f"bt.{text.name}", f"{text.name}.text", weight))
            mixture_needs[f"bt.{text.name}"] = Output("back-translate", f"{text.name}.txt")
            mixture_needs[f"{text.name}.text"] = Output("clean", f"clean/{text.name}.{text.lang}")
        if config.teacher.init_from == "forward":
            files, model_needs = self._model_input("forward")
            mixture_needs |= model_needs
        else:
            files = {}
        teacher = self._train(
            "teacher",
            config.teacher,
            mixture,
            mixture_needs,
            model=self.size.teacher,
            train={"rdrop_weight": self.size.rdrop_weight},
            data=self._robustness,
            init_from=config.teacher.init_from,
            cost_of=self._teacher_settings,
            files=files,
        )
        if self._teacher_name == "teacher":
            return [teacher]
        fine_tuning = self._train(
            "fine-tune",
            config.fine_tuning,
            corpora,
            {**needs, "teacher": Output("teacher", MODEL)},
            model={},
            train={"rdrop_weight": self.size.rdrop_weight},
            data=self._robustness,
            init_from="teacher",
            cost_of=self._teacher_settings,
        )
        return [teacher, fine_tuning]

    def _student(self) -> Step:
        config = self.config
        needs = self._corpus_outputs(self.corpora_step)
        corpora = [
            (f"{name}.src", f"teacher.{name}", one.weight) for name, one in self.pairs.items()
        ]
        weight = config.student.reference_weight
        if weight:
            corpora += [
                (f"{name}.src", f"{name}.tgt", weight * one.weight)
                for name, one in self.pairs.items()
            ]
        for text in config.mono_src:
            corpora.append((f"{text.name}.text", f"teacher.{text.name}", 1.0))
            needs[f"{text.name}.text"] = Output("clean", f"clean/{text.name}.{text.lang}")
        for name in [*self.pairs, *self.mono_src]:
            needs[f"teacher.{name}"] = Output("forward-translate", f"{name}.txt")
        files: dict[str, Path] = {}
        for number, extra in enumerate(config.student.corpora):
            src, tgt = f"extra.{number}.src", f"extra.{number}.tgt"
            files |= {src: extra.src, tgt: extra.tgt}
            corpora.append((src, tgt, extra.weight))
        if not weight:  # its references are not read
            needs = {key: one for key, one in needs.items() if not key.endswith(".tgt")}
        return self._train(
            "student",
            config.student,
            corpora,
            needs,
            model=self.size.student,
            data=self._robustness,
            files=files,
        )

    # -- int8, and figures

    def _export(self) -> Step:
        def commands(paths: StepPaths) -> list[Command]:
            out = paths.folder / "int8"
            words = ("export", str(paths["student"]), "--to", "attendo", "--out", str(out))
            return [Command((*words, "--quantization", "int8"), out)]

        needs = {"student": Output("student", MODEL)}
        return Step("int8", EXPORT_VERSION, {}, commands, ("int8",), {}, needs)

    def _translate_test(self) -> Step:
        """Return the translation of the test set by the models that need not leave the GPU."""
        needs = {
            "test.src": self._test_inputs()["test.src"],
            "teacher": Output(self._teacher_name, MODEL),
            "student": Output("student", MODEL),
        }

        def commands(paths: StepPaths) -> list[Command]:
            out = paths.folder / OUTPUTS_DIR
            return [Command(partial(write_test_outputs, paths, out), out)]

        outputs = (OUTPUTS_DIR,)
        return Step("translate-test", TEST_VERSION, {}, commands, outputs, {}, needs, uses_gpu=True)

    def _report(self) -> Step:
        config = self.config
        needs = self._test_inputs() | {
            "outputs": Output("translate-test", OUTPUTS_DIR),
            "int8": Output("int8", "int8"),
        }
        settings = {"tgt_lang": config.tgt_lang, "is_test": config.test is not None}

        def commands(paths: StepPaths) -> list[Command]:
            run = partial(write_build_report, paths, settings)
            return [Command(run, paths.folder / REPORT_FILE)]

        return Step("report", REPORT_VERSION, settings, commands, REPORT_FILES, {}, needs)


def _swap_sides(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a corpus with source and target swapped."""
    other = {"src": "tgt", "tgt": "src"}
    names = {f"{a}{end}": f"{b}{end}" for a, b in other.items() for end in ("", "_field", "_lang")}
    return {names.get(key, key): value for key, value in entry.items()}


def _swap_corpus(corpus: CorpusConfig) -> CorpusConfig:
    return CorpusConfig(**_swap_sides(corpus.model_dump(exclude_none=True)))


def _find_model(folder: Path) -> Path:
    from attendo.core.run_folder import ModelFolder

    return ModelFolder.find(folder).path


def _merge(
    *parts: tuple[dict[str, Path], dict[str, Output]],
) -> tuple[dict[str, Path], dict[str, Output]]:
    files: dict[str, Path] = {}
    needs: dict[str, Output] = {}
    for one_files, one_needs in parts:
        files |= one_files
        needs |= one_needs
    return files, needs
