/** The state that all pages of the application share: the settings, the route, the client and the models of the server. */

import { createContext } from "svelte";

import type { Parameters } from "../i18n";
import { type AppKey, translateApp } from "../i18n/app";
import type { Settings } from "../inspector";
import { sessionStore, sessionStored } from "../inspector/state/storage";
import { Client } from "./api/client";
import type { ApiError } from "./api/errors";
import type { ModelInfo, ModelsResponse, Pivot } from "./api/schemas";
import { LatestTask } from "./requests/latest-task";
import { type RetryWait, withRetry } from "./requests/retry";
import { Navigation } from "./routing/navigation.svelte";
import { parseRoute } from "./routing/routes";
import { languageName, pagesFor } from "./shared/models";

export class AppState {
  readonly settings: Settings;
  readonly navigation = new Navigation();
  readonly client: Client;
  /** Null until the server has responded. */
  models = $state.raw<ModelInfo[] | null>(null);
  /** The languages that are translated in two steps. */
  pivots = $state.raw<Pivot[]>([]);
  /** Whether the server keeps corrections. */
  hasMemory = $state(false);
  error = $state.raw<ApiError | null>(null);
  wait = $state.raw<RetryWait | null>(null);
  #key = $state(sessionStored("attendo.key") ?? "");
  readonly #task = new LatestTask();

  constructor(settings: Settings) {
    this.settings = settings;
    this.client = new Client({ base: new URL(".", location.href.split("#")[0]).href, key: () => this.#key });
  }

  readonly t = (key: AppKey, parameters?: Parameters): string => translateApp(this.settings.lang, key, parameters);

  /** The name of a language; a model without a fixed language takes any. */
  readonly language = (code: string): string => languageName(code, this.settings.lang) ?? this.t("language.any");

  async loadModels(): Promise<void> {
    this.error = null;
    const task = (signal: AbortSignal) => withRetry(() => this.client.models(signal), { signal, onwait: (wait) => (this.wait = wait) });
    await this.#task.run(task, { onsuccess: (response) => this.#setModels(response), onerror: (error) => (this.error = error) });
  }

  /** Without a route in the URL, start on a page that the models support. */
  #setModels({ models, pivots, has_memory }: ModelsResponse): void {
    this.models = models;
    this.pivots = pivots;
    this.hasMemory = has_memory;
    const [first] = pagesFor(models);
    const hasRoute = !["", "#", "#/"].includes(location.hash);
    if (!hasRoute && first !== "translate" && this.navigation.route.page === "translate") this.navigation.replace(parseRoute(`#/${first}`));
  }

  get hasKey(): boolean {
    return this.#key !== "";
  }

  /** Keep the API key that the server requires until the tab is closed. */
  setKey(key: string): void {
    this.#key = key.trim();
    sessionStore("attendo.key", this.#key);
    if (this.models === null) void this.loadModels();
  }
}

export const [useApp, provideApp] = createContext<AppState>();
