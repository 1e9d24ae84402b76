import { describe, expect, it } from "vitest";

import { formatRoute, hrefTo, parseRoute, type Route, routeTo } from "../../src/app/routing/routes";

describe("addresses", () => {
  it.each<[string, Route]>([
    ["", routeTo("translate")],
    ["#", routeTo("translate")],
    ["#/", routeTo("translate")],
    ["#/translate", routeTo("translate")],
    ["#/translate?model=ko-en&q=%EB%82%98%EB%8A%94", routeTo("translate", { model: "ko-en", q: "나는" })],
    ["#/translate?q=a+b%2Bc&beam=1&prefix=I", routeTo("translate", { q: "a b+c", beam: 1, prefix: "I" })],
    ["#/translate?glossary=", routeTo("translate", { glossary: "" })],
    ["#/inspect?q=x&tab=beam&ablation=1", routeTo("inspect", { q: "x", tab: "beam", ablation: true })],
    ["#/forecast?model=sea&data=a%2Cb%0A1%2C2", routeTo("forecast", { model: "sea", data: "a,b\n1,2" })],
    ["#/generate?q=A+man&temperature=1.2&seed=7", routeTo("generate", { q: "A man", temperature: 1.2, seed: 7 })],
    ["#/inspect?model=sea&data=a%0A1", routeTo("inspect", { model: "sea", data: "a\n1" })],
    ["#/runs", routeTo("runs")],
    ["#/runs/ko%2Fen%20%231?log=1&at=600", routeTo("runs", { name: "ko/en #1", log: true, at: 600 })],
    ["#/lessons/3", routeTo("lessons", { lesson: "3" })],
  ])("%s are read", (hash, route) => expect(parseRoute(hash)).toEqual(route));

  it.each<Route>([
    routeTo("translate", { model: "a&b=c", q: "줄\n바꿈 & ? # % + = /", prefix: "I am", beam: 8, glossary: "왕자 = prince\n공주 = princess" }),
    routeTo("inspect", { model: "m", q: "50% 할인?", target: "50% off?", tab: "why", attribution: true, ablation: true }),
    routeTo("forecast", { model: "sea", data: 'day,"a,b"\n2023-01-01,+1\n' }),
    routeTo("generate", { model: "m", q: "A man & +", temperature: 0.3, seed: 12 }),
    routeTo("inspect", { model: "sea", data: "a;b\n1;2", tab: "steps" }),
    routeTo("runs", { name: "../weird name?#", log: true, at: 12 }),
    routeTo("lessons", { lesson: "two words" }),
  ])("are written so that they read the same", (route) => expect(parseRoute(formatRoute(route))).toEqual(route));

  it("leave out what is as it always is", () => {
    expect(hrefTo("translate")).toBe("#/translate");
    expect(hrefTo("inspect", { q: "x" })).toBe("#/inspect?q=x");
    expect(hrefTo("runs", { name: "a" })).toBe("#/runs/a");
  });

  it("that are damaged still lead somewhere", () => {
    expect(parseRoute("#/translate?beam=3&q=a")).toEqual(routeTo("translate", { q: "a" }));
    expect(parseRoute("#/inspect?tab=nonsense")).toEqual(routeTo("inspect"));
    expect(parseRoute("#/generate?temperature=99&seed=-1")).toEqual(routeTo("generate"));
    expect(parseRoute("#/runs/%E0%A4%A?at=-1")).toEqual(routeTo("runs", { name: "%E0%A4%A" }));
    expect(parseRoute("#/nowhere/at/all")).toEqual({ page: "notFound", path: "/nowhere/at/all" });
    expect(parseRoute("#/runs/a/b")).toMatchObject({ page: "notFound" });
    expect(parseRoute("#/constructor")).toMatchObject({ page: "notFound" });
  });
});
