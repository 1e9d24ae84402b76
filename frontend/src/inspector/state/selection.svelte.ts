/** Which weights are shown and which token is active: shared by the attention views. */

import { type Choice, type TokenRef, choose, firstChoice, kindsOf, toggleHead, type View, viewOf } from "../analysis/attention";
import type { AttentionAction } from "./keys";
import type { InspectionRecord } from "../record/record";

export class Selection {
  readonly record: InspectionRecord;
  choice = $state.raw<Choice>() as Choice;
  pinned = $state.raw<TokenRef | null>(null);
  pointed = $state.raw<TokenRef | null>(null);
  readonly view: View = $derived.by(() => viewOf(this.record, this.choice));
  readonly active: TokenRef | null = $derived(this.pointed ?? this.pinned);

  private constructor(record: InspectionRecord, choice: Choice) {
    this.record = record;
    this.choice = choice;
  }

  /** Return null for a model without attention. */
  static create(record: InspectionRecord): Selection | null {
    const choice = firstChoice(record);
    return choice && new Selection(record, choice);
  }

  change(change: Partial<Choice>): void {
    const next = choose(this.record, this.choice, change);
    const hasOtherTokens = next.kind !== this.choice.kind || next.byWords !== this.choice.byWords;
    if (hasOtherTokens) this.pinned = this.pointed = null;
    this.choice = next;
  }

  toggleHead(head: number, add: boolean): void {
    this.choice = toggleHead(this.record, this.choice, head, add);
  }

  /** Pin a token, or unpin it if it is pinned. */
  pin(end: TokenRef): void {
    const isPinned = this.pinned?.side === end.side && this.pinned.index === end.index;
    this.pinned = isPinned ? null : end;
  }

  act(action: AttentionAction): void {
    switch (action.do) {
      case "head":
        return this.toggleHead(action.head, action.add);
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
