import { describe, expect, it } from "vitest";

import { forecastRoute, formatRoute, insideRoute, lessonsRoute, parseRoute, type Route, runsRoute, translateRoute, writeRoute } from "../../src/app/routing/routes";

describe("addresses", () => {
  it.each<[string, Route]>([
    ["", translateRoute()],
    ["#", translateRoute()],
    ["#/", translateRoute()],
    ["#/translate", translateRoute()],
    ["#/translate?model=ko-en&q=%EB%82%98%EB%8A%94", translateRoute({ model: "ko-en", q: "나는" })],
    ["#/translate?q=a+b%2Bc&beam=1&prefix=I", translateRoute({ q: "a b+c", beam: 1, prefix: "I" })],
    ["#/translate?glossary=", translateRoute({ glossary: "" })],
    ["#/inside?q=x&tab=beam&ablation=1", insideRoute({ q: "x", tab: "beam", ablation: true })],
    ["#/forecast?model=sea&data=a%2Cb%0A1%2C2", forecastRoute({ model: "sea", data: "a,b\n1,2" })],
    ["#/write?q=A+man&temperature=1.2&seed=7", writeRoute({ q: "A man", temperature: 1.2, seed: 7 })],
    ["#/inside?model=sea&data=a%0A1", insideRoute({ model: "sea", data: "a\n1" })],
    ["#/runs", runsRoute()],
    ["#/runs/ko%2Fen%20%231?log=1&at=600", runsRoute({ name: "ko/en #1", log: true, at: 600 })],
    ["#/lessons/3", lessonsRoute("3")],
  ])("%s are read", (hash, route) => expect(parseRoute(hash)).toEqual(route));

  it.each<Route>([
    translateRoute({ model: "a&b=c", q: "줄\n바꿈 & ? # % + = /", prefix: "I am", beam: 8, glossary: "왕자 = prince\n공주 = princess" }),
    insideRoute({ model: "m", q: "50% 할인?", target: "50% off?", tab: "why", attribution: true, ablation: true }),
    forecastRoute({ model: "sea", data: 'day,"a,b"\n2023-01-01,+1\n' }),
    writeRoute({ model: "m", q: "A man & +", temperature: 0.3, seed: 12 }),
    insideRoute({ model: "sea", data: "a;b\n1;2", tab: "steps" }),
    runsRoute({ name: "../weird name?#", log: true, at: 12 }),
    lessonsRoute("two words"),
  ])("are written so that they read the same", (route) => expect(parseRoute(formatRoute(route))).toEqual(route));

  it("leave out what is as it always is", () => {
    expect(formatRoute(translateRoute())).toBe("#/translate");
    expect(formatRoute(insideRoute({ q: "x" }))).toBe("#/inside?q=x");
    expect(formatRoute(runsRoute({ name: "a" }))).toBe("#/runs/a");
  });

  it("that are damaged still lead somewhere", () => {
    expect(parseRoute("#/translate?beam=3&q=a")).toEqual(translateRoute({ q: "a" }));
    expect(parseRoute("#/inside?tab=nonsense")).toEqual(insideRoute());
    expect(parseRoute("#/write?temperature=99&seed=-1")).toEqual(writeRoute());
    expect(parseRoute("#/runs/%E0%A4%A?at=-1")).toEqual(runsRoute({ name: "%E0%A4%A" }));
    expect(parseRoute("#/nowhere/at/all")).toEqual({ page: "lost", path: "/nowhere/at/all" });
    expect(parseRoute("#/runs/a/b")).toMatchObject({ page: "lost" });
    expect(parseRoute("#/constructor")).toMatchObject({ page: "lost" });
  });
});
