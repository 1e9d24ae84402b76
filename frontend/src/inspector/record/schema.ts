/**
 * Schemas: each checks one JSON value and returns it typed, or names the path that is wrong.
 *
 * Types are inferred from schemas (`Infer<typeof schema>`), so that no shape is written twice.
 */

import { invalid } from "./errors";

export type Schema<T> = (value: unknown, path: string) => T;
export type Infer<S> = S extends Schema<infer T> ? T : never;
type Shape = Record<string, Schema<unknown>>;
type ObjectOf<S extends Shape> = { [name in keyof S]: Infer<S[name]> };

export const number: Schema<number> = (value, path) => {
  if (typeof value !== "number" || !Number.isFinite(value)) throw invalid(path, "a number");
  return value;
};

/** A non-negative integer: a count or an index. */
export const count: Schema<number> = (value, path) => {
  if (!Number.isInteger(value) || (value as number) < 0) throw invalid(path, "a non-negative integer");
  return value as number;
};

export const string: Schema<string> = (value, path) => {
  if (typeof value !== "string") throw invalid(path, "a string");
  return value;
};

export const boolean: Schema<boolean> = (value, path) => {
  if (typeof value !== "boolean") throw invalid(path, "true or false");
  return value;
};

export function oneOf<const T extends string>(...names: T[]): Schema<T> {
  return (value, path) => {
    if (!names.includes(value as T)) throw invalid(path, names.join(" | "));
    return value as T;
  };
}

/** A value that may be null; a missing one is read as null. */
export function nullable<T>(schema: Schema<T>): Schema<T | null> {
  return (value, path) => (value === null || value === undefined ? null : schema(value, path));
}

export function withDefault<T>(schema: Schema<T>, fallback: T): Schema<T> {
  return (value, path) => (value === null || value === undefined ? fallback : schema(value, path));
}

export function array<T>(schema: Schema<T>, length?: number): Schema<T[]> {
  return (value, path) => {
    if (!Array.isArray(value)) throw invalid(path, "an array");
    if (length !== undefined && value.length !== length) throw invalid(path, `${length} entries, not ${value.length}`);
    return value.map((item, index) => schema(item, `${path}[${index}]`));
  };
}

/** An object with these fields; other fields are ignored, so that a format may grow within its version. */
export function object<S extends Shape>(shape: S): Schema<ObjectOf<S>> {
  return (value, path) => {
    const found = fieldsOf(value, path);
    const entries = Object.entries(shape).map(([name, schema]) => [name, schema(found[name], path ? `${path}.${name}` : name)]);
    return Object.fromEntries(entries) as ObjectOf<S>;
  };
}

/** An object whose values all have the same schema. */
export function record<T>(schema: Schema<T>): Schema<Record<string, T>> {
  return (value, path) => Object.fromEntries(Object.entries(fieldsOf(value, path)).map(([name, item]) => [name, schema(item, `${path}.${name}`)]));
}

/** One of several objects, distinguished by their field `kind`. */
export function variant<S extends Record<string, Schema<object>>>(schemas: S): Schema<{ [kind in keyof S]: { kind: kind } & Infer<S[kind]> }[keyof S]> {
  const discriminator = object({ kind: oneOf(...Object.keys(schemas)) });
  return (value, path) => {
    const { kind } = discriminator(value, path);
    return { kind, ...schemas[kind](value, path) } as { kind: keyof S } & Infer<S[keyof S]>;
  };
}

function fieldsOf(value: unknown, path: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalid(path, "an object");
  return value as Record<string, unknown>;
}
