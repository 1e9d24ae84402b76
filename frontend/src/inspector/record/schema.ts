/** Small readers that check one JSON value each and name the part that is wrong. */

import { broken } from "./errors";

export type Reader<T> = (value: unknown, part: string) => T;
type Shape = Record<string, Reader<unknown>>;
type Read<S extends Shape> = { [name in keyof S]: ReturnType<S[name]> };

export const number: Reader<number> = (value, part) => {
  if (typeof value !== "number" || !Number.isFinite(value)) throw broken(part, "a number");
  return value;
};

/** A whole number that is not negative: a count or an index. */
export const count: Reader<number> = (value, part) => {
  if (!Number.isInteger(value) || (value as number) < 0) throw broken(part, "a whole number");
  return value as number;
};

export const text: Reader<string> = (value, part) => {
  if (typeof value !== "string") throw broken(part, "a text");
  return value;
};

export const flag: Reader<boolean> = (value, part) => {
  if (typeof value !== "boolean") throw broken(part, "true or false");
  return value;
};

export function oneOf<const T extends string>(...names: T[]): Reader<T> {
  return (value, part) => {
    if (!names.includes(value as T)) throw broken(part, names.join(" | "));
    return value as T;
  };
}

/** What is null, or not there at all, stays null. */
export function orNull<T>(read: Reader<T>): Reader<T | null> {
  return (value, part) => (value === null || value === undefined ? null : read(value, part));
}

export function withDefault<T>(read: Reader<T>, missing: T): Reader<T> {
  return (value, part) => (value === null || value === undefined ? missing : read(value, part));
}

export function list<T>(read: Reader<T>, length?: number): Reader<T[]> {
  return (value, part) => {
    if (!Array.isArray(value)) throw broken(part, "a list");
    if (length !== undefined && value.length !== length) throw broken(part, `${length} entries, not ${value.length}`);
    return value.map((one, place) => read(one, `${part}[${place}]`));
  };
}

/** Read the named fields; others are let be, so that a record may grow within its version. */
export function fields<S extends Shape>(shape: S): Reader<Read<S>> {
  return (value, part) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw broken(part, "an object");
    const found = value as Record<string, unknown>;
    const entries = Object.entries(shape).map(([name, read]) => [name, read(found[name], part ? `${part}.${name}` : name)]);
    return Object.fromEntries(entries) as Read<S>;
  };
}
