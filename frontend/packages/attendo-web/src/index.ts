/** Translate with a model of Attendo in a browser or in Node.js, by ONNX Runtime. */

export { ablateAllHeads, type Ablation } from "./inspect/ablate";
export { capture } from "./inspect/capture";
export type { GraphInfo, OnnxRuntime, OnnxSession, OnnxTensor, Values } from "./model/session";
export { type Head, Seq2SeqSession } from "./model/session";
export { createRuntime, type RuntimeOptions } from "./runtime/runtime";
export type { Candidate, Hypothesis, SearchOptions, SearchResult, Trace } from "./search/options";
export { normalize } from "./text/normalize";
export { joinTranslations, splitIntoSegments, splitSentences, type SegmentedText } from "./text/sentences";
export { TextTokenizer, type TokenizerInfo } from "./text/tokenizer";
export { SentencePiece } from "./tokenizer/sentencepiece";
export { Translator, type ModelInfo, type ReadFile, type Translation } from "./translator";
