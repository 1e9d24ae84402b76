/** What the web application imports from the inspector. */

export { default as Inspector } from "./Inspector.svelte";
export type { Series, Study } from "./record/record";
export type { Settings } from "./state/settings.svelte";
export type { Tab } from "./state/tabs";
export { default as ForecastTable } from "./views/ForecastTable.svelte";
export { default as SeriesChart } from "./views/SeriesChart.svelte";
