/** The user's settings: language, theme, shortcuts. Shared by all components of a page. */

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

  /** Translate a key into the user's language. */
  readonly t = (key: Key, parameters?: Parameters): string => translate(this.lang, key, parameters);

  /** The text of a label: the start and the end symbol have no text of their own. */
  readonly labelOf = (unit: Pick<Unit, "text" | "special">): string =>
    unit.special ? `⟨${this.t(`token.${unit.special}`)}⟩` : unit.text;

  save(): void {
    store("attendo.lang", this.lang);
    store("attendo.theme", this.theme);
  }
}

/** Load the stored settings, or those that the browser prefers. */
export function loadSettings(): Settings {
  const lang = stored("attendo.lang");
  const theme = stored("attendo.theme");
  const isDark = globalThis.matchMedia("(prefers-color-scheme: dark)").matches;
  return new Settings(
    lang === "ko" || lang === "en" ? lang : preferredLang(navigator.languages),
    theme === "dark" || theme === "light" ? theme : isDark ? "dark" : "light",
  );
}

export const [useSettings, provideSettings] = createContext<Settings>();
