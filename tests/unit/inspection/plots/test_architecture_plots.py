"""Pictures of models that are no Transformers, and of Transformers without some of their parts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matplotlib.text import Text
from PIL import Image

from attendo.bundle import build_model
from attendo.core.errors import InputError
from attendo.decoding.ensemble import Ensemble
from attendo.i18n.messages import load_catalogue
from attendo.inspection import capture
from attendo.inspection.figure_data import describe_figure
from attendo.inspection.gradient_flow import gradient_norms
from attendo.inspection.inspect_sentence import inspect_sentence
from attendo.inspection.plots import PLOTS, available_plots, make_figure, save_all_plots, save_plot
from attendo.inspection.plots.context import PlotContext
from attendo.inspection.teacher_forcing import teacher_force
from attendo.translator import Translator

TEXT = "ka to mi re so"
SIZES = {
    "rnn-seq2seq": {"d_model": 16},
    "rnn-attention": {"d_model": 16, "num_layers": 2},
    "conv-s2s": {"d_model": 16, "num_layers": 3, "num_decoder_layers": 2},
    "transformer": {"d_model": 16, "d_ff": 32, "num_heads": 4, "num_layers": 2},
}
LOOKS = ["masks", "head_lines", "all_heads", "decoder_steps"]
POSSIBLE = {
    "rnn-seq2seq": ["position_toy", "logits", "beam_tree"],
    "rnn-attention": ["position_toy", *LOOKS, "logits", "beam_tree"],
    "conv-s2s": ["positions", "position_toy", *LOOKS, "logits", "beam_tree"],
}
INSIDE = [name for name, picture in PLOTS.items() if picture.needs == "transformer"]


def make_translator(kind, tokenizer, **options) -> Translator:
    torch.manual_seed(5)
    model = build_model(kind, {**SIZES[kind], **options}, tokenizer)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(2.0)
    return Translator(model.eval(), tokenizer)


@pytest.fixture(params=POSSIBLE)
def baseline(request, toy) -> Translator:
    return make_translator(request.param, toy.prepared.tokenizer)


def read(figure) -> list[str]:
    figure.canvas.draw()
    return [text.get_text() for text in figure.findobj(Text) if text.get_text().strip()]


def images(figure) -> list[np.ndarray]:
    return [np.ma.filled(axes.images[0].get_array(), np.nan) for axes in figure.axes if axes.images]


def test_exactly_what_the_model_has_is_listed_and_drawn(baseline, tmp_path):
    record = inspect_sentence(baseline, TEXT, max_length=6)
    names = POSSIBLE[baseline.model.kind]
    assert available_plots(record, baseline) == names
    assert available_plots(record) == [name for name in names if name != "logits"]
    drawn = save_all_plots(tmp_path, record, baseline, language="ko")
    assert [path.stem for path in drawn] == names
    for path in drawn:
        pixels = np.asarray(Image.open(path).convert("L"))
        assert (pixels < 128).mean() > 0.002  # something is drawn


def test_the_inside_of_a_transformer_is_rejected_by_its_name(baseline):
    record, kind = capture(baseline, TEXT, "SO RE"), baseline.model.kind
    assert len(INSIDE) == 8
    for name in INSIDE:
        with pytest.raises(InputError, match=f"needs a Transformer, .* kind '{kind}'") as error:
            make_figure(name, record, baseline)
        assert "'transformer'" in error.value.hint
    for name in ("attribution", "ablation", "logit_lens"):
        with pytest.raises(InputError, match=f"the record has no {name}"):
            make_figure(name, record, baseline)


def test_without_attention_none_is_drawn(toy):
    translator = make_translator("rnn-seq2seq", toy.prepared.tokenizer)
    record = capture(translator, TEXT, "SO RE")
    for name in (*LOOKS, "two_heads"):
        with pytest.raises(InputError, match="the model has no cross attention"):
            make_figure(name, record, translator)


def test_logits_are_those_of_the_model(baseline):
    record = capture(baseline, TEXT, "SO RE MI")
    probabilities = [
        bar.get_width() for bar in make_figure("logits", record, baseline, row=1).axes[2].patches
    ]
    expected = [one["probability"] for one in record.steps[1]["top"]]
    assert probabilities == pytest.approx(expected, abs=1e-5)


def test_logits_of_a_record_of_another_model_are_rejected(toy):
    tokenizer = toy.prepared.tokenizer
    record = capture(make_translator("rnn-attention", tokenizer), TEXT, "SO")
    with pytest.raises(InputError, match="kind rnn-attention, not rnn-seq2seq"):
        make_figure("logits", record, make_translator("rnn-seq2seq", tokenizer))


def test_bars_show_where_the_only_attention_looks(toy, tmp_path):
    translator = make_translator("rnn-attention", toy.prepared.tokenizer)
    record = capture(translator, TEXT, "SO RE")
    figure = make_figure("decoder_steps", record)
    for axes, own in zip(figure.axes, record.attention("cross")[0, 0], strict=False):
        assert [bar.get_height() for bar in axes.patches] == pytest.approx(own.tolist(), abs=1e-6)
    caption = figure.get_supxlabel()
    assert caption.endswith("Bars: attention of the last layer.")
    with Image.open(save_plot("decoder_steps", tmp_path / "steps.gif", record)) as gif:
        assert gif.n_frames == len(record.tgt["tokens"])


def test_one_head_is_not_two(toy):
    for kind, options in (("rnn-attention", {}), ("transformer", {"num_heads": 1})):
        translator = make_translator(kind, toy.prepared.tokenizer, **options)
        record = capture(translator, TEXT, "SO RE")
        assert "two_heads" not in available_plots(record, translator)
        with pytest.raises(InputError, match="has one head") as error:
            make_figure("two_heads", record, translator)
        assert "head_lines" in error.value.hint


def test_learned_positions_are_shown_and_no_bound_is_claimed(toy):
    translator = make_translator("conv-s2s", toy.prepared.tokenizer, max_length=30)
    figure = make_figure("positions", capture(translator, TEXT, "SO"), translator)
    learned = images(figure)[3]  # after the three layouts of sinusoids
    table = translator.model.src_positions.weight.detach().numpy()
    assert learned == pytest.approx(table[: len(learned)], abs=2e-3)
    assert "learned ← this model" in read(figure)
    assert figure.get_supxlabel().endswith("learned values may not.")
    translator.model.src_positions.weight.data.mul_(30.0)
    large = make_figure("positions", capture(translator, TEXT, "SO"), translator)
    limits = {axes.images[0].get_clim() for axes in large.axes[:4]}
    assert len(limits) == 1  # one color bar is for all
    assert limits.pop()[1] > 1.0


def test_masks_of_an_ensemble(toy):
    tokenizer = toy.prepared.tokenizer
    models = [make_translator("transformer", tokenizer).model] * 2
    ensemble = Translator(Ensemble(models), tokenizer)
    record = capture(ensemble, TEXT, "SO RE")
    assert {"masks", "logits"} <= set(available_plots(record, ensemble))
    for name in available_plots(record, ensemble):
        assert make_figure(name, record, ensemble).axes


# ---- Transformers without a part -------------------------------------------------------------


@pytest.mark.parametrize("scale", [True, False])
def test_scores_record_whether_they_were_divided(toy, scale):
    translator = make_translator("transformer", toy.prepared.tokenizer, scale=scale)
    record = capture(translator, TEXT, "SO RE MI")
    one = make_figure("one_word", record, translator, kind="cross", layer=0, head=0, row=0)
    matrix = make_figure("score_matrix", record, translator, kind="cross", layer=0, head=0)
    divided = " / √4" if scale else ""
    assert f"1. scores  q · k{divided}" in read(one)
    assert f"scores  Q Kᵀ{divided}" in read(matrix)
    if not scale:
        assert not any("√" in text for text in [*read(one), *read(matrix)])
    scores = np.array([bar.get_width() for bar in one.axes[0].patches])
    expected = record.attention("cross")[0, 0, 0]
    assert np.exp(scores) / np.exp(scores).sum() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("norm", "form", "names"),
    [
        ("post", "LayerNorm(Sublayer(x))", ["x", "Sublayer(x)", "LayerNorm"]),
        ("pre", "Sublayer(LayerNorm(x))", ["x", "LayerNorm(x)", "Sublayer(…)"]),
    ],
)
def test_without_a_residual_path_nothing_is_added(toy, norm, form, names):
    translator = make_translator("transformer", toy.prepared.tokenizer, norm=norm, residual=False)
    record = capture(translator, TEXT, "SO RE MI")
    figure = make_figure("add_and_norm", record, translator, kind="cross", layer=1, row=0)
    assert [axes.get_ylabel() for axes in figure.axes if axes.images] == names
    assert figure.get_suptitle() == f"Norm on one vector: {form}"
    assert not any("x +" in text for text in read(figure))
    if norm == "post":
        _, transformed, normed = (image[0] for image in images(figure)[:3])
        expected = (transformed - transformed.mean()) / np.sqrt(transformed.var() + 1e-5)
        assert normed == pytest.approx(expected, abs=1e-4)  # untrained: gain 1, bias 0


@pytest.mark.parametrize(
    ("norm", "form"),
    [("post", "LayerNorm(x + Sublayer(x))"), ("pre", "x + Sublayer(LayerNorm(x))")],
)
def test_with_a_residual_path_the_sum_is_shown(toy, norm, form):
    translator = make_translator("transformer", toy.prepared.tokenizer, norm=norm)
    figure = make_figure("add_and_norm", capture(translator, TEXT, "SO"), translator)
    assert figure.get_suptitle() == f"Add and norm on one vector: {form}"
    assert len([axes for axes in figure.axes if axes.images]) == 4


@pytest.mark.parametrize(
    ("norm", "num_norms"),
    [("post", 2 + 3), ("pre", 2 + 3 + 2)],  # a pre-norm side has a last one
)
def test_the_stack_without_residual_paths_only_norms(toy, norm, num_norms):
    translator = make_translator("transformer", toy.prepared.tokenizer, norm=norm, residual=False)
    texts = read(make_figure("stack", capture(translator, TEXT, "SO"), translator))
    assert texts.count("norm") == num_norms
    assert not {"add", "add and norm"} & set(texts)


@pytest.mark.parametrize(("residual", "num_paths"), [(True, 2 + 3), (False, 0)])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_stack_has_a_residual_connection_around_every_sublayer(toy, norm, residual, num_paths):
    options = {"norm": norm, "residual": residual}
    translator = make_translator("transformer", toy.prepared.tokenizer, **options)
    record = capture(translator, TEXT, "SO")
    figure = make_figure("stack", record, translator)
    (axes,) = figure.axes
    paths = [line for line in axes.lines if len(line.get_xdata()) == 3]
    assert len(paths) == num_paths
    heights = [line.get_ydata()[-1] - line.get_ydata()[0] for line in paths]
    assert len({round(float(height), 6) for height in heights}) <= 1  # all as long
    (panel,) = describe_figure("stack", record, translator)["rows"][0]
    for side in ("encoder", "decoder"):
        boxes = panel[side]["boxes"]
        for row, box in enumerate(boxes):
            around = [one["name"] for one in boxes[row - box["skipped"] : row]]
            before = ["norm"] if norm == "pre" else []
            assert around[:-1] == (before if box["skipped"] else [])
            assert "add" not in " ".join(around)


def test_gradients_of_a_model_without_residual_paths_are_one_line(toy):
    translator = make_translator("transformer", toy.prepared.tokenizer, residual=False)
    record = capture(translator, TEXT, "SO RE MI")
    figure = make_figure("gradients", record, translator)
    sizes = gradient_norms(translator.model, teacher_force(translator, record))
    for axes, own in zip(figure.axes, sizes, strict=True):
        (curve,) = [line for line in axes.lines if len(line.get_xdata()) == len(own)]
        assert curve.get_ydata() == pytest.approx([size / own[-1] for size in own], rel=1e-4)
    labels = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    assert labels == ["this model, which has no residual connections"]


@pytest.mark.parametrize("bias", [True, False])
def test_the_sum_of_heads_shows_a_bias_only_where_there_is_one(toy, bias):
    translator = make_translator("transformer", toy.prepared.tokenizer, bias=bias)
    texts = read(make_figure("concatenated_heads", capture(translator, TEXT, "SO"), translator))
    assert ("their sum plus the bias: the output" in texts) is bias
    assert ("their sum: the output" in texts) is not bias


def test_all_of_this_is_printed_in_korean_too(toy, monkeypatch):
    printed = set()
    say = PlotContext.translate

    def listen(self, phrase, **parts):
        printed.add(phrase)
        return say(self, phrase, **parts)

    monkeypatch.setattr(PlotContext, "translate", listen)
    tokenizer = toy.prepared.tokenizer
    bare = {"scale": False, "residual": False, "bias": False}
    for translator in (
        *(make_translator(kind, tokenizer) for kind in POSSIBLE),
        make_translator("transformer", tokenizer, **bare),
        make_translator("transformer", tokenizer, **bare, norm="pre"),
    ):
        record = inspect_sentence(translator, TEXT, max_length=5)
        for name in available_plots(record, translator):
            make_figure(name, record, translator, language="ko")
    assert {"scores  Q Kᵀ", "Norm on one vector: {form}"} <= printed <= set(load_catalogue("ko"))
