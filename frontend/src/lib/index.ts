/** What the web application takes from here: the view of a record, and how to read one. */

export { default as ForecastTable } from "./components/ForecastTable.svelte";
export { default as Look } from "./components/Look.svelte";
export { default as SeriesCurve } from "./components/SeriesCurve.svelte";
export { RecordError } from "./record/errors";
export { parseRecord, readRecord, VERSION } from "./record/parse";
export type { LookRecord, Series, Study } from "./record/types";
export { provideSettings, rememberedSettings, Settings, useSettings } from "./settings.svelte";
export { type Tab, TABS, tabOf } from "./tabs";
export { cssVariables, PALETTES, type Theme } from "./theme";
