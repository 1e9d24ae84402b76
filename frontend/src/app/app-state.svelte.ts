/** What all pages of the application share: the server, the address, the models, the words. */

import { createContext } from "svelte";

import type { Settings } from "../inspector";
import type { Parameters } from "../i18n";
import { store, stored } from "../inspector/state/storage";
import { Client } from "./api/client";
import type { ApiError } from "./api/errors";
import type { ModelInfo } from "./api/types";
import { type AppKey, say } from "../i18n/app";
import { languageName, pagesOf } from "./shared/models";
import { Latest, type Wait, withPatience } from "./requests/retry";
import { Place } from "./routing/navigation.svelte";
import { parseRoute } from "./routing/routes";

export class AppState {
  readonly settings: Settings;
  readonly place = new Place();
  readonly client: Client;
  /** null until the server has told. */
  models = $state.raw<ModelInfo[] | null>(null);
  error = $state.raw<ApiError | null>(null);
  wait = $state.raw<Wait | null>(null);
  #key = stored("attendo.key") ?? "";
  readonly #latest = new Latest();

  constructor(settings: Settings) {
    this.settings = settings;
    this.client = new Client({ base: new URL(".", location.href.split("#")[0]).href, key: () => this.#key });
  }

  readonly t = (key: AppKey, parameters?: Parameters): string => say(this.settings.lang, key, parameters);

  /** The name of a language; a model that does not tell takes any. */
  readonly language = (code: string): string => languageName(code, this.settings.lang) ?? this.t("language.any");

  async loadModels(): Promise<void> {
    this.error = null;
    const task = (signal: AbortSignal) => withPatience(() => this.client.models(signal), { signal, onwait: (wait) => (this.wait = wait) });
    await this.#latest.run(task, { ondone: (models) => this.#welcome(models), onfail: (error) => (this.error = error) });
  }

  /** Who comes without an address begins with what the models can do. */
  #welcome(models: ModelInfo[]): void {
    this.models = models;
    const [first] = pagesOf(models);
    const hasNoAddress = ["", "#", "#/"].includes(location.hash);
    if (hasNoAddress && first !== "translate" && this.place.route.page === "translate") this.place.replace(parseRoute(`#/${first}`));
  }

  /** Keep the key that the server asks for. */
  unlock(key: string): void {
    this.#key = key.trim();
    store("attendo.key", this.#key);
    if (this.models === null) void this.loadModels();
  }
}

export const [useApp, provideApp] = createContext<AppState>();
