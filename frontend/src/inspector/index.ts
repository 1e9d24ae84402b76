/** What the web application takes from here: the view of a record, and how to read one. */

export { default as ForecastTable } from "./views/ForecastTable.svelte";
export { default as Look } from "./Inspector.svelte";
export { default as SeriesCurve } from "./views/SeriesChart.svelte";
export { RecordError } from "./record/errors";
export { parseRecord, readRecord, VERSION } from "./record/parse";
export type { LookRecord, Series, Study } from "./record/types";
export { provideSettings, rememberedSettings, Settings, useSettings } from "./state/settings.svelte";
export { type Tab, TABS, tabOf } from "./state/tabs";
export { cssVariables, PALETTES, type Theme } from "./display/theme";
