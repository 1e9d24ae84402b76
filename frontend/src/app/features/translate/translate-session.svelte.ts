/** The translation on the screen: requested while the user types, and updated token by token where the search is greedy. */

import type { Client } from "../../api/client";
import type { StreamStep, TranslateRequest, Translation } from "../../api/schemas";
import { LatestRequest, type SendOptions } from "../../requests/latest-request.svelte";

/** Long enough not to send a request per keystroke, short enough not to be noticed. */
const TYPING_SECONDS = 0.35;

export interface TranslateResult {
  /** The text that was translated. */
  text: string;
  translation: Translation;
  seconds: number | null;
}

export class TranslateSession extends LatestRequest<TranslateRequest, TranslateResult> {
  /** The output so far while a translation is streamed. */
  partial = $state.raw<StreamStep | null>(null);
  /** undefined: no request yet, so that the user cannot be typing. */
  #last: TranslateRequest | null | undefined;
  readonly #client: Client;

  constructor(client: Client) {
    super((request, signal) => this.#translate(request, signal), { keepsResponse: true });
    this.#client = client;
  }

  override send(request: TranslateRequest | null, options: SendOptions = {}): void {
    const isTyping = this.#last !== undefined && this.#last?.text !== request?.text;
    this.#last = request;
    this.partial = null;
    super.send(request, { delaySeconds: isTyping ? TYPING_SECONDS : 0, ...options });
  }

  async #translate(request: TranslateRequest, signal: AbortSignal): Promise<TranslateResult> {
    const text = String(request.text);
    // Two steps are not streamed.
    if (request.beam_size > 1 || request.model === undefined) {
      const { translations, seconds } = await this.#client.translate(request, signal);
      return { text, translation: translations[0], seconds };
    }
    const start = performance.now();
    try {
      const translation = await this.#client.stream(request, (step) => (this.partial = signal.aborted ? null : step), signal);
      return { text, translation, seconds: (performance.now() - start) / 1000 };
    } finally {
      if (!signal.aborted) this.partial = null;
    }
  }
}
