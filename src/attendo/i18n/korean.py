"""What a learner may be told on the way from the quickstart through the lessons, in Korean.

The English sentences stand where they are said; a test holds each pattern here against the source.
A place {like_this} holds what the user gave, or a name; {said...} is a sentence of this table too.
What only builders meet (corpora, recipes, exports) stays English.
"""

from __future__ import annotations

_COMMON = {
    "{name}: {said}": "{name}: {said}",
    "did you mean '{near}'? {said}": "혹시 '{near}'인가요? {said}",
    "Known: {known}": "쓸 수 있는 것: {known}",
    "{said_subject}: {said_count} cannot be used": "{said_subject}: {said_count}를 쓸 수 없습니다",
    "1 setting": "값 1개",
    "{count} settings": "값 {count}개",
    "unknown key '{key}': {said}": "모르는 이름 '{key}': {said}",
    "{library} is not installed": "{library} 라이브러리가 설치되어 있지 않습니다",
    "pip install 'attendo[{extra}]' brings it": (
        "pip install 'attendo[{extra}]' 명령으로 설치하세요"
    ),
    "no language '{lang}'": "'{lang}'라는 언어로는 말할 수 없습니다",
    "'{pair}' is no key=value": "'{pair}': 이름=값 꼴이 아닙니다",
    "write a key, =, and a value": "이름, =, 값을 차례로 쓰세요",
    "{what} cannot be used: {said}": "{what}: 쓸 수 없습니다. {said}",
    "check the place, its permissions and its room": (
        "위치가 맞는지, 권한과 남은 용량이 있는지 확인하세요"
    ),
    "the output": "출력",
    "{path} could not be written: {said}": "{path}: 쓰지 못했습니다. {said}",
    "choose another place, or make room": "다른 곳을 고르거나 디스크 공간을 비우세요",
    "{path} is a folder": "{path}: 폴더입니다",
    "no folder {path}": "{path}: 그런 폴더가 없습니다",
    "{path} exists": "{path}: 이미 있습니다",
}

_SYSTEM = {
    "Address already in use": "이미 다른 프로그램이 쓰고 있습니다",
    "Cannot assign requested address": "이 컴퓨터의 주소가 아닙니다",
    "File exists": "이미 있습니다",
    "File name too long": "이름이 너무 깁니다",
    "Is a directory": "폴더입니다",
    "No such file or directory": "그런 파일이나 폴더가 없습니다",
    "No space left on device": "디스크에 남은 공간이 없습니다",
    "Not a directory": "폴더가 아닙니다",
    "Permission denied": "권한이 없습니다",
    "Read-only file system": "읽기만 할 수 있는 디스크입니다",
}
"""The words of the operating system."""

_VALIDATION = {
    "{name} = {value}: {said}": "{name} = {value}: {said}",
    "Field required": "꼭 있어야 합니다",
    "Input should be a valid integer": "정수여야 합니다",
    "Input should be a valid number": "수여야 합니다",
    "Input should be a valid string": "글이어야 합니다",
    "Input should be a valid boolean": "true나 false여야 합니다",
    "Input should be '{choices}'": "다음 가운데 하나여야 합니다: '{choices}'",
    "Input should be greater than {low}": "{low}보다 커야 합니다",
    "Input should be greater than or equal to {low}": "{low} 이상이어야 합니다",
    "Input should be less than {high}": "{high}보다 작아야 합니다",
    "Input should be less than or equal to {high}": "{high} 이하여야 합니다",
    "Input should be a valid integer, unable to parse string as an integer": "정수여야 합니다",
    "Input should be a valid number, unable to parse string as a number": "수여야 합니다",
    "Input should be a valid list": "목록이어야 합니다",
    "String should have at most {most} characters": "최대 {most}자입니다",
    "String should have at least {least} character": "적어도 {least}자여야 합니다",
    "String should have at least {least} characters": "적어도 {least}자여야 합니다",
}
"""The words of pydantic, of values that a person types."""

_HTTP = {
    "Not Found": "그런 주소가 없습니다",
    "Method Not Allowed": "이 주소에서는 쓸 수 없는 방식입니다",
}
"""The words of HTTP."""

_TRAINING = {
    "checking the files": "파일을 확인하는 중",
    "cleaning": "말뭉치를 정리하는 중",
    "splitting dev off": "개발 집합(dev)을 떼어 두는 중",
    "learning the tokenizer": "토크나이저를 학습하는 중",
    "tokenising": "토큰으로 바꾸는 중",
    "averaging, scoring dev": "체크포인트를 평균하고 개발 집합으로 점수를 매기는 중",
    "training": "학습",
    "left": "남은 시간",
    "loss": "손실",
    "tok/s": "초당 토큰",
    "rate": "학습률",
    "data: {num_train} pairs to train on, {num_dev} for dev": (
        "데이터: 학습에 {num_train}쌍, 개발 집합(dev)에 {num_dev}쌍"
    ),
    "data: {num_train} texts to train on, {num_dev} for dev": (
        "데이터: 학습에 글 {num_train}편, 개발 집합(dev)에 {num_dev}편"
    ),
    "data: {num_train} windows to train on, {num_dev} for dev": (
        "데이터: 학습에 구간 {num_train}개, 개발 집합(dev)에 {num_dev}개"
    ),
    "window: {count} steps of {names}": "읽는 구간: {names}의 {count}시점",
    "horizon: {count} steps of {names}": "예측 구간: {names}의 {count}시점",
    "batches: {count} an epoch, {size} windows each": (
        "배치: 한 에포크에 {count}개, 하나에 구간 {size}개"
    ),
    "read": "읽음",
    "kept": "남김",
    "moved to dev": "개발 집합으로 옮김",
    "too many tokens": "토큰이 너무 많음",
    "empty side": "한쪽이 비어 있음",
    "too long": "너무 김",
    "length ratio": "두 쪽의 길이가 너무 다름",
    "untranslated copy": "번역되지 않고 그대로임",
    "duplicate": "되풀이됨",
    "shares a side with dev": "개발 집합과 한쪽이 같음",
    "vocabulary: {count} shared ({kind})": "어휘: 두 언어가 함께 쓰는 {count}개 ({kind})",
    "vocabulary: {src} and {tgt} ({kind})": "어휘: 원문 {src}개, 번역문 {tgt}개 ({kind})",
    "batches: {count} an epoch, at most {most} tokens a side, padding {share}": (
        "배치: 한 에포크에 {count}개, 한쪽에 최대 {most}토큰, 패딩 {share}"
    ),
    "model: {name}, {count} parameters": "모델: {name}, 매개변수 {count}개",
    "going on from step {step}": "{step}단계부터 이어서 합니다",
    "step {step}: dev {said}": "{step}단계, 개발 집합: {said}",
    "loss {value}": "손실 {value}",
    "perplexity {value}": "퍼플렉서티 {value}",
    "accuracy {value}": "정확도 {value}",
    "bleu {value}": "BLEU {value}",
    "out of memory: batches are cut into {count} pieces from here on": (
        "메모리가 모자랍니다. 이제부터 배치를 {count}조각으로 나눕니다"
    ),
    "stopping after this step; once more to stop at once": (
        "이번 단계를 마치고 멈춥니다. 한 번 더 누르면 바로 멈춥니다"
    ),
    "stopped at step {step}; everything is saved": "{step}단계에서 멈췄고 모두 저장했습니다",
    "run the same command again (without --force) to go on from there": (
        "같은 명령을 --force 없이 다시 실행하면 거기서부터 이어집니다"
    ),
    "no direction '{direction}'": "'{direction}'라는 번역 방향은 없습니다",
    "{folder} holds another run:": "{folder}: 다른 학습이 들어 있습니다",
    "{key}: {theirs} there, {ours} here": "{key}: 거기서는 {theirs}, 여기서는 {ours}",
    "choose another --out, or --force to delete that run and start anew": (
        "--out으로 다른 폴더를 고르거나, --force로 그 학습을 지우고 새로 시작하세요"
    ),
    "{folder} is not empty and holds no run": "{folder}: 비어 있지 않은데 학습 폴더도 아닙니다",
    "choose another --out: nothing in it was touched": (
        "--out으로 다른 폴더를 고르세요. 그 안의 것은 건드리지 않았습니다"
    ),
    "another process works in {folder}": "{folder}: 다른 프로세스가 쓰고 있습니다",
    "wait until it is done, or end it": "끝나기를 기다리거나 그 프로세스를 끝내세요",
    "the corpora have changed since the run in {folder} began": (
        "{folder}: 학습을 시작한 뒤에 말뭉치가 바뀌었습니다"
    ),
    "put them back, choose another --out, or --force to start anew": (
        "말뭉치를 되돌리거나, --out으로 다른 폴더를 고르거나, --force로 새로 시작하세요"
    ),
    "training needs at least {needed} GB on the disk of {folder}, {free} GB are free": (
        "{folder}: 학습하려면 디스크에 적어도 {needed} GB가 있어야 하는데 {free} GB 남았습니다"
    ),
    "make room, or choose --out on another disk": (
        "디스크 공간을 비우거나, --out으로 다른 디스크를 고르세요"
    ),
    "make room, then run the same command: it goes on from its last checkpoint": (
        "디스크 공간을 비우고 같은 명령을 실행하면 마지막 체크포인트부터 이어집니다"
    ),
    "checkpoint {name} could not be written: {said}": "체크포인트 {name}: 쓰지 못했습니다. {said}",
    "make room, then run the same command: it goes on from step {step}": (
        "디스크 공간을 비우고 같은 명령을 실행하면 {step}단계부터 이어집니다"
    ),
    "make room, then run the same command again": (
        "디스크 공간을 비우고 같은 명령을 다시 실행하세요"
    ),
    "warning: {said}; it is now {name} and not used": (
        "주의: {said}. 이름을 {name}(으)로 바꾸고 쓰지 않습니다"
    ),
    "{path} is damaged: it does not match its checksums": (
        "{path}: 체크섬이 맞지 않습니다. 손상되었습니다"
    ),
    "out of memory at step {step} with {count} pieces a batch": (
        "{step}단계에서 배치를 {count}조각으로 나누었는데도 메모리가 모자랍니다"
    ),
    "set train.accumulation_steps higher or train.batch_tokens lower": (
        "train.accumulate를 높이거나 train.batch_tokens를 낮추세요"
    ),
}

_MODELS = {
    "{path} is no model folder: it has no {index}": (
        "{path}: 모델 폴더가 아닙니다. {index} 파일이 없습니다"
    ),
    "give a folder that attendo train wrote (OUT/model), or OUT itself": (
        "attendo quickstart나 attendo train이 만든 폴더를 알려 주세요"
    ),
    "{path} is damaged": "{path}: 손상되었습니다",
    "{path} has format {version}; attendo {own} knows {known}": (
        "{path}: 형식 번호가 {version}인데, 이 Attendo({own})는 {known}까지만 압니다"
    ),
    "update Attendo": "Attendo를 새 버전으로 바꾸세요",
    "{path} holds a model of the kind '{kind}'": "{path}: '{kind}' 종류의 모델이 들어 있습니다",
    "update Attendo, or: {said}": "Attendo를 새 버전으로 바꾸세요. {said}",
    "{path} cannot be read: {said}": "{path}: 읽을 수 없습니다. {said}",
    "copy the model folder again": "모델 폴더를 다시 복사하세요",
    "copy the folder again": "폴더를 다시 복사하세요",
    "{path} does not fit its config: {told}": "{path}: 설정과 맞지 않습니다({told})",
    "{path}: the tokenizer has {src} and {tgt} pieces, the model {own_src} and {own_tgt}": (
        "{path}: 토크나이저의 조각은 {src}개와 {tgt}개인데 모델은 {own_src}개와 {own_tgt}개입니다"
    ),
    "no tokenizer in {path}: {said}": "{path}: 토크나이저를 쓸 수 없습니다. {said}",
    "{path} is missing": "{path} 파일이 없습니다",
    "copy the whole folder again, or train the tokenizer again": (
        "폴더 전체를 다시 복사하거나 토크나이저를 다시 학습하세요"
    ),
    "no device '{device}' here": "'{device}' 장치가 이 컴퓨터에 없습니다",
    "take cpu, or leave it out; attendo doctor --tensors tells of GPUs": (
        "cpu를 쓰거나 빼 두세요. GPU는 attendo doctor --tensors로 알아볼 수 있습니다"
    ),
    "the model gives NaN in place of probabilities": "모델이 확률 대신 NaN을 냅니다",
    "its training has diverged, or its weights are damaged: use an earlier checkpoint, or float32 "
    "where it runs in half precision": (
        "학습이 발산했거나 가중치가 손상되었습니다. 앞선 체크포인트를 쓰거나, 반정밀도라면 "
        "float32로 돌리세요"
    ),
}

_INSPECTION = {
    "name a file in a folder that exists with -o": "-o로 이미 있는 폴더 안의 파일 이름을 주세요",
    "choose another -o, or --force to replace it": "-o로 다른 이름을 주거나, --force로 바꿔 쓰세요",
    "{said_name} is empty": "{said_name}: 비어 있습니다",
    "text": "문장",
    "tgt": "번역문",
    "give a sentence": "문장을 주세요",
    "leave it out to translate": "번역하게 하려면 빼 두세요",
    "the page is not built": "화면이 아직 빌드되지 않았습니다",
    "run make web in the checkout, once": "저장소에서 make web을 한 번 실행하세요",
    "the built page has no place for a record": "빌드된 화면에 기록을 넣을 자리가 없습니다",
    "run make web again": "make web을 다시 실행하세요",
    "{said_wanted} needs a Transformer, and this is {said_model}": (
        "{said_wanted}: 트랜스포머에서만 볼 수 있는데, 이것은 {said_model}입니다"
    ),
    "attribution": "기여도(attribution)",
    "head ablation": "헤드 끄기(ablation)",
    "this picture": "이 그림",
    "a model of kind '{kind}'": "'{kind}' 종류의 모델",
    "an ensemble of {count}": "모델 {count}개의 앙상블",
    "no precision '{name}' of our own engine": "기본 엔진에는 '{name}' 정밀도가 없습니다",
    "our own has float32 and bfloat16; the engine ctranslate2 has int8 and float32": (
        "기본 엔진에서는 float32나 bfloat16을, ctranslate2 엔진에서는 int8이나 float32를 쓰세요"
    ),
    "train or load a model of kind 'transformer'": "'transformer' 종류의 모델을 쓰세요",
    "{said_wanted} belongs to one model, and this is {said_model}": (
        "{said_wanted}: 모델 하나에서만 볼 수 있는데, 이것은 {said_model}입니다"
    ),
    "load one of its model folders alone": "그 가운데 한 모델의 폴더만 불러오세요",
    "source: cut to a window of {window} tokens of {count}": (
        "원문: 토큰 {count}개 가운데 앞의 {window}개만 봅니다"
    ),
    "target: cut to a window of {window} tokens of {count}": (
        "번역문: 토큰 {count}개 가운데 앞의 {window}개만 봅니다"
    ),
    "source: {count} tokens, longer than any in training ({most})": (
        "원문: 토큰 {count}개로, 학습 때의 가장 긴 문장({most}개)보다 깁니다"
    ),
    "source: {count} sentences at once; translate takes them one by one": (
        "원문: {count}문장을 한꺼번에 봅니다. attendo translate는 한 문장씩 번역합니다"
    ),
    "integrated gradients miss the difference by up to {share}%: take more than {count} steps": (
        "적분 기울기의 합이 실제 차이와 {share}%까지 다릅니다. {count}단계보다 촘촘히 나누어야 "
        "합니다"
    ),
    "no picture '{name}'": "'{name}'라는 그림은 없습니다",
}

_LESSONS = {
    "no lesson {number}": "{number}번 강의는 없습니다",
    "there are lessons {numbers}": "있는 강의: {numbers}",
    "lesson {number} has no question {question}": "{number}번 강의에 {question}번 문제는 없습니다",
    "it has questions 1 to {count}": "문제는 1번부터 {count}번까지 있습니다",
    "lesson": "강의",
    "unknown input '{name}': {said}": "모르는 입력 '{name}': {said}",
    "{name}: {value} is no number": "{name}: {value} 대신 수를 쓰세요",
    "{name}: {value} is no whole number": "{name}: {value} 대신 정수를 쓰세요",
    "{name}: {value} lies outside {low} to {high}": (
        "{name}: {value} 대신 {low}부터 {high}까지의 수를 쓰세요"
    ),
    "{name}: {rows} rows of {columns} numbers are needed": (
        "{name}: 수 {columns}개짜리 행 {rows}개가 필요합니다"
    ),
    "{name}: {value} is neither true nor false": "{name}: {value} 대신 true나 false를 쓰세요",
    "{name}: a text of 1 to {most} characters is needed": (
        "{name}: 1자부터 {most}자까지의 글이 필요합니다"
    ),
    "no model of your own yet": "아직 여러분의 모델이 없습니다",
    "run attendo quickstart (two minutes), or name a model folder with --model": (
        "attendo quickstart(2분)를 실행하거나 --model로 모델 폴더를 알려 주세요"
    ),
    "'{pair}' names no question": "'{pair}': 어느 문제인지 알 수 없습니다",
    "write --answer 1=42": "--answer 1=42처럼 쓰세요",
    "'{pair}' is no name=value": "'{pair}': 이름=값 꼴이 아닙니다",
    "write a name, =, and a value": "이름, =, 값을 차례로 쓰세요",
}

_SERVER = {
    "cannot listen on {host} port {port}: {said}": "{host}의 포트 {port}: 열 수 없습니다. {said}",
    "choose another --port (0 is any) or --host": (
        "--port로 다른 포트를 고르거나(0이면 비어 있는 아무 포트) --host를 바꾸세요"
    ),
    "--runs names a folder of runs": "--runs에는 학습들이 들어 있는 폴더를 주세요",
    "the processes did not start": "프로세스들이 시작되지 않았습니다",
    "try --workers 1, which says why": "--workers 1로 해 보면 까닭을 알 수 있습니다",
    "too many requests are waiting": "기다리는 요청이 너무 많습니다",
    "too many lessons are being computed": "지금 계산 중인 강의가 너무 많습니다",
    "too many watch training runs": "학습을 지켜보는 사람이 너무 많습니다",
    "try again in a moment": "잠시 뒤에 다시 해 주세요",
    "the server is about to end": "서버가 곧 꺼집니다",
    "not done within {seconds} seconds": "{seconds}초 안에 끝내지 못했습니다",
    "ask for less at once": "한 번에 더 적게 부탁해 주세요",
    "the request did not arrive in time": "요청이 제때 도착하지 않았습니다",
    "more than {count} bytes": "{count}바이트보다 큽니다",
    "too many requests": "요청이 너무 잦습니다",
    "Invalid API key": "API 키가 맞지 않습니다",
    "an API key is needed": "API 키가 필요합니다",
    "internal error": "서버 안에서 문제가 생겼습니다",
    "the request cannot be answered": "이 요청에는 답할 수 없습니다",
    "not found": "찾을 수 없습니다",
    "no such file, or its time is over": "그런 파일이 없거나 보관 기간이 지났습니다",
    "there is no such run; /v1/runs lists them": "그런 학습이 없습니다. /v1/runs에 목록이 있습니다",
    "no model '{name}'": "'{name}'라는 모델이 없습니다",
    "no model translates {src} to {tgt}": "{src} → {tgt} 번역을 하는 모델이 없습니다",
    "there are: {pairs}": "있는 것: {pairs}",
    "the model '{name}' translates {src} to {tgt}": (
        "'{name}' 모델이 하는 번역은 {src} → {tgt}입니다"
    ),
    "leave model out, or source and target": "model을 빼거나 source와 target을 빼세요",
    "{said_what}: {count}, and {most} at most": "{said_what} {count}, 최대 {most}",
    "texts": "글의 수",
    "characters": "글자 수",
    "{count} texts in one request": "한 요청에 글이 {count}개입니다",
    "a text of {count} characters": "글이 {count}자입니다",
    "a file of {count} bytes": "파일이 {count}바이트입니다",
    "send {most} at most": "최대 {most}까지 보낼 수 있습니다",
    "{count} alternatives": "다른 번역 {count}개",
    "ask for {most} at most": "최대 {most}까지 부탁할 수 있습니다",
    "no files with several workers": "프로세스가 여럿일 때는 파일을 받지 않습니다",
    "send the text to /translate": "글을 /translate로 보내세요",
    "no file": "파일이 없습니다",
    "send it as the field 'file' (multipart/form-data)": (
        "'file' 필드에 담아 보내세요(multipart/form-data)"
    ),
    "a file of another kind": "번역할 수 없는 종류의 파일입니다",
    "send one of: {suffixes}": "다음 가운데 하나를 보내세요: {suffixes}",
    "the file is no UTF-8 text": "UTF-8로 된 글 파일이 아닙니다",
    "convert it first": "먼저 UTF-8로 바꾸세요",
    "the form is no UTF-8": "양식이 UTF-8이 아닙니다",
    "send the texts in UTF-8": "글을 UTF-8로 보내세요",
    "more than {count} fields": "필드가 {count}개보다 많습니다",
    "send texts as a list in JSON": "글을 JSON 목록으로 보내세요",
    "the body is no JSON": "본문이 JSON이 아닙니다",
    "send an object in UTF-8": "UTF-8로 된 객체를 보내세요",
    "the body is no valid JSON: {cause}": "본문이 올바른 JSON이 아닙니다({cause})",
    "the body is missing: send JSON with Content-Type: application/json": (
        "본문이 없습니다. Content-Type: application/json으로 JSON을 보내세요"
    ),
    "the body is no JSON object: send one with Content-Type: application/json": (
        "본문이 JSON 객체가 아닙니다. Content-Type: application/json으로 보내세요"
    ),
    "/openapi.json tells what a request may hold": (
        "요청에 담을 수 있는 것은 /openapi.json에 있습니다"
    ),
    "the request": "요청",
    "unknown field '{name}': {said}": "모르는 필드 '{name}': {said}",
    "the text is empty": "글이 비어 있습니다",
    "ask for 1 to {most} words": "1개부터 {most}개까지 부탁할 수 있습니다",
    "pair {number}: {count} tokens, and {most} at most": (
        "{number}번 쌍: 토큰 {count}개, 최대 {most}개"
    ),
    "score it sentence by sentence": "한 문장씩 점수를 물어보세요",
    "the phrase {phrase} is empty": "{phrase}: 빈 표현입니다",
    "give a phrase with at least one visible character": "눈에 보이는 글자를 하나라도 넣어 주세요",
    "the model cannot write the phrase '{phrase}': {said}": (
        "모델이 '{phrase}'라는 표현을 쓸 수 없습니다. {said}"
    ),
    "its vocabulary lacks {letters}": "어휘에 없는 것: {letters}",
    "choose other words, or train with a vocabulary that has byte_fallback": (
        "다른 말을 고르거나, byte_fallback이 있는 어휘로 학습하세요"
    ),
    "'{phrase}' is asked for, and '{other}' is forbidden": (
        "'{phrase}' 표현을 넣어 달라고 하면서 '{other}' 표현을 막았습니다"
    ),
    "leave one of them out": "둘 가운데 하나를 빼세요",
    "sampling cannot keep to required or forbidden phrases": (
        "표집할 때는 넣거나 막을 표현을 지킬 수 없습니다"
    ),
    "leave sample out: beam search keeps to them": "sample을 빼세요. 빔 탐색은 표현을 지킵니다",
    "n_best {count} is more than beam_size {beam}": "n_best {count}: beam_size {beam}보다 큽니다",
    "temperature, top_k and top_p are of sampling: add do_sample=True": (
        "temperature, top_k, top_p는 표집할 때의 것입니다. do_sample=True를 더하세요"
    ),
    "the search found nothing that may be said": "탐색이 할 수 있는 말을 찾지 못했습니다",
    "ask for fewer phrases, or forbid fewer": "넣을 표현이나 막을 표현을 줄이세요",
}

_SERIES = {
    "no model here {said_does}": "여기에는 {said_does} 모델이 없습니다",
    "the model '{name}' {said_does}": "'{name}': {said_does} 모델입니다",
    "translates": "번역하는",
    "classifies": "분류하는",
    "goes on with a text": "글을 이어 쓰는",
    "forecasts a series": "시계열을 예측하는",
    "ask /v1/translate": "/v1/translate에 물어보세요",
    "ask /v1/generate": "/v1/generate에 물어보세요",
    "ask /v1/forecast": "/v1/forecast에 물어보세요",
    "{model} reads a series": "{model}: 시계열을 읽는 모델입니다",
    "give its file with --series FILE": "--series FILE로 파일을 주세요",
    "{model} reads text": "{model}: 글을 읽는 모델입니다",
    "give a sentence, without --series and --at": "--series와 --at 없이 문장을 주세요",
    "a text and a series are given": "글과 시계열을 함께 주었습니다",
    "give the one that the model reads": "모델이 읽는 쪽만 주세요",
    "no text to look at": "들여다볼 글이 없습니다",
    'give it behind the model: MODEL "a sentence"': '모델 뒤에 주세요: MODEL "문장"',
    "{options} is for models of text": "{options}: 글을 읽는 모델에만 쓸 수 있습니다",
    "leave it out for a series": "시계열일 때는 빼세요",
    "the series has no time {time}": "시계열에 {time} 시점이 없습니다",
    "it goes from {first} to {last}": "{first}부터 {last}까지입니다",
    "{count} rows before {at}, and the model reads {window}": (
        "{at} 앞에 행이 {count}개인데, 모델은 {window}개를 읽습니다"
    ),
    "choose a later time, or give a longer series": (
        "더 뒤의 시점을 고르거나 더 긴 시계열을 주세요"
    ),
    "rows": "행의 수",
    "send either rows or columns": "rows와 columns 가운데 하나만 보내세요",
    "{count} rows, and the model reads {window}": (
        "행이 {count}개인데, 모델은 {window}개를 읽습니다"
    ),
    "send more rows, null where a value is missing": (
        "행을 더 보내세요. 없는 값은 null로 적습니다"
    ),
    "{count} times for {rows} rows": "행은 {rows}개인데 시점은 {count}개입니다",
    "send the time of each row, or none at all": "행마다 시점을 보내거나, 시점을 모두 빼세요",
    "the last {window} rows hold no value at all": "마지막 {window}개 행에 값이 하나도 없습니다",
    "send some that do": "값이 있는 행을 보내세요",
    "rows.{row}: {count} values, and the model has {wanted} columns": (
        "rows.{row}: 값이 {count}개인데, 모델의 열은 {wanted}개입니다"
    ),
    "send them in this order: {names}": "이 순서로 보내세요: {names}",
    "no column '{name}'": "'{name}' 열이 없습니다",
    "unknown column '{name}': {said}": "모르는 열 '{name}': {said}",
    "the columns differ in length: {lengths}": "열의 길이가 서로 다릅니다: {lengths}",
    "send: {names}": "보낼 것: {names}",
    "{name}: {value} is too large": "{name}: {value} 값이 너무 큽니다",
    "send null where a value is missing": "없는 값은 null로 보내세요",
    "'{text}' is no time": "'{text}': 시점이 아닙니다",
    "times.{row}: {after} does not come after {before}": (
        "times.{row}: {after} 시점이 {before} 시점보다 뒤가 아닙니다"
    ),
    "send the rows in the order of time, none twice": "행을 시간 순서로, 겹치지 않게 보내세요",
    "times.{row}: {time} is no whole step of {step} later": (
        "times.{row}: {time} 시점이 앞 행에서 {step} 간격으로 떨어져 있지 않습니다"
    ),
    "bring the series to the spacing of the training data": (
        "시계열의 간격을 학습 자료와 같게 맞추세요"
    ),
    "times.{row}: rows are missing between {before} and {after}": (
        "times.{row}: {before} – {after} 사이에 빠진 행이 있습니다"
    ),
    "send a row for each step of {step}, null where a value is missing": (
        "{step}마다 한 행씩 보내세요. 없는 값은 null로 적습니다"
    ),
}

_SYNTHETIC = {
    "{asked} examples were asked for, and there are about {found} different ones": (
        "{asked}개를 부탁했는데 서로 다른 것은 {found}개쯤뿐입니다"
    ),
    "ask for fewer, or for longer numbers or both languages": (
        "더 적게 부탁하거나, 더 긴 수나 두 언어를 모두 고르세요"
    ),
    "no corpus '{what}' can be made": "'{what}'라는 말뭉치는 만들 수 없습니다",
    "choose another -o, or --force": "-o로 다른 이름을 주거나 --force를 붙이세요",
    "{count} dates in one call, and {most} at most": "날짜 {count}개, 한 번에 최대 {most}개",
    "ask for fewer of the {count} that there are": "모두 {count}개 가운데 더 적게 부탁하세요",
    "a number in digits has a spelling in each language": "숫자는 언어마다 다르게 읽습니다",
    "choose one with lang ko or lang en": "--lang ko나 --lang en으로 하나를 고르세요",
}

_LANGUAGE_MODELS = {
    "{path} is no language model: it was trained on pairs": (
        "{path}: 언어 모델이 아닙니다. 짝을 이룬 글로 학습했습니다"
    ),
    "use attendo translate with it": "attendo translate로 쓰세요",
    "{path} is a language model: it goes on with texts": "{path}: 글을 이어 쓰는 언어 모델입니다",
    "use attendo generate with it": "attendo generate로 쓰세요",
    "a beginning of {count} tokens, and the model has room for {room}": (
        "글머리가 토큰 {count}개인데 {room}개까지만 들어갑니다"
    ),
    "give a shorter one": "더 짧게 줄이세요",
    "a language model reads no source, and a text and a target are given": (
        "언어 모델은 원문을 읽지 않는데 글과 목표 글이 함께 주어졌습니다"
    ),
    "give the text alone": "글 하나만 주세요",
    "the model gives NaN in place of a forecast": "모델이 예측 대신 NaN을 냅니다",
}

KOREAN = {
    **_COMMON,
    **_SYSTEM,
    **_VALIDATION,
    **_HTTP,
    **_TRAINING,
    **_MODELS,
    **_INSPECTION,
    **_LESSONS,
    **_SERVER,
    **_SERIES,
    **_SYNTHETIC,
    **_LANGUAGE_MODELS,
}
