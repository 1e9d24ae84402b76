/** The look-inside page of a series: the curve, the forecast, attention over time steps. */

import { makeSeries } from "../tests/fixtures/make-series";
import { expectNothingSerious, expectToFit } from "./fit";
import { expect, test, tokenRows } from "./page";

for (const [locale, words] of [
  ["en-US", { title: "Series and forecast", forecast: "Forecast", came: "Actual", tabs: ["Attention", "Steps", "Positions", "Head metrics"], src: "Attended to: window" }],
  ["ko-KR", { title: "시계열과 예측", forecast: "예측", came: "실제", tabs: ["어텐션", "스텝", "위치", "헤드 지표"], src: "어텐션을 받는 쪽: 읽은 구간" }],
] as const) {
  test.describe(`in ${locale}`, () => {
    test.use({ locale });

    test("a month in, a week out", async ({ page, show }) => {
      await show(makeSeries());
      await expect(page.getByRole("heading", { name: words.title })).toBeVisible();
      await expect(page.getByRole("heading", { level: 1 })).toContainText("2023-07-15 … 2023-08-13");
      expect(await page.getByRole("tab").allTextContents()).toEqual(words.tabs);
      const table = page.getByTestId("forecast").getByRole("table");
      await expect(table.getByRole("columnheader", { name: words.forecast, exact: true })).toBeVisible();
      await expect(table.getByRole("columnheader", { name: words.came })).toBeVisible();
      await expect(table.getByRole("row").nth(4)).toContainText("2023-08-17");
      await expect(table.getByRole("row").nth(4)).toContainText("typhoon");
      await expect(table.getByRole("row").nth(4)).toContainText("80.0%");
      await expect(table.getByRole("row").nth(6)).toContainText("✗");
      await expect(page.getByText(words.src).first()).toBeAttached();
    });
  });
}

test("the curve is read by pointer and by keys", async ({ page, show }) => {
  await show(makeSeries());
  const curve = page.getByRole("slider", { name: /^Series from 2023-07-15 to 2023-08-13/ });
  await curve.focus();
  await page.keyboard.press("Home");
  await expect(curve).toHaveAttribute("aria-valuetext", "2023-07-15: sea_temperature 26.00, pressure 1013");
  for (let step = 0; step < 9; step += 1) await page.keyboard.press("ArrowRight");
  await expect(page.getByTestId("series-reading")).toHaveText("2023-07-24 sea_temperature –, pressure –");
  await page.keyboard.press("End");
  await expect(page.getByTestId("series-reading")).toHaveText("2023-08-20 calm 90.0%, typhoon 10.0%");
  const area = (await curve.boundingBox())!;
  await page.mouse.move(area.x + 60, area.y + 60);
  await expect(page.getByTestId("series-reading")).toContainText("2023-07-15");
  await page.getByTestId("series").getByText("As a table").click();
  await expect(page.getByTestId("series").getByRole("row").nth(12)).toContainText("2023-07-26");
});

test("a step that is pointed at shades what it looks at", async ({ page, show }) => {
  await show(makeSeries());
  const { looking } = tokenRows(page);
  await expect(looking.nth(3)).toContainText("08-17 typhoon");
  const heights = () => page.locator("rect.weight").evaluateAll((bars) => bars.map((bar) => Number(bar.getAttribute("height"))));
  const before = await heights();
  expect(before).toHaveLength(30);
  await looking.nth(3).click();
  await expect(page.locator("rect.marked").first()).toBeAttached();
  const after = await heights();
  expect(after).not.toEqual(before);
  expect(Math.max(...after)).toBe(60);
});

test("the steps say how likely each label was, given those before", async ({ page, show }) => {
  await show(makeSeries(), "steps");
  await page.getByTestId("target").getByRole("button").nth(3).click();
  await expect(page.getByTestId("step")).toContainText("chosen: “08-17 typhoon”, probability 80.0%");
  await expect(page.getByRole("list", { name: "Probability of each label" }).getByRole("listitem")).toHaveCount(2);
  await expect(page.getByTestId("source-weights")).toContainText("07-15");
});

test("numbers are shown without probabilities", async ({ page, show }) => {
  await show(makeSeries("numbers"));
  const table = page.getByTestId("forecast").first();
  await expect(table.getByRole("row").nth(1)).toContainText("28.50");
  await expect(table.getByRole("row").nth(1)).toContainText("28.30");
  await expect(page.locator("path.forecast").first()).toHaveAttribute("d", /^M/);
  await expect(page.locator("path.observed").first()).toHaveAttribute("d", /^M/);
  await page.getByRole("tab", { name: "Steps" }).click();
  await expect(page.getByText("without a probability").filter({ visible: true })).toBeVisible();
});

for (const [locale, colorScheme] of [["en-US", "light"], ["ko-KR", "dark"]] as const) {
  test.describe(`${locale}, ${colorScheme}`, () => {
    test.use({ locale, colorScheme });
    test("has nothing serious for axe to find, and fits a phone", async ({ page, show }) => {
      test.setTimeout(120_000);
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      for (const kind of ["labels", "numbers"] as const) {
        for (const tab of ["attention", "steps", "words", "metrics"]) {
          await page.setViewportSize({ width: 1280, height: 900 });
          await show(makeSeries(kind), tab);
          await page.reload();
          await expectNothingSerious(page, tab);
          await page.setViewportSize({ width: 360, height: 740 });
          await expectToFit(page, 360, tab);
        }
      }
    });
  });
}
