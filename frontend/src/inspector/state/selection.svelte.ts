/** Which weights and which word are looked at; the attention components share one. */

import { type Choice, type End, choose, firstChoice, kindsOf, pressHead, type View, viewOf } from "../analysis/attention";
import type { AttentionAction } from "./keys";
import type { LookRecord } from "../record/types";

export class Selection {
  readonly record: LookRecord;
  choice = $state.raw<Choice>() as Choice;
  pinned = $state.raw<End | null>(null);
  pointed = $state.raw<End | null>(null);
  readonly view: View = $derived.by(() => viewOf(this.record, this.choice));
  readonly active: End | null = $derived(this.pointed ?? this.pinned);

  private constructor(record: LookRecord, choice: Choice) {
    this.record = record;
    this.choice = choice;
  }

  /** null for a model without attention. */
  static begin(record: LookRecord): Selection | null {
    const choice = firstChoice(record);
    return choice && new Selection(record, choice);
  }

  change(change: Partial<Choice>): void {
    const next = choose(this.record, this.choice, change);
    const isElsewhere = next.kind !== this.choice.kind || next.byWords !== this.choice.byWords;
    if (isElsewhere) this.pinned = this.pointed = null;
    this.choice = next;
  }

  pressHead(head: number, add: boolean): void {
    this.choice = pressHead(this.record, this.choice, head, add);
  }

  /** Keep a word, or let it go if it is kept. */
  pin(end: End): void {
    const isKept = this.pinned?.side === end.side && this.pinned.index === end.index;
    this.pinned = isKept ? null : end;
  }

  act(action: AttentionAction): void {
    switch (action.do) {
      case "head":
        return this.pressHead(action.head, action.add);
      case "mode":
        return this.change({ mode: action.mode });
      case "layer":
        return this.change({ layer: this.choice.layer === "all" ? 0 : this.choice.layer + action.by });
      case "kind":
        return this.nextKind(action.by);
      case "words":
        return this.change({ byWords: !this.choice.byWords });
      case "release":
        this.pinned = this.pointed = null;
    }
  }

  private nextKind(by: number): void {
    const kinds = kindsOf(this.record);
    const at = kinds.indexOf(this.choice.kind) + by + kinds.length;
    this.change({ kind: kinds[at % kinds.length] });
  }
}
