/** What the server says of the lessons: the twins of `attendo.lessons.blocks`, `inputs` and `lesson`. */

export interface LessonTitle {
  number: number;
  title: string;
  summary: string;
}

export interface SayBlock {
  kind: "say" | "note";
  words: string;
}

export interface FormulaBlock {
  kind: "formula";
  text: string;
}

export interface MatrixBlock {
  kind: "matrix";
  title: string;
  values: number[][];
  rows: string[] | null;
  columns: string[] | null;
  digits: number;
  shade: boolean;
}

export type Cell = string | number | boolean | null;

export interface TableBlock {
  kind: "table";
  title: string;
  headers: string[];
  rows: Cell[][];
  digits: number;
}

export interface Series {
  label: string;
  values: (number | null)[];
}

export interface ChartBlock {
  kind: "chart";
  form: "lines" | "bars";
  title: string;
  x: (string | number)[];
  series: Series[];
  x_label: string;
  y_label: string;
  log_x: boolean;
  log_y: boolean;
}

export interface Frame {
  title: string;
  blocks: Block[];
}

export interface FramesBlock {
  kind: "frames";
  title: string;
  frames: Frame[];
}

export interface DrawingBlock {
  kind: "drawing";
  name: string;
  caption: string;
  /** A picture as a data address; null where it could not be drawn. */
  image: string | null;
  missing: string | null;
}

export type Block = SayBlock | FormulaBlock | MatrixBlock | TableBlock | ChartBlock | FramesBlock | DrawingBlock;

interface Named {
  name: string;
  label: string;
}

export interface NumberInput extends Named {
  kind: "number";
  default: number;
  low: number;
  high: number;
  step: number;
}

export interface GridInput extends Named {
  kind: "grid";
  default: number[][];
  low: number;
  high: number;
}

export interface SwitchInput extends Named {
  kind: "switch";
  default: boolean;
}

export type Option = [key: string, label: string];

export interface ChoiceInput extends Named {
  kind: "choice";
  default: string;
  choices: Option[];
}

export interface TextInput extends Named {
  kind: "text";
  default: string;
  most: number;
}

export type Input = NumberInput | GridInput | SwitchInput | ChoiceInput | TextInput;
export type Value = number | number[][] | boolean | string;

export interface QuestionText {
  prompt: string;
  /** Empty where a number is asked for. */
  choices: Option[];
}

export interface CodePlace {
  file: string;
  line: number;
}

export interface Lesson extends LessonTitle {
  paper: string;
  code: CodePlace[];
  inputs: Input[];
  blocks: Block[];
  questions: QuestionText[];
}

export interface Checked {
  is_right: boolean;
  why: string | null;
}

export interface OwnPart {
  model: string;
  blocks: Block[];
}
