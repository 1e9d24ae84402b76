"""An example of each JSON response, for the documentation; a test checks them by the schemas."""

from __future__ import annotations

from typing import Any

_CONFIDENCE = {
    "probability": 0.9412,
    "mean_token_probability": 0.9904,
    "quality": 0.979,
    "band": "high",
    "is_calibrated": True,
    "unfamiliar": None,
    "words": [
        {"text": "I", "probability": 0.9981},
        {"text": "am", "probability": 0.9975},
        {"text": "a", "probability": 0.9902},
        {"text": "student.", "probability": 0.9559},
    ],
}
_ALTERNATIVE = {
    "text": "I am the student.",
    "score": -1.93,
    "log_prob": -2.84,
    "is_finished": True,
    "confidence": None,
}
_BUILD = {
    "name": "ko-en", "state": "running", "updated": "2026-11-18T21:00:00+00:00",
    "progress": {"done": 61, "total": 900},
    "steps": [
        {"name": "clean", "state": "done", "needs": [], "seconds": 80.0, "estimate": None},
        {"name": "teacher", "state": "running", "needs": ["clean"], "seconds": None,
         "estimate": 470.0},
    ],
}  # fmt: skip
_RUN = {
    "name": "ko-en",
    "state": "finished",
    "step": 900,
    "max_steps": 900,
    "dev": {"bleu": 96.1, "loss": 0.072},
    "diverged": False,
    "updated": "2026-01-31T09:00:00+00:00",
}
_EVENT = {
    "time": "2026-01-31T08:59:00+00:00",
    "event": "train",
    "step": 880,
    "loss": 0.21,
    "rate": 0.0005,
    "tokens_per_second": 8400.0,
}
_CORRECTION = {
    "id": 1, "source": "ko", "target": "en", "source_text": "나는 학생이다.",
    "target_text": "I am a student.", "model": "ko-en", "output": "I am student.",
    "author": "Kim", "time": "2026-11-19T09:00:00Z", "origin": "correction",
}  # fmt: skip
_TOKEN = {"id": 66, "piece": "▁나는", "text": "나는", "word": 0}
_SIDE = {"text": "나는", "tokens": [_TOKEN], "words": ["나는"]}
_RECORD = {
    "format": "attendo.record",
    "version": 1,
    "attendo": "0.1.0",
    "model": {"name": "ko-en", "kind": "transformer", "num_layers": 2, "num_heads": 4},
    "search": {"method": "beam", "beam_size": 4, "alpha": 0.6, "score": -0.2, "log_prob": -0.29},
    "src": _SIDE,
    "tgt": {"text": "I", "tokens": [{"id": 9, "piece": "▁I", "text": "I", "word": 0}],
            "words": ["I"]},
    "attention": {
        "encoder_self": None,
        "decoder_self": None,
        "cross": {"layers": 1, "heads": 1, "rows": 1, "columns": 1, "encoding": "u16",
                  "data": "//8="},
    },
    "steps": [{"probability": 0.99, "log_prob": -0.01, "entropy": 0.05,
               "top": [{"id": 9, "piece": "▁I", "probability": 0.99}]}],
    "beam": None, "measures": {}, "logit_lens": None, "attribution": None, "ablation": None,
    "positions": None, "embeddings": None, "series": None, "notes": [],
}  # fmt: skip

RESPONSE_EXAMPLES: dict[str, Any] = {
    "POST /translate": {"translatedText": "I am a student."},
    "POST /detect": [{"confidence": 99.8, "language": "ko"}],
    "GET /languages": [{"code": "ko", "name": "Korean", "targets": ["en", "ko"]}],
    "POST /translate_file": {
        "translatedFileUrl": "http://127.0.0.1:8765/download_file/f3QmQqV0a1"
    },
    "GET /frontend/settings": {
        "apiKeys": False, "charLimit": 5000, "filesTranslation": True, "frontendTimeout": 500,
        "keyRequired": False,
        "language": {"source": {"code": "ko", "name": "Korean"},
                     "target": {"code": "en", "name": "English"}},
        "suggestions": False, "supportedFilesFormat": [".txt", ".html"],
    },
    "GET /health": {"status": "ok"},
    "GET /v1/models": {
        "models": [{
            "name": "ko-en", "task": "translation", "source": "ko", "target": "en",
            "kind": "transformer", "num_parameters": 918528, "memory_bytes": 4742144,
            "has_attention": True,
            "default": True, "max_characters": 5000, "series": None, "dev": {"bleu": 96.1},
            "quality": None,
        }]
    },
    "POST /v1/translate": {
        "model": "ko-en", "source": "ko", "target": "en", "seconds": 0.0213,
        "translations": [{
            "text": "I am a student.", "score": -0.04, "log_prob": -0.06, "is_finished": True,
            "confidence": _CONFIDENCE, "source_text": "나는 학생이다.",
            "words": ["I", "am", "a", "student."], "alternatives": [_ALTERNATIVE],
            "alignment": {"source_words": ["나는", "학생이다."], "target_words": ["I"],
                          "weights": [[0.91, 0.09]]},
            "notes": [],
        }],
    },
    "POST /v1/alternatives": {
        "words": [{"text": "a", "probability": 0.99, "prefix": "I am a"}]
    },
    "POST /v1/inspect": _RECORD,
    "POST /v1/score": {
        "model": "ko-en",
        "scores": [{"log_prob": -0.06, "num_tokens": 2, "perplexity": 1.03,
                    "tokens": [{"text": "I", "log_prob": -0.05}, {"text": "", "log_prob": -0.01}]}],
    },
    "POST /v1/generate": {"model": "stories", "seconds": 0.8, "texts": ["A man is at home."]},
    "POST /v1/forecast": {
        "model": "sea", "seconds": 0.01,
        "window": {"first": None, "last": None, "rows": 30, "missing": 0},
        "steps": [{"time": "+1", "label": None, "probabilities": None,
                   "values": {"sea_temperature": 26.3}}],
    },
    "POST /v1/forecast/explain": _RECORD,
    "GET /v1/runs": {"runs": [_RUN]},
    "GET /v1/builds": {"builds": [_BUILD]},
    "GET /v1/runs/{name}": {
        **_RUN, "config": {"train": {"max_steps": 900}}, "events": [_EVENT], "next": 61,
        "samples": [{"step": 900, "samples": [{"src": "나는", "output": "I", "ref": "I"}]}],
        "checkpoints": [750, 900], "report": None, "model": "ko-en",
    },
    "POST /v1/runs/{name}/checkpoint": {
        "step": 900, "text": "나는 학생이다.", "translation": "I am a student.",
        "src": ["▁나는", "</s>"], "tgt": ["▁I", "</s>"], "attention": [[0.9, 0.1], [0.2, 0.8]],
    },
    "POST /v1/corrections": _CORRECTION,
    "GET /v1/corrections": {"corrections": [_CORRECTION], "num_units": 1, "next_before": None},
    "DELETE /v1/corrections/{unit_id}": {"deleted": 1},
    "POST /v1/corrections/import": {"added": 120, "replaced": 3, "unchanged": 0},
    "GET /v1/runs/{name}/events": {"events": [_EVENT], "next": 61, "state": "running"},
    "GET /v1/lessons": {
        "lessons": [{"number": 4, "title": "Scaled dot-product attention",
                     "summary": "Compute attention by hand.", "minutes": 25,
                     "prerequisites": [2]}],
        "terms": [{"name": "key", "other": "키", "lesson": 4,
                   "meaning": "The vector by which a word can be found."}],
        "map": {"kind": "machine", "title": "The whole machine", "stages": []},
    },
    "POST /v1/lessons/machine": {
        "model": "ko-en", "text": "나는 학생이다.", "src": ["▁나는", "</s>"],
        "tgt": ["▁I", "</s>"], "start": "<sos>", "layer": 1, "num_layers": 2,
        "num_decoder_layers": 2, "d_model": 128, "stages": {}, "attention": {}, "steps": [],
    },
    "POST /v1/lessons/{number}": {
        "number": 4, "title": "Scaled dot-product attention",
        "summary": "Compute attention by hand.", "paper": "3.2.1",
        "code": [{"file": "src/attendo/model/attention.py", "line": 50}],
        "inputs": [{"kind": "switch", "name": "scale", "label": "Scale", "default": True}],
        "blocks": [{"kind": "formula", "text": "Q Kᵀ"}],
        "questions": [{"prompt": "What is the first score?", "choices": []}],
    },
    "POST /v1/lessons/{number}/answer": {
        "is_right": False, "why": None, "hint": "higher",
        "hints": ["Compare the query with each key."], "answer": None,
    },
    "POST /v1/lessons/{number}/own": {
        "model": "ko-en", "blocks": [{"kind": "paragraph", "words": "..."}], "record": None,
    },
}  # fmt: skip
"""By method and path."""
