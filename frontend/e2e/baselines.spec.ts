/** The page on records of models that are no Transformer: with cross attention only, and with none. */

import type { Page } from "@playwright/test";

import { CATALOGS, type Lang, translate } from "../src/i18n";
import { type BaselineKind, makeBaseline } from "../tests/fixtures/make-baseline";
import { makeRecord } from "../tests/fixtures/make-record";
import { model, test as appTest } from "./app";
import { expect, test } from "./page";

const LOCALES: [Lang, string][] = [
  ["en", "en-US"],
  ["ko", "ko-KR"],
];
const MODES = ["mode.one", "mode.several", "mode.all", "mode.mean"] as const;

/** What is in the view that is shown. */
const panel = (page: Page) => page.getByRole("tabpanel").filter({ visible: true });
const cards = (page: Page) => panel(page).locator(".card");

for (const [lang, locale] of LOCALES) {
  test.describe(`in ${lang}`, () => {
    test.use({ locale });
    const say = (...[key, parameters]: [Parameters<typeof translate>[1], Parameters<typeof translate>[2]?]) => translate(lang, key, parameters);
    const open = (page: Page, tab: "attention" | "steps" | "why" | "words" | "metrics") => page.getByRole("tab", { name: say(`tab.${tab}`), exact: true }).click();

    /** The studies of a Transformer's layers: refused for this model, so never offered. */
    async function expectNoStudies(page: Page, kind: BaselineKind): Promise<void> {
      const reason = say("unavailable.transformer", { kind });
      await open(page, "why");
      await expect(cards(page)).toHaveText([`${say("attribution.title")} ${reason}`, `${say("ablation.title")} ${reason}`]);
      await open(page, "steps");
      await expect(cards(page).last()).toHaveText(`${say("lens.title")} ${reason}`);
      await expect(page.locator("code")).toHaveCount(0);
      await expect(page.getByText(say("unavailable.lead"))).toHaveCount(0);
    }

    test("a model without attention begins with its steps, and says once what it has not", async ({ page, show }) => {
      await show(makeBaseline("rnn-seq2seq"), "");
      await expect(page.getByRole("tab", { selected: true })).toHaveText(say("tab.steps"));
      await expect(page.getByTestId("step")).toContainText(say("steps.at", { step: 1, steps: 6 }));
      for (const tab of ["attention", "metrics"] as const) {
        await open(page, tab);
        await expect(panel(page)).toHaveText(say("arcs.none"));
        await expect(panel(page).locator("fieldset, button, table")).toHaveCount(0);
      }
      await open(page, "words");
      await expect(cards(page).last()).toHaveText(`${say("positions.title")} ${say("positions.none")}`);
      await expect(page.getByTestId("positions")).toHaveCount(0);
      await expectNoStudies(page, "rnn-seq2seq");
    });

    test("a model with one head has nothing to choose among heads", async ({ page, show }) => {
      await show(makeBaseline("rnn-attention"), "");
      await expect(page.getByRole("tab", { selected: true })).toHaveText(say("tab.attention"));
      await expect(page.getByTestId("matrix-name")).toHaveText(`${say("kind.cross")} · ${say("layer.name", { layer: 1 })} · ${say("head.name", { head: 1 })}`);
      await expect(panel(page)).not.toContainText(say("arcs.first", { name: say("head.only", { layer: 1, head: 1 }) }));
      await expect(panel(page).getByRole("group", { name: say("mode.label"), exact: true })).toHaveCount(0);
      await expect(panel(page)).not.toContainText(say("measure.agreement"));
      await page.keyboard.press("m");
      await expect(page.getByTestId("matrix-name")).toContainText(say("head.name", { head: 1 }));
      await open(page, "metrics");
      await expect(page.getByTestId("metrics").locator("tbody tr")).toHaveCount(1);
      await expect(panel(page)).not.toContainText(say("measure.agreement"));
      await expectNoStudies(page, "rnn-attention");
    });

    test("a model with a head a layer keeps its layers and its positions", async ({ page, show }) => {
      await show(makeBaseline("conv-s2s"), "");
      await expect(panel(page)).toContainText(say("arcs.first", { name: "§" }).split("§")[1]);
      await expect(panel(page).getByRole("group", { name: say("mode.label"), exact: true })).toHaveCount(0);
      await expect(panel(page).getByRole("group", { name: say("layer.label"), exact: true }).getByRole("radio")).toHaveCount(4);
      await open(page, "words");
      await expect(page.getByTestId("positions")).toBeVisible();
      await expect(panel(page)).toContainText(say("positions.learned"));
      await expectNoStudies(page, "conv-s2s");
    });

    test("a Transformer has it all, as before", async ({ page, show }) => {
      await show(makeRecord(), "");
      await expect(panel(page)).toContainText(say("arcs.first", { name: "§" }).split("§")[1]);
      const modes = panel(page).getByRole("group", { name: say("mode.label"), exact: true });
      await expect(modes.locator("label")).toHaveText(MODES.map((mode) => CATALOGS[lang][mode]));
      await open(page, "metrics");
      await expect(page.getByTestId("metrics").locator("thead")).toContainText(say("measure.agreement"));
    });
  });
}

test("an address that asks for another view of a model without attention gets it", async ({ page, show }) => {
  await show(makeBaseline("rnn-seq2seq"), "beam");
  await expect(page.getByRole("tree")).toBeVisible();
});

test("a note that that is given twice is shown twice", async ({ page, show }) => {
  await show({ ...makeBaseline("rnn-attention"), notes: ["one", "two", "one"] });
  await expect(page.getByRole("list", { name: "Notes" }).getByRole("listitem")).toHaveText(["one", "two", "one"]);
});

for (const kind of ["rnn-seq2seq", "rnn-attention"] as const) {
  appTest(`the application does not offer to work out what ${kind} refuses`, async ({ page, open }) => {
    await open("#/inspect?q=x&tab=why", {
      "GET /v1/models": () => ({ body: { models: [model("ko-en", "ko", "en", { kind, has_attention: kind !== "rnn-seq2seq" })] } }),
      "POST /v1/inspect": () => ({ body: makeBaseline(kind) }),
    });
    await expect(page.getByText("Only available for a single Transformer")).toHaveCount(2);
    await expect(page.getByRole("button", { name: "Compute it now" })).toHaveCount(0);
  });
}
