/** Reads the formulas of the lessons, which are plain Unicode (`softmax(Q · Kᵀ / √d_k)`), as a tree of MathML elements. */

export interface MathNode {
  tag: "mi" | "mn" | "mo" | "mrow" | "mfrac" | "msqrt" | "msub" | "msup" | "msubsup" | "munder";
  text?: string;
  children?: MathNode[];
}

const SUBSCRIPTS = new Map([..."₀₁₂₃₄₅₆₇₈₉ᵢⱼₖₕₙₘₜ₊₋"].map((character, index) => [character, [..."0123456789ijkhnmt+−"][index]]));
const SUPERSCRIPTS = new Map([..."⁰¹²³⁴⁵⁶⁷⁸⁹ᵀⁿ⁻"].map((character, index) => [character, [..."0123456789Tn−"][index]]));
const BRACKETS: Record<string, string> = { "(": ")", "[": "]", "{": "}" };
const NAME = /^[\p{L}∂∞]+(?:-\p{L}+)*/u;
const NUMBER = /^\d+(?:,\d{3})*(?:\.\d+)?/;
/** A word after which an argument follows without brackets. */
const FUNCTIONS = ["log", "exp", "min", "max"];
/** They end a product, and so the numerator of a fraction. */
const WEAK = ["+", "−", "-", "=", "≈", ":", ",", "‖", "<", ">", "≤", "≥"];

const row = (children: MathNode[]): MathNode => (children.length === 1 ? children[0] : { tag: "mrow", children });
const leaf = (tag: "mi" | "mn" | "mo", text: string): MathNode => ({ tag, text });

/** Parse a formula; what is not known becomes an operator. */
export function parseFormula(text: string): MathNode {
  return new FormulaParser(text).parse();
}

class FormulaParser {
  #rest: string;

  constructor(text: string) {
    this.#rest = text;
  }

  parse(): MathNode {
    const children: MathNode[] = [];
    while (this.#rest.trim()) {
      children.push(...this.#sum(""));
      if (this.#rest.trim()) children.push(leaf("mo", this.#take(1)));
    }
    return row(children);
  }

  /** Terms and operators up to a closing bracket. */
  #sum(end: string): MathNode[] {
    const found: MathNode[] = [];
    /** Where the product that is being read begins. */
    let start = 0;
    for (;;) {
      this.#skipSpaces();
      const next = this.#rest[0];
      if (next === undefined || next === end || Object.values(BRACKETS).includes(next)) return found;
      if (next === "/") {
        this.#take(1);
        const numerator = found.splice(start);
        found.push({ tag: "mfrac", children: [unwrap(row(numerator)), unwrap(this.#factor())] });
      } else if (WEAK.includes(next)) {
        found.push(leaf("mo", this.#take(1).replace("-", "−")));
        start = found.length;
      } else if (next === "·" || next === "×") {
        found.push(leaf("mo", this.#take(1)));
      } else {
        found.push(this.#factor());
      }
    }
  }

  /** An atom with its indices: also a function with its argument, a root, a sum with what it adds up. */
  #factor(): MathNode {
    this.#skipSpaces();
    if (this.#rest.startsWith("√")) {
      this.#take(1);
      return this.#withScripts({ tag: "msqrt", children: [unwrap(this.#factor())] });
    }
    if (this.#rest.startsWith("∑")) return this.#series();
    const name = NAME.exec(this.#rest)?.[0];
    const atom = this.#withScripts(this.#atom());
    if (name === undefined) return atom;
    const isFunction = name.length > 1 || name === "f";
    if (isFunction && this.#rest.startsWith("(")) return this.#withScripts(row([atom, this.#atom()]));
    return FUNCTIONS.includes(name) ? row([atom, this.#factor()]) : atom;
  }

  #series(): MathNode {
    const sign = leaf("mo", this.#take(1));
    const { below } = this.#scripts();
    return row([below ? { tag: "munder", children: [sign, below] } : sign, this.#factor()]);
  }

  #atom(): MathNode {
    const name = NAME.exec(this.#rest)?.[0];
    if (name) return leaf("mi", this.#take(this.#nameLength(name)));
    const number = NUMBER.exec(this.#rest)?.[0];
    if (number) return leaf("mn", this.#take(number.length));
    const open = this.#rest[0];
    if (open === "|") return this.#between("|", "|");
    return open in BRACKETS ? this.#between(open, BRACKETS[open]) : leaf("mo", this.#take(1).replace("-", "−"));
  }

  /** A superscript letter belongs to the name before it, not into it. */
  #nameLength(name: string): number {
    const characters = [...name];
    const scripted = characters.findIndex((character, index) => index > 0 && (SUBSCRIPTS.has(character) || SUPERSCRIPTS.has(character)));
    return (scripted < 0 ? characters : characters.slice(0, scripted)).join("").length;
  }

  #between(open: string, close: string): MathNode {
    this.#take(1);
    const inner = open === "|" ? this.#upTo("|") : this.#sum(close);
    if (this.#rest.startsWith(close)) this.#take(1);
    return { tag: "mrow", children: [leaf("mo", open), ...inner, leaf("mo", close)] };
  }

  #upTo(end: string): MathNode[] {
    const found: MathNode[] = [];
    while (this.#rest && !this.#rest.startsWith(end)) found.push(this.#withScripts(this.#atom()));
    return found;
  }

  #withScripts(base: MathNode): MathNode {
    const { below, above } = this.#scripts();
    if (below && above) return { tag: "msubsup", children: [base, below, above] };
    if (below) return { tag: "msub", children: [base, below] };
    return above ? { tag: "msup", children: [base, above] } : base;
  }

  #scripts(): { below: MathNode | null; above: MathNode | null } {
    const below: MathNode[] = [];
    const above: MathNode[] = [];
    for (;;) {
      const next = this.#rest[0] ?? "";
      if (SUBSCRIPTS.has(next)) below.push(this.#scriptLeaf(SUBSCRIPTS.get(next)!));
      else if (SUPERSCRIPTS.has(next)) above.push(this.#scriptLeaf(SUPERSCRIPTS.get(next)!));
      else if (next === "_") below.push(this.#script());
      else if (next === "^") above.push(this.#script());
      else return { below: below.length ? row(below) : null, above: above.length ? row(above) : null };
    }
  }

  /** A subscript or superscript character, as the character that it stands for. */
  #scriptLeaf(text: string): MathNode {
    this.#take(1);
    return leaf(/\d/.test(text) ? "mn" : /[+−]/.test(text) ? "mo" : "mi", text);
  }

  /** What follows _ or ^: a bracket, a word, or a sign and a value. */
  #script(): MathNode {
    this.#take(1);
    if (this.#rest[0] in BRACKETS) return unwrap(this.#atom());
    const sign = /^[−-]/.test(this.#rest) ? [leaf("mo", this.#take(1).replace("-", "−"))] : [];
    const name = NAME.exec(this.#rest)?.[0];
    if (name) return row([...sign, leaf("mi", this.#take(this.#nameLength(name)))]);
    return row([...sign, this.#atom()]);
  }

  #skipSpaces(): void {
    this.#rest = this.#rest.trimStart();
  }

  #take(length: number): string {
    const taken = this.#rest.slice(0, length);
    this.#rest = this.#rest.slice(length);
    return taken;
  }
}

/** A fraction, a root and an index need no round brackets around what they contain. */
function unwrap(node: MathNode): MathNode {
  const [first, ...others] = node.children ?? [];
  const isBracketed = node.tag === "mrow" && first?.tag === "mo" && ["(", "{"].includes(first.text ?? "") && [")", "}"].includes(others.at(-1)?.text ?? "");
  return isBracketed ? row(others.slice(0, -1)) : node;
}

/** The tree as one line, for tests and for texts that are read aloud. */
export function describeFormula({ tag, text, children = [] }: MathNode): string {
  return text ?? (tag === "mrow" ? children.map(describeFormula).join(" ") : `${tag}(${children.map(describeFormula).join(", ")})`);
}

const NAMESPACE = "http://www.w3.org/1998/Math/MathML";

/** The tree as MathML elements. */
export function mathElement({ tag, text, children = [] }: MathNode): Element {
  const element = document.createElementNS(NAMESPACE, tag);
  if (text !== undefined) element.textContent = text;
  element.append(...children.map(mathElement));
  return element;
}
