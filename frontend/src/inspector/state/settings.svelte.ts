/** What the reader has set: language, colours, shortcuts. Shared by all components of a page. */

import { createContext } from "svelte";

import { type Key, type Lang, type Parameters, preferredLang, translate } from "../../i18n";
import { store, stored } from "./storage";
import { PALETTES, type Theme } from "../display/theme";
import type { Unit } from "../analysis/token-units";

export class Settings {
  lang = $state<Lang>("en");
  theme = $state<Theme>("light");
  useShortcuts = $state(true);
  readonly palette = $derived(PALETTES[this.theme]);

  constructor(lang: Lang, theme: Theme) {
    this.lang = lang;
    this.theme = theme;
  }

  /** Say something in the reader's language. */
  readonly t = (key: Key, parameters?: Parameters): string => translate(this.lang, key, parameters);

  /** Say a label: the start and the end symbol have no text of their own. */
  readonly say = (unit: Pick<Unit, "text" | "special">): string =>
    unit.special ? `⟨${this.t(`token.${unit.special}`)}⟩` : unit.text;

  remember(): void {
    store("attendo.lang", this.lang);
    store("attendo.theme", this.theme);
  }
}

/** What was set last time, or what the browser asks for. */
export function rememberedSettings(): Settings {
  const lang = stored("attendo.lang");
  const theme = stored("attendo.theme");
  const isDark = globalThis.matchMedia("(prefers-color-scheme: dark)").matches;
  return new Settings(
    lang === "ko" || lang === "en" ? lang : preferredLang(navigator.languages),
    theme === "dark" || theme === "light" ? theme : isDark ? "dark" : "light",
  );
}

export const [useSettings, provideSettings] = createContext<Settings>();
