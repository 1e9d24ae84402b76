/** The texts of the page, in English and Korean. */

import { fill, type Lang, type Parameters } from "../i18n";

const en = {
  title: "Translate in your browser",
  private: "The model runs on this device. Nothing that you type leaves it.",
  model: "Model",
  source: "Text to translate ({language})",
  target: "Translation ({language})",
  placeholder: "Type or paste a text",
  loading: "Loading the model: {done} of {all} MB",
  starting: "Starting the model …",
  translating: "Translating sentence {done} of {all} …",
  ready: "Ready, {time} s after the page was opened ({runtime})",
  speed: "{count} sentences in {time} s",
  oneSentence: "1 sentence in {time} s",
  beam: "Beam size",
  beamHelp: "1 is greedy search: the fastest",
  temperature: "Temperature",
  temperatureHelp: "0 searches for the best translation; above 0 every token is sampled",
  sampleAgain: "Sample again",
  heads: "Switch heads off",
  headsOff: "Switch heads off ({count} off)",
  headsHelp: "The text is translated without the heads that are switched off.",
  allHeadsOn: "Switch all heads on",
  layer: "layer {number}",
  ablating: "Without head {done} of {all} …",
  copy: "Copy",
  copied: "Copied",
  inspect: "Look inside",
  inspectHelp: "Choose a sentence to see every attention head, every step and the beam.",
  machine: "The whole machine at work",
  machineHelp: "Every part with its numbers for this sentence: {sentence}",
  machineFailed: "The drawing could not be loaded: {reason}",
  retry: "Try again",
  unknown: "Not in the vocabulary of this model: {words}. Their translation is missing or wrong.",
  tooLong: "Only the first {count} characters are translated.",
  unsupported: "This browser cannot run the model: it has no WebAssembly with SIMD. Use a current Firefox, Chrome, Edge or Safari (16.4 or later).",
  failed: "The model could not be loaded: {reason}",
  failedHint: "Opened from the disk? A folder needs a web server, e.g. `python -m http.server` in it; a page that opens from the disk is written by `-o page.html`.",
  failedTranslation: "This text could not be translated: {reason}",
  about: "About this model",
  "about.parameters": "Parameters",
  "about.layers": "Layers (encoder + decoder)",
  "about.heads": "Attention heads",
  "about.vocabulary": "Vocabulary",
  "about.precision": "Precision of the weights",
  "about.pairs": "Sentence pairs it was trained on",
  "about.bleu": "BLEU on its dev set",
  "about.runtime": "Computed by",
  webgpuFailed: "WebAssembly, since WebGPU failed: {reason}",
  made: "Made with Attendo {version}",
};

const ko: Record<keyof typeof en, string> = {
  title: "브라우저 안에서 번역하기",
  private: "모델이 이 기기에서 실행됩니다. 입력한 글은 밖으로 나가지 않습니다.",
  model: "모델",
  source: "번역할 글({language})",
  target: "번역({language})",
  placeholder: "글을 입력하거나 붙여 넣으세요",
  loading: "모델을 내려받는 중: {all}MB 중 {done}MB",
  starting: "모델을 준비하는 중 …",
  translating: "문장 {all}개 중 {done}번째를 번역하는 중 …",
  ready: "준비되었습니다(페이지를 연 지 {time}초, {runtime})",
  speed: "문장 {count}개, {time}초",
  oneSentence: "문장 1개, {time}초",
  beam: "빔 크기",
  beamHelp: "1은 탐욕 탐색으로 가장 빠릅니다",
  temperature: "온도",
  temperatureHelp: "0이면 가장 좋은 번역을 탐색하고, 0보다 크면 토큰을 하나씩 샘플링합니다",
  sampleAgain: "다시 추출",
  heads: "헤드 끄기",
  headsOff: "헤드 끄기({count}개 꺼짐)",
  headsHelp: "끈 헤드 없이 번역합니다.",
  allHeadsOn: "헤드 모두 켜기",
  layer: "{number}층",
  ablating: "헤드 {all}개 중 {done}번째를 끄고 번역하는 중 …",
  copy: "복사",
  copied: "복사했습니다",
  inspect: "안을 들여다보기",
  inspectHelp: "문장을 고르면 모든 어텐션 헤드와 단계, 빔을 볼 수 있습니다.",
  machine: "움직이는 전체 구조",
  machineHelp: "이 문장에 대한 각 부분의 수를 봅니다: {sentence}",
  machineFailed: "그림을 불러오지 못했습니다: {reason}",
  retry: "다시 시도",
  unknown: "이 모델의 어휘에 없는 말: {words}. 번역이 빠졌거나 틀렸습니다.",
  tooLong: "앞의 {count}자만 번역합니다.",
  unsupported: "이 브라우저에는 SIMD를 쓰는 WebAssembly가 없어 모델을 실행할 수 없습니다. 최신 Firefox, Chrome, Edge나 Safari(16.4 이상)를 쓰세요.",
  failed: "모델을 불러오지 못했습니다: {reason}",
  failedHint: "디스크에서 바로 여셨나요? 폴더로 내보낸 페이지에는 웹 서버가 필요합니다. 예: 그 폴더에서 `python -m http.server`. 디스크에서 바로 열리는 페이지는 `-o page.html`로 만듭니다.",
  failedTranslation: "이 글을 번역하지 못했습니다: {reason}",
  about: "모델 정보",
  "about.parameters": "매개변수",
  "about.layers": "층(인코더 + 디코더)",
  "about.heads": "어텐션 헤드",
  "about.vocabulary": "어휘",
  "about.precision": "가중치 정밀도",
  "about.pairs": "학습한 문장 쌍",
  "about.bleu": "개발 집합의 BLEU",
  "about.runtime": "계산 방식",
  webgpuFailed: "WebAssembly(WebGPU 실행 실패: {reason})",
  made: "Attendo {version}(으)로 만들었습니다",
};

/** What may be shown of a model, in this order. */
export const ABOUT_KEYS = ["parameters", "layers", "heads", "vocabulary", "precision", "pairs", "bleu"] as const;

export type SiteKey = keyof typeof en;
export const SITE_TEXTS: Record<Lang, Record<SiteKey, string>> = { en, ko };

export function siteText(lang: Lang, key: SiteKey, parameters: Parameters = {}): string {
  return fill(SITE_TEXTS[lang][key], parameters);
}

/** The name of a language in the user's language; the code if it has none. */
export function languageName(lang: Lang, code: string | null): string {
  if (!code) return "?";
  try {
    return new Intl.DisplayNames([lang], { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}
