/** A translation that the user corrects: the text being edited, and its way into the translation memory. */

import { store, stored } from "../../../inspector/state/storage";
import type { Client } from "../../api/client";
import type { CorrectionRequest } from "../../api/schemas";
import { LatestRequest } from "../../requests/latest-request.svelte";

const NAME_KEY = "attendo.author";

/** What is corrected: the languages or the model, the source and what the model wrote. */
export type Corrected = Omit<CorrectionRequest, "target_text" | "author">;

export class Correction {
  /** The text in the editor; null while nothing is edited. */
  text = $state<string | null>(null);
  author = $state(stored(NAME_KEY) ?? "");
  readonly saving: LatestRequest<CorrectionRequest, { id: number }>;
  readonly removing: LatestRequest<number, { deleted: number }>;
  #corrected: Corrected | null = null;

  /** `onchange` is called when the memory has changed. */
  constructor(client: Client, onchange: () => void) {
    const changing = <T>(result: T): T => {
      this.text = null;
      onchange();
      return result;
    };
    this.saving = new LatestRequest(async (request, signal) => changing(await client.saveCorrection(request, signal)));
    this.removing = new LatestRequest(async (id, signal) => changing(await client.deleteCorrection(id, signal)));
  }

  edit(corrected: Corrected, text: string): void {
    this.#corrected = corrected;
    this.saving.send(null);
    this.text = text;
  }

  close(): void {
    this.saving.send(null);
    this.text = null;
  }

  save(): void {
    const [text, author] = [this.text?.trim(), this.author.trim()];
    if (!text || !this.#corrected) return;
    store(NAME_KEY, author);
    this.saving.send({ ...this.#corrected, target_text: text, ...(author ? { author } : {}) });
  }
}
