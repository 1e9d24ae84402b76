from __future__ import annotations

import io
import logging
import sys
from xml.etree import ElementTree as ET

import matplotlib
import numpy as np
import pytest
import torch
from matplotlib.colors import to_hex
from matplotlib.text import Text
from PIL import Image

from attendo.bundle import build_model
from attendo.core.errors import AttendoError, ConfigError, InputError, MissingExtraError
from attendo.decoding.ensemble import Ensemble
from attendo.i18n.messages import load_catalogue
from attendo.inspection import capture
from attendo.inspection.ablation import ablate_all_heads
from attendo.inspection.attribution import attribute
from attendo.inspection.logit_lens import logit_lens
from attendo.inspection.plots import (
    PLOTS,
    available_plots,
    make_figure,
    save_all_plots,
    save_plot,
)
from attendo.inspection.plots.context import PlotContext
from attendo.model.positional_encoding import sinusoidal
from attendo.plotting import fonts
from attendo.plotting.style import BLUE, ORANGE, new_figure
from attendo.translator import Translator

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 4, "num_layers": 2, "num_decoder_layers": 3}
TEXT = "ka to mi re so"
HANGUL = ("왕자는", "공주를", "높은", "성에서", "구했다")


def make_translator(tokenizer, **options) -> Translator:
    model = build_model("transformer", {**SIZES, **options}, tokenizer)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(2.0)
    return Translator(model.eval(), tokenizer)


def look(translator, text=TEXT, *args, **options):
    """Make a record with everything in it, whose source reads as Korean."""
    record = capture(translator, text, *args, **options)
    record = record.replace(
        ablation=ablate_all_heads(translator, record, beam_size=1),
        attribution=attribute(translator, record, num_steps=2),
        logit_lens=logit_lens(translator, record),
    )
    words = [*HANGUL[: len(record.src["words"])]]
    tokens = [
        {**token, "text": words[token["word"]]} if token["word"] is not None else token
        for token in record.src["tokens"]
    ]
    return record.replace(src={"text": " ".join(words), "tokens": tokens, "words": words})


@pytest.fixture(scope="module")
def translator(toy) -> Translator:
    torch.manual_seed(5)
    return make_translator(toy.prepared.tokenizer)


@pytest.fixture(scope="module")
def record(translator):
    return look(translator, max_length=6)


def read(figure) -> list[str]:
    """Return every text that is drawn."""
    figure.canvas.draw()
    return [text.get_text() for text in figure.findobj(Text) if text.get_text().strip()]


def images(figure) -> list[np.ndarray]:
    return [np.ma.filled(axes.images[0].get_array(), np.nan) for axes in figure.axes if axes.images]


@pytest.mark.parametrize("name", PLOTS)
def test_every_picture_is_a_png_with_a_heading(translator, record, name, tmp_path):
    path = save_plot(name, tmp_path / "deep" / f"{name}.png", record, translator)
    image = Image.open(path)
    image.load()
    assert image.format == "PNG"
    assert min(image.size) > 60  # the fixture draws 40 pixels per inch
    pixels = np.asarray(image.convert("L"))
    assert (pixels < 128).mean() > 0.002  # something is drawn
    assert (pixels == 255).mean() > 0.05
    assert sorted(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("name", PLOTS)
def test_every_picture_is_a_whole_svg(translator, record, name, tmp_path):
    path = save_plot(name, str(tmp_path / f"{name}.SVG"), record, translator)
    root = ET.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 20


def test_positions_are_both_layouts_and_name_the_models_own(translator, record):
    figure = make_figure("positions", record)
    interleaved, halves, timing_signal = images(figure)
    assert interleaved == pytest.approx(sinusoidal(20, 16).numpy())
    assert halves == pytest.approx(sinusoidal(20, 16, layout="halves").numpy())
    assert "sine and cosine interleaved (the paper) ← this model" in read(figure)
    expected = sinusoidal(20, 16, layout="tensor2tensor").numpy()
    assert timing_signal == pytest.approx(expected)
    with pytest.raises(InputError, match="no positions"):
        make_figure("positions", record.replace(positions=None))


def test_the_toy_shows_the_numbers_of_the_paper(record):
    figure = make_figure("position_toy", record)
    texts = read(figure)
    assert {"0.84", "0.54", "0.91", "−0.42", "0.01", "1.00"} <= set(
        texts
    )  # sin 1, cos 1, sin 2 ...
    assert any(fonts.replace_missing_glyphs("왕자는") in text for text in texts)
    assert images(figure)[0][1] == pytest.approx([0.8415, 0.5403, 0.0100, 0.9999], abs=1e-4)


def test_the_input_is_drawn_as_a_sum(translator, record):
    embedded, positions, total = images(make_figure("input_sum", record, translator))[:3]
    assert embedded.shape == (len(record.src["tokens"]), 16)
    assert total == pytest.approx(embedded + positions, abs=1e-5)


def test_query_key_and_value_are_products(translator, record):
    figure = make_figure(
        "query_key_value", record, translator, kind="encoder_self", layer=0, head=3, row=1
    )
    parts = images(figure)
    attention = translator.model.encoder.layers[0].self_attention
    for position, projection in enumerate((attention.query, attention.key, attention.value)):
        x, weight, result = parts[3 * position : 3 * position + 3]
        bias = projection.bias.detach().numpy()[12:16]
        assert weight == pytest.approx(projection.weight.detach().numpy()[12:16].T)
        assert result == pytest.approx(x @ weight + bias, abs=1e-5)
    assert read(figure).count(fonts.replace_missing_glyphs("“공주를”")) == 3


def test_one_word_goes_from_scores_to_a_sum(translator, record):
    figure = make_figure("one_word", record, translator, kind="cross", layer=1, head=2, row=3)
    scores, weights = (
        np.array([bar.get_width() for bar in axes.patches]) for axes in figure.axes[:2]
    )
    expected = record.attention("cross")[1, 2, 3]
    assert weights == pytest.approx(expected, abs=1e-5)
    assert np.exp(scores) / np.exp(scores).sum() == pytest.approx(expected, abs=1e-4)
    rows = images(figure)[0]
    assert rows[-1] == pytest.approx(rows[: len(expected)].sum(0), abs=1e-5)
    best = int(expected.argmax())
    assert to_hex(figure.axes[1].patches[best].get_facecolor()).upper() == ORANGE


def test_one_word_marks_what_the_mask_hides(translator, record):
    figure = make_figure("one_word", record, translator, kind="decoder_self", row=2)
    hidden = len(record.tgt["tokens"]) - 3
    assert read(figure).count("×") == 2 * hidden


def test_the_matrix_of_scores_leaves_out_what_is_hidden(translator, record):
    figure = make_figure("score_matrix", record, translator, kind="decoder_self", layer=2, head=1)
    scores, weights = images(figure)[:2]
    size = len(record.tgt["tokens"])
    assert np.isnan(scores).sum() == size * (size - 1) / 2
    assert weights == pytest.approx(record.attention("decoder_self")[2, 1], abs=1e-5)


def test_masks_cross_out_padding_and_the_future(translator, record):
    figure = make_figure("masks", record, translator)
    num_src, num_tgt = len(record.src["tokens"]), len(record.tgt["tokens"])
    crosses = [sum(text.get_text() == "×" for text in axes.texts) for axes in figure.axes]
    assert crosses[0] == 2 * (num_src + 2)
    assert crosses[2] == 2 * (num_tgt + 2)
    future = num_tgt * (num_tgt - 1) // 2
    assert crosses[1] == future + 2 * (num_tgt + 2)
    assert {"<pad>", "<s>", fonts.replace_missing_glyphs("왕자는")} <= set(read(figure))
    alone = make_figure("masks", record, kind="cross")
    assert len(alone.axes) == 1


def test_the_mask_of_a_restricted_model_is_a_band(toy):
    translator = make_translator(toy.prepared.tokenizer, attention_width=3)
    figure = make_figure("masks", capture(translator, TEXT), translator, kind="encoder_self")
    band = images(figure)[0] > 0
    assert band[0].tolist() == [True, True, *[False] * (band.shape[1] - 2)]


def test_lines_show_the_weights_of_one_head(record):
    figure = make_figure("head_lines", record, kind="cross", layer=1, head=3, row=0)
    weights = record.attention("cross")[1, 3, 0]
    texts = read(figure)
    shown = [f"{weight:.2f}" for weight in weights if weight >= 0.02]
    assert [text for text in texts if text in shown] == shown
    blue = [line for line in figure.axes[0].lines if line.get_color() == BLUE]
    assert len(blue) == len(shown)
    assert {
        fonts.replace_missing_glyphs("왕자는"),
        fonts.replace_missing_glyphs("구했다"),
        "</s>",
    } <= set(texts)
    assert any("layer 2, head 4" in text for text in texts)


def test_two_heads_differ_as_much_as_any_pair_unless_they_are_named(record):
    weights = record.attention("cross")[-1]
    figure = make_figure("two_heads", record)
    first, second = (
        int(text.get_text().removeprefix("head ")) - 1
        for text in figure.axes[0].get_legend().get_texts()
    )
    gaps = np.abs(weights[:, None] - weights[None]).sum(-1)[..., :-1]  # (H, H, T), not </s>
    assert "</s>" not in figure._suptitle.get_text()
    assert gaps[first, second].max() == pytest.approx(gaps.max())
    named = make_figure("two_heads", record, head=2, other_head=-4, row=1)
    assert {"head 3", "head 1"} <= set(read(named))
    colors = {line.get_color() for line in named.axes[0].lines}
    assert colors == {BLUE, ORANGE}


@pytest.mark.parametrize("kind", ["encoder_self", "decoder_self", "cross"])
def test_all_heads_are_in_a_grid(record, kind):
    figure = make_figure("all_heads", record, kind=kind)
    weights = record.attention(kind)
    drawn = np.array(images(figure)[: weights.shape[0] * weights.shape[1]])
    assert drawn.reshape(weights.shape) == pytest.approx(weights)
    layers = {f"layer {layer + 1}" for layer in range(len(weights))}
    assert layers | {"head 1", "head 4"} <= set(read(figure))


def test_heads_side_by_side_add_up(translator, record):
    figure = make_figure("concatenated_heads", record, translator, kind="cross", layer=0)
    joined, turned, parts, total = images(figure)
    output = translator.model.decoder.layers[0].cross_attention.output
    assert turned == pytest.approx(output.weight.detach().numpy())
    assert parts.sum(0) == pytest.approx((joined @ turned.T)[0], abs=1e-4)
    assert total[0] == pytest.approx(parts.sum(0) + output.bias.detach().numpy(), abs=1e-4)


def test_add_and_norm_reports_mean_and_deviation(translator, record):
    figure = make_figure("add_and_norm", record, translator, kind="cross", layer=1, row=0)
    x, transformed, added, normed = (image[0] for image in images(figure)[:4])
    assert added == pytest.approx(x + transformed, abs=1e-5)
    assert normed.std() == pytest.approx(1.0, abs=0.01)  # untrained: gain 1, bias 0
    reported = [text for text in read(figure) if text.startswith("mean")]
    assert reported[-1] == "mean 0.00   standard deviation 1.00"


def test_gradients_have_a_line_with_and_without_residuals(translator, record):
    figure = make_figure("gradients", record, translator)
    for axes, num_layers in zip(figure.axes, (2, 3), strict=True):
        curves = [line for line in axes.lines if len(line.get_xdata()) == num_layers + 1]
        assert len(curves) == 2
        assert all(line.get_ydata()[-1] == 1.0 for line in curves)
    texts = read(figure)
    assert {
        "with residual connections",
        "the same weights without residual connections",
        "layer 2",
    } <= set(texts)
    assert not any("mathdefault" in text for text in texts)


def test_the_stack_shows_every_shape(translator, record):
    texts = read(make_figure("stack", record, translator))
    num_src, num_tgt = len(record.src["tokens"]), len(record.tgt["tokens"])
    vocab_size = translator.tokenizer.tgt_vocab_size
    shapes = {
        f"({num_src},)",
        f"({num_src}, 16)",
        f"({num_src}, 32)",
        f"(4, {num_src}, {num_src})",
        f"(4, {num_tgt}, {num_tgt})",
        f"(4, {num_tgt}, {num_src})",
        f"({num_tgt}, {vocab_size:,})",
    }
    assert shapes | {"× 2", "× 3", "add and norm"} <= set(texts)
    assert any(f"{translator.model.num_parameters():,}" in text for text in texts)


def test_the_stack_of_a_pre_norm_model_norms_first(toy):
    translator = make_translator(toy.prepared.tokenizer, norm="pre", positions="none")
    texts = read(make_figure("stack", capture(translator, TEXT), translator))
    assert texts.count("norm") == 2 + 3 + 2  # a layer has two or three, and each side a last one
    assert texts.count("add") == 2 + 3
    assert not {"add and norm", "+ position"} & set(texts)


def test_decoder_steps_show_each_step(record):
    figure = make_figure("decoder_steps", record)
    looks = record.attention("cross")[-1].mean(0)  # (T, S)
    for step, own in enumerate(looks):
        heights = [bar.get_height() for bar in figure.axes[step].patches]
        assert heights == pytest.approx(own.tolist(), abs=1e-6)
        printed = record.tgt["tokens"][step]
        probability = record.steps[step]["probability"]
        expected = f"→ {printed['text'] or printed['piece']}  {probability:.2f}"
        assert expected in [text.get_text() for text in figure.axes[step].texts]


def test_decoder_steps_are_an_animation_too(record, tmp_path):
    image = Image.open(
        io.BytesIO(save_plot("decoder_steps", tmp_path / "steps.gif", record).read_bytes())
    )
    assert image.format == "GIF"
    assert image.n_frames == len(record.tgt["tokens"])
    frames = []
    for number in range(image.n_frames):
        image.seek(number)
        frames.append((np.asarray(image.convert("RGB")), image.info["duration"]))
    assert not np.array_equal(frames[0][0], frames[1][0])
    assert frames[-1][1] > frames[0][1] > 100


def test_logits_end_in_the_word_of_the_output(translator, record):
    figure = make_figure("logits", record, translator, row=1)
    step = record.steps[1]
    logits, probabilities = ([bar.get_width() for bar in axes.patches] for axes in figure.axes[1:3])
    assert probabilities == pytest.approx([one["probability"] for one in step["top"]], abs=1e-5)
    ratios = np.diff(np.log(probabilities))
    assert np.diff(logits) == pytest.approx(ratios, abs=1e-3)  # softmax keeps differences
    texts = read(figure)
    assert any(record.tgt["tokens"][1]["text"] in text for text in texts)
    assert f"all {translator.tokenizer.tgt_vocab_size:,} logits, highest first" in texts


def test_the_beam_tree_shows_every_candidate_and_the_winner(record):
    figure = make_figure("beam_tree", record)
    candidates = [one for step in record.beam["steps"] for one in step["candidates"]]
    texts = read(figure)
    for one in candidates:
        shown = f"{one['score']:.2f}".replace("-", "−")
        assert any(text.endswith(f"\n{shown}") for text in texts)
    widths = [line.get_linewidth() for line in figure.axes[0].lines if len(line.get_xdata())]
    winner = record.beam["hypotheses"][0]
    assert widths.count(2.6) == len(winner["ids"]) + winner["is_finished"]
    pruned = [line for line in figure.axes[0].lines if line.get_linestyle() == ":"]
    assert len(pruned) - 1 == sum(one["outcome"] == "pruned" for one in candidates)  # one: legend
    assert {"the winner", "kept", "finished", "pruned"} <= set(texts)


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1},
        {"do_sample": True, "seed": 3},
        {"beam_size": 4, "num_groups": 2},
        {"max_length": 2},
    ],
)
def test_every_kind_of_search_has_its_tree(translator, options):
    record = capture(translator, TEXT, **options)
    figure = make_figure("beam_tree", record)
    winner = record.beam["hypotheses"][0]
    widths = [line.get_linewidth() for line in figure.axes[0].lines if len(line.get_xdata())]
    assert widths.count(2.6) == len(winner["ids"]) + winner["is_finished"]


def test_attribution_is_drawn_word_by_word(record):
    figure = make_figure("attribution", record)
    assert images(figure)[0] == pytest.approx(np.array(record.attribution["words"]))
    texts = read(figure)
    assert set(
        map(fonts.replace_missing_glyphs, (*record.tgt["words"], *record.src["words"]))
    ) <= set(texts)
    assert any("integrated gradients, 2 steps" in text for text in texts)


def test_ablation_has_a_bar_for_each_head(record):
    figure = make_figure("ablation", record)
    drawn = [bar.get_height() for axes in figure.axes for bar in axes.patches]
    assert drawn == pytest.approx([one["change"] for one in record.ablation["heads"]])
    changed = [one for one in record.ablation["heads"] if one["text"] != record.tgt["text"]]
    stars = [text for axes in figure.axes for text in axes.texts if text.get_text() == "*"]
    assert len(stars) == len(changed) > 0
    silent = record.replace(
        ablation={
            **record.ablation,
            "heads": [{**one, "text": None} for one in record.ablation["heads"]],
        }
    )
    assert "*" not in read(make_figure("ablation", silent))


def test_the_logit_lens_is_a_table_with_the_last_layer_on_top(record):
    figure = make_figure("logit_lens", record)
    layers = record.logit_lens["layers"]
    best = [[step["top"][0]["probability"] for step in layer] for layer in reversed(layers)]
    assert images(figure)[0] == pytest.approx(np.array(best))
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["layer 3", "layer 2", "layer 1"]
    cells = [text.get_text() for text in figure.axes[0].texts]
    assert len(cells) == 3 * len(record.steps)
    wrong = [step for layer in layers for step in layer if step["rank"]]
    assert sum("(" in cell for cell in cells) == len(wrong)


@pytest.mark.parametrize(
    "options",
    [
        {"norm": "pre", "bias": False},
        {"positions": "learned", "max_length": 12, "d_k": 3, "d_v": 5},
        {"positions": "concatenated", "attention_width": 3},
        {"positions": "none", "num_heads": 1, "num_layers": 1, "num_decoder_layers": 1},
    ],
)
def test_every_kind_of_model_can_be_drawn(toy, options):
    translator = make_translator(toy.separate.tokenizer, **options)
    record = look(translator, max_length=6)
    possible = available_plots(record, translator)
    missing = {"positions"} if options.get("positions") == "none" else set()
    missing |= {"two_heads"} if options.get("num_heads") == 1 else set()
    assert set(PLOTS) - set(possible) == missing
    for name in possible:
        assert make_figure(name, record, translator).axes


def test_a_record_of_symbols_alone_can_be_drawn(translator):
    whole = capture(translator, "ka", "SO")
    end = whole.tgt["tokens"][-1]
    assert end["piece"] == "</s>"
    record = whole.replace(
        tgt={"text": "", "tokens": [end], "words": []},
        steps=whole.steps[-1:],
        weights={
            "encoder_self": whole.attention("encoder_self"),
            "decoder_self": whole.attention("decoder_self")[:, :, :1, :1],
            "cross": whole.attention("cross")[:, :, :1],
        },
    )
    record = record.replace(
        attribution=attribute(translator, record, num_steps=2),
        ablation=ablate_all_heads(translator, record, translate=False),
        logit_lens=logit_lens(translator, record),
    )
    for name in available_plots(record, translator):
        read(make_figure(name, record, translator))


def test_what_is_possible_is_drawn(translator, record, tmp_path):
    bare = capture(translator, TEXT, "SO")
    names = available_plots(bare)
    assert names == [
        "positions",
        "position_toy",
        "masks",
        "head_lines",
        "two_heads",
        "all_heads",
        "decoder_steps",
    ]
    assert set(available_plots(record, translator)) == set(PLOTS)
    drawn = save_all_plots(tmp_path, bare, suffix=".svg", kind="cross")
    assert [path.name for path in drawn] == [f"{name}.svg" for name in names]


class TestKorean:
    def test_every_phrase_has_its_korean(self, toy, translator, record, monkeypatch):
        printed = set()
        say = PlotContext.translate

        def listen(self, phrase, **parts):
            printed.add(phrase)
            return say(self, phrase, **parts)

        monkeypatch.setattr(PlotContext, "translate", listen)
        for name in PLOTS:
            make_figure(name, record, translator, language="ko")
        for kind in record.kinds:
            make_figure("score_matrix", record, translator, language="ko", kind=kind)
        pre = make_translator(toy.prepared.tokenizer, norm="pre", positions="learned")
        other = look(pre, do_sample=True)
        gradient = attribute(pre, other, method="gradient_x_input")
        for name in PLOTS:
            make_figure(name, other.replace(attribution=gradient), pre, language="ko")
        assert printed <= set(load_catalogue("ko"))
        assert len(printed) > 80

    def test_descriptions_come_in_both_languages(self):
        for picture in PLOTS.values():
            assert len(picture.about) > 15
            assert "\n" not in picture.about
            assert picture.describe("ko") != picture.about

    def test_words_are_korean(self, record):
        texts = read(make_figure("all_heads", record, language="ko"))
        assert set(map(fonts.replace_missing_glyphs, ("헤드 1", "층 3", "왕자는"))) <= set(texts)


class TestFonts:
    def test_the_bundled_font_shows_hangul(self, record):
        figure = make_figure("all_heads", record)
        shown = [text for text in figure.findobj(Text) if text.get_text() == "왕자는"]
        assert shown
        assert {text.get_fontfamily()[0] for text in shown} == {fonts.BUNDLED_FONT}

    def test_the_bundled_font_has_every_common_syllable(self):
        known = fonts._supported_code_points((fonts.BUNDLED_FONT,))
        rows, cells = range(0xB0, 0xC9), range(0xA1, 0xFF)
        common = {bytes([row, cell]).decode("euc_kr") for row in rows for cell in cells}
        assert len(common) == 2350
        assert {ord(one) for one in common} <= known
        assert {ord(one) for one in "갔었어 됬 뷁 Qk0√"} - known <= {ord("√")}

    def test_its_license_comes_with_it(self):
        text = fonts.BUNDLED_FILE.with_name("OFL.txt").read_text(encoding="utf-8")
        assert "SIL OPEN FONT LICENSE Version 1.1" in text

    def test_a_figure_without_hangul_keeps_the_default_font(self):
        figure = new_figure(2, 2)
        figure.suptitle("no Hangul")
        fonts.set_fonts(figure)
        assert figure.findobj(Text)[0].get_fontfamily()[0] == fonts.DEFAULT_FONT

    @pytest.mark.usefixtures("without_font")
    def test_without_one_it_draws_anyway_and_warns_once(self, record, caplog, tmp_path):
        with caplog.at_level(logging.WARNING, logger="attendo"):
            save_plot("all_heads", tmp_path / "a.png", record)
            figure = make_figure("head_lines", record, language="ko")
        assert "□□□" in read(figure)
        assert "구했다" not in read(figure)
        reported = [
            one.getMessage() for one in caplog.records if "rare syllable" in one.getMessage()
        ]
        assert len(reported) == 1
        assert "fonts-noto-cjk" in reported[0]

    def test_what_no_font_shows_becomes_a_box(self):
        assert fonts.replace_missing_glyphs("a\ue123b\tc\u200bd") == "a□b cd"

    def test_dollars_are_no_mathematics(self, record, tmp_path):
        tokens = [{**token, "text": "$x^2$ $\\frac{1"} for token in record.src["tokens"]]
        costly = record.replace(src={**record.src, "tokens": tokens})
        save_plot("all_heads", tmp_path / "a.svg", costly)
        assert "$x^2$ $\\frac{1" in read(make_figure("head_lines", costly))

    def test_nothing_global_is_changed(self, record, tmp_path):
        before = dict(matplotlib.rcParams)
        save_plot("two_heads", tmp_path / "a.png", record)
        assert dict(matplotlib.rcParams) == before


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "options", "reason"),
        [
            ("al_heads", {}, "no plot 'al_heads'"),
            ("all_heads", {"kind": "crss"}, "no kind of attention 'crss'"),
            ("masks", {"kind": "crss"}, "no kind of attention 'crss'"),
            ("head_lines", {"layer": 3}, "no layer 3"),
            ("head_lines", {"head": 4}, "no head 4"),
            ("two_heads", {"other_head": -5}, "no head -5"),
            ("head_lines", {"row": 99}, "no row 99"),
            ("add_and_norm", {"layer": 9}, "no layer 9"),
        ],
    )
    def test_what_is_not_there(self, translator, record, name, options, reason):
        with pytest.raises(InputError, match=reason) as error:
            make_figure(name, record, translator, **options)
        assert error.value.hint

    def test_settings_that_are_unknown(self, record):
        with pytest.raises(ConfigError, match="did you mean 'layer'"):
            make_figure("all_heads", record, layr=1)
        with pytest.raises(ConfigError, match="language 'fr'"):
            make_figure("all_heads", record, language="fr")

    @pytest.mark.parametrize("name", [n for n, p in PLOTS.items() if p.needs_model])
    def test_a_record_without_its_model(self, record, name):
        with pytest.raises(InputError, match="only a record is given") as error:
            make_figure(name, record)
        assert "translator" in error.value.hint

    @pytest.mark.parametrize("name", [n for n, p in PLOTS.items() if p.section])
    def test_a_record_without_the_part(self, record, name):
        section = PLOTS[name].section
        with pytest.raises(InputError, match=f"the record has no {section}") as error:
            make_figure(name, record.replace(**{section: None}))
        assert error.value.hint

    def test_an_ensemble_has_no_inside(self, translator, record):
        ensemble = Translator(Ensemble([translator.model] * 2), translator.tokenizer)
        with pytest.raises(InputError, match="an ensemble of 2"):
            make_figure("stack", record, ensemble)
        assert "stack" not in available_plots(record, ensemble)

    @pytest.mark.parametrize("file", ["a.jpg", "a", "a.gif"])
    def test_a_file_of_another_kind(self, record, tmp_path, file):
        with pytest.raises(InputError, match=r"name it \*.png or \*.svg"):
            save_plot("all_heads", tmp_path / file, record)
        assert not list(tmp_path.iterdir())

    def test_a_folder_that_cannot_be_written(self, record, tmp_path):
        (tmp_path / "file").write_text("in the way")
        with pytest.raises(AttendoError, match="could not be written"):
            save_plot("all_heads", tmp_path / "file" / "a.png", record)

    def test_matplotlib_is_an_extra(self, record, monkeypatch):
        fonts.font_families.cache_clear()
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        with pytest.raises(MissingExtraError, match="matplotlib is not installed") as error:
            make_figure("all_heads", record)
        assert "attendo[plots]" in error.value.hint


def test_drawing_leaves_the_model_as_it_was(toy, tmp_path):
    translator = make_translator(toy.prepared.tokenizer, dropout=0.7)
    translator.model.train()
    record = capture(translator, TEXT)
    stream = [io.BytesIO(), io.BytesIO()]
    for one in stream:
        make_figure("logits", record, translator).savefig(one, format="png")
    make_figure("gradients", record, translator)
    assert stream[0].getvalue() == stream[1].getvalue()
    assert translator.model.training
    assert all(weight.grad is None for weight in translator.model.parameters())
