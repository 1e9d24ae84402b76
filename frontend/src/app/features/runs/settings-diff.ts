/** Nested settings as a flat list, and where the settings of several runs differ. */

export type SettingLine = [name: string, value: string];

/** One line per setting; those without a value are left out. */
export function flattenSettings(value: unknown, path = ""): SettingLine[] {
  if (value === null || value === undefined) return [];
  if (typeof value !== "object") return [[path, String(value)]];
  if (Array.isArray(value) && value.every((one) => typeof one !== "object")) return value.length ? [[path, value.join(", ")]] : [];
  return Object.entries(value).flatMap(([name, one]) => flattenSettings(one, path ? `${path}.${name}` : name));
}

/** The settings that differ, with the value of each run; empty where a run has none. */
export function diffSettings(configs: readonly Record<string, unknown>[]): { name: string; values: string[] }[] {
  const flat = configs.map((config) => new Map(flattenSettings(config)));
  const names = [...new Set(flat.flatMap((lines) => [...lines.keys()]))].sort();
  return names
    .map((name) => ({ name, values: flat.map((lines) => lines.get(name) ?? "") }))
    .filter(({ values }) => values.some((value) => value !== values[0]));
}
