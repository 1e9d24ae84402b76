"""The words of the pictures in Korean; their English stands in the pictures themselves.

A test draws every picture and fails where a phrase is missing here.
"""

from __future__ import annotations

_TITLES = {
    "Where is each word: one vector for every position": "단어는 어디에 있나: 위치마다 벡터 하나",
    "A toy position vector with 4 dimensions": "4차원 위치 벡터로 보는 작은 예",
    "Embedding + position = input": "임베딩 + 위치 = 입력",
    "Query, key and value of one word": "한 단어의 쿼리, 키, 값",
    "Attention of one word: “{word}”": "한 단어의 어텐션: “{word}”",
    "The matrix of scores": "점수 행렬",
    "Masks: blue may be attended to, × may not": "마스크: 파란 칸은 볼 수 있고 ×는 볼 수 없다",
    "Where one head looks from “{word}”": "한 헤드는 “{word}”에서 어디를 보나",
    "Two heads look from “{word}”": "두 헤드가 “{word}”에서 보는 곳",
    "All heads: {kind}": "모든 헤드: {kind}",
    "Heads side by side, times W_O: “{word}”": "헤드를 이어 붙여 W_O를 곱한다: “{word}”",
    "Add and norm on one vector: {form}": "벡터 하나의 더하기와 정규화: {form}",
    "Norm on one vector: {form}": "벡터 하나의 정규화: {form}",
    "How much of the gradient reaches each layer": "각 층에 닿는 기울기의 크기",
    "The stack, and the shape at every stage": "전체 구조와 단계마다의 모양",
    "The decoder, step by step": "디코더의 한 걸음 한 걸음",
    "Step {step} of {count}": "{count}걸음 가운데 {step}번째",
    "From logits to a word: “{word}”": "로짓에서 단어로: “{word}”",
    "How the beam decided: {text}": "빔은 이렇게 골랐다: {text}",
    "Which source words make the model say it": "어떤 원문 단어 때문에 그렇게 말했나",
    "What each head is worth": "헤드 하나하나의 몫",
    "What each decoder layer would have said": "디코더의 각 층이 말했을 단어",
}

_CAPTIONS = {
    "Row: a position. Every one has a pattern of its own, always within −1 and 1.": (
        "행: 위치. 위치마다 무늬가 다르고, 값은 늘 −1과 1 사이에 있다."
    ),
    "Row: a position. Sines and cosines stay within −1 and 1, what is learned may not.": (
        "행: 위치. 사인과 코사인은 −1과 1 사이에 있지만, 학습된 값은 벗어날 수 있다."
    ),
    "PE(pos, 2i) = sin(pos / 10000^(2i/4)), PE(pos, 2i+1) = cos(the same)": (
        "PE(pos, 2i) = sin(pos / 10000^(2i/4)), PE(pos, 2i+1) = cos(같은 값)"
    ),
    "The embedding tells which word it is, the position where it stands.": (
        "임베딩은 어떤 단어인지, 위치는 어디에 있는지를 알려 준다."
    ),
    "{kind}, layer {layer}, head {head}: it reads all {size} numbers of x, and has its own three "
    "matrices.": (
        "{kind}, 층 {layer}, 헤드 {head}: x의 수 {size}개를 모두 읽고, 자기만의 행렬 세 개를 쓴다."
    ),
    "(Biases are added but not drawn.)": "(편향은 더해지지만 그리지 않았다.)",
    "{kind}, layer {layer}, head {head}": "{kind}, 층 {layer}, 헤드 {head}",
    "{kind}, layer {layer}, head {head}. Thick: much weight. Grey: the other words.": (
        "{kind}, 층 {layer}, 헤드 {head}. 굵은 선: 큰 가중치. 회색: 다른 단어들."
    ),
    "{kind}, layer {layer}": "{kind}, 층 {layer}",
    "Drawn with {count} places of padding, as beside a longer sentence.": (
        "더 긴 문장과 묶였을 때처럼 패딩 {count}칸을 붙여 그렸다."
    ),
    "Row: the word that looks. Column: what it looks at. Dark: much weight.": (
        "행: 보는 단어. 열: 보이는 단어. 진할수록 큰 가중치."
    ),
    "“{word}”, {sublayer}, layer {layer}. After training, gain and bias move it a little away from "
    "mean 0 and deviation 1.": (
        "“{word}”, {sublayer}, 층 {layer}. 학습된 배율과 편향 때문에 평균 0, 표준편차 1에서 조금 "
        "벗어난다."
    ),
    "Size of the loss's gradient after each layer; the loss is that of this sentence.": (
        "각 층의 출력에서 잰, 이 문장의 손실 기울기의 크기."
    ),
    "{src} source tokens, {tgt} target tokens; attention: (heads, rows, columns). {count} "
    "parameters.": (
        "원문 토큰 {src}개, 번역 토큰 {tgt}개. 어텐션: (헤드, 행, 열). 매개변수 {count}개."
    ),
    "Above: what was said, and → the next word with its probability.": (
        "위: 지금까지 한 말, → 다음 단어와 그 확률."
    ),
    "Bars: where the last layer's heads look, on average.": (
        "막대: 마지막 층의 헤드들이 평균으로 보는 곳."
    ),
    "Bars: where the last attention looks.": "막대: 마지막 어텐션이 보는 곳.",
    "Said so far: {said}": "지금까지 한 말: {said}",
    "{method}, beam {size}, alpha {alpha}. Numbers: log-probability over the length penalty. It "
    "stopped: {stopped}.": (
        "{method}, 빔 {size}, 알파 {alpha}. 수: 길이 벌점으로 나눈 로그 확률. 멈춘 까닭: {stopped}."
    ),
    "{method}. Red: speaks for the word; blue: against it.": (
        "{method}. 빨강: 그 단어를 말하게 하고, 파랑: 말리는 쪽."
    ),
    "One head off at a time; with all of them log p is {all}.": (
        "헤드를 하나씩 껐다. 모두 켜면 로그 확률은 {all}."
    ),
    "* the translation becomes another:": "* 번역이 달라진다:",
    "* {kind}, layer {layer}, head {head}: {text}": "* {kind}, 층 {layer}, 헤드 {head}: {text}",
    "… and {count} more": "… 그리고 {count}개 더",
    "Bold: the word that was said. (n): the rank that the layer gave to it.": (
        "굵은 글씨: 실제로 한 말. (n): 그 말에 이 층이 매긴 순위."
    ),
}

_LABELS = {
    "sine and cosine interleaved (the paper)": "사인과 코사인을 번갈아 (논문)",
    "sines, then cosines (tensor2tensor)": "사인 먼저, 코사인 나중 (tensor2tensor)",
    "learned": "학습된 위치",
    " ← this model": " ← 이 모델",
    "position": "위치",
    "dimension": "차원",
    "{size} dimensions": "{size}차원",
    "embedding × √{size}": "임베딩 × √{size}",
    "input of the encoder": "인코더의 입력",
    "encoder self-attention": "인코더 셀프 어텐션",
    "decoder self-attention": "디코더 셀프 어텐션",
    "cross-attention": "교차 어텐션",
    "1. scores  q · k / √{size}": "1. 점수  q · k / √{size}",
    "1. scores  q · k": "1. 점수  q · k",
    "2. softmax: they sum to 1": "2. 소프트맥스: 합이 1",
    "3. values times weights, and their sum": "3. 값에 가중치를 곱해 더한다",
    "scores  Q Kᵀ / √{size}": "점수  Q Kᵀ / √{size}",
    "scores  Q Kᵀ": "점수  Q Kᵀ",
    "softmax of each row": "행마다 소프트맥스",
    "a word of the source …": "원문의 단어가 …",
    "the step that says …": "이 말을 하는 걸음이 …",
    "… attends to the source": "… 원문에서 보는 곳",
    "… attends to what was said": "… 이미 한 말에서 보는 곳",
    "encoder self-attention: hides padding": "인코더 셀프 어텐션: 패딩을 가린다",
    "decoder self-attention: hides the future and padding": (
        "디코더 셀프 어텐션: 앞으로 올 말과 패딩을 가린다"
    ),
    "cross-attention: hides the source's padding": "교차 어텐션: 원문의 패딩을 가린다",
    "head {head}": "헤드 {head}",
    "layer {layer}": "층 {layer}",
    "what each head adds, in its part of W_O": "W_O의 자기 몫으로 각 헤드가 보태는 것",
    "size {size}": "크기 {size}",
    "their sum (with the bias): what goes on": "(편향까지 더한) 합: 다음으로 넘어가는 것",
    "their sum: what goes on": "합: 다음으로 넘어가는 것",
    "sum": "합",
    "mean {mean}   standard deviation {deviation}": "평균 {mean}   표준편차 {deviation}",
    "encoder": "인코더",
    "decoder": "디코더",
    "with residual paths": "잔차 연결이 있을 때",
    "the same weights without them": "같은 가중치, 잔차 연결 없이",
    "this model, which has no residual paths": "이 모델: 잔차 연결이 없다",
    "input": "입력",
    "gradient, relative to the last layer's": "마지막 층에 견준 기울기",
    "source ids": "원문 번호",
    "target ids so far": "지금까지 한 말의 번호",
    "+ position": "+ 위치",
    "self-attention": "셀프 어텐션",
    "masked self-attention": "가려진 셀프 어텐션",
    "add and norm": "더하기와 정규화",
    "add": "더하기",
    "norm": "정규화",
    "feed-forward": "피드포워드",
    "linear": "선형 변환",
    "softmax": "소프트맥스",
    "memory ({src}, {size}): keys and values": "메모리 ({src}, {size}): 키와 값",
    "all {count} logits, highest first": "로짓 {count}개 모두, 높은 것부터",
    "rank": "순위",
    "the highest logits": "가장 높은 로짓",
    "softmax: probabilities": "소프트맥스: 확률",
    "the winner": "뽑힌 번역",
    "kept": "남음",
    "finished": "끝남",
    "pruned": "잘림",
    "beam search": "빔 탐색",
    "greedy search": "탐욕 탐색",
    "sampling": "표집",
    "nothing alive can become better than what is finished": (
        "남은 것은 끝난 것보다 나아질 수 없다"
    ),
    "the limit of its length": "길이의 한계",
    "nothing may follow": "이어질 수 있는 말이 없다",
    "nats": "내트",
    "a target word …": "번역의 단어는 …",
    "… hangs on source words": "… 원문의 이 단어들에 달렸다",
    "integrated gradients, {count} steps": "적분 기울기, {count}걸음",
    "gradient times input": "기울기 × 입력",
    "change of log p (nats)": "로그 확률의 변화 (내트)",
    "what was said": "실제로 한 말",
    "probability": "확률",
}

_ABOUT = {
    "the vectors of the positions: sine and cosine interleaved (paper), and in halves": (
        "위치 벡터: 사인과 코사인을 번갈아 (논문), 그리고 반씩 나누어"
    ),
    "positions in 4 dimensions: two sines, two cosines, and their values at each word": (
        "4차원 위치: 사인 둘, 코사인 둘, 그리고 단어마다의 값"
    ),
    "embedding + position = input, for every word of the source": (
        "임베딩 + 위치 = 입력, 원문의 모든 단어"
    ),
    "how one word becomes its query, key and value: x times W_Q, W_K, W_V of one head": (
        "한 단어가 쿼리, 키, 값이 되는 길: 한 헤드의 W_Q, W_K, W_V를 x에 곱한다"
    ),
    "one word's attention in three steps: scores, softmax, weighted sum of the values": (
        "한 단어의 어텐션 세 단계: 점수, 소프트맥스, 값의 가중합"
    ),
    "the matrix of scores of one head, and its softmax": "한 헤드의 점수 행렬과 그 소프트맥스",
    "the three masks: padding, look-ahead, padding of the source; in a padded batch": (
        "세 마스크: 패딩, 앞보기, 원문의 패딩; 패딩이 있는 배치에서"
    ),
    "where one head looks from one word, as lines": "한 헤드가 한 단어에서 보는 곳, 선으로",
    "two heads of a layer in two colours: they look from one word to different places": (
        "한 층의 두 헤드를 두 빛깔로: 한 단어에서 서로 다른 곳을 본다"
    ),
    "every head of every layer at once": "모든 층의 모든 헤드를 한눈에",
    "the heads of one word side by side, times W_O": "한 단어의 헤드를 이어 붙여 W_O를 곱한다",
    "add and norm on one vector: LayerNorm(x + Sublayer(x))": (
        "벡터 하나의 더하기와 정규화: LayerNorm(x + Sublayer(x))"
    ),
    "how much of the gradient reaches each layer, with residual paths and without": (
        "각 층에 닿는 기울기: 잔차 연결이 있을 때와 없을 때"
    ),
    "the whole stack with the shape at every stage": "전체 구조와 단계마다의 모양",
    "the decoder's steps: what it had said, where it looked, what it said next": (
        "디코더의 걸음: 한 말, 본 곳, 다음에 한 말"
    ),
    "one step from logits over softmax to the word that was said": (
        "한 걸음: 로짓에서 소프트맥스를 거쳐 단어까지"
    ),
    "the beam's tree: candidates with their scores, pruned branches, the winner": (
        "빔의 나무: 후보와 점수, 잘린 가지, 뽑힌 번역"
    ),
    "which source words each target word hangs on": "번역의 단어마다 어떤 원문 단어에 달렸나",
    "what each head's absence does to the log-probability of the translation": (
        "헤드를 하나 끄면 번역의 로그 확률이 어떻게 되나"
    ),
    "what each decoder layer would have said, as a table": "디코더의 각 층이 말했을 단어, 표로",
}

KOREAN: dict[str, str] = {**_TITLES, **_CAPTIONS, **_LABELS, **_ABOUT}
