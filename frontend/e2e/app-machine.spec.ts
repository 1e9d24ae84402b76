import { makeMachine, makeMachineValues } from "../tests/fixtures/make-machine";
import { expect, type Handler, test } from "./app";
import { expectNothingSerious, expectToFit } from "./fit";

const LESSON = { number: 0, title: "The machine", summary: "S", paper: "3", code: [], inputs: [], blocks: [makeMachine()], questions: [] };
const SERVER: Record<string, Handler> = {
  "GET /v1/lessons": () => ({ body: { lessons: [{ number: 0, title: "The machine", summary: "S" }, { number: 1, title: "Next", summary: "S" }], map: makeMachine() } }),
  "POST /v1/lessons/0": () => ({ body: LESSON }),
  "POST /v1/lessons/0/own": () => ({ body: { model: "ko-en", blocks: [], record: null } }),
  "POST /v1/lessons/machine": (request) => {
    const { text, model: name, example } = request.postDataJSON() as { text?: string; model?: string; example?: boolean };
    return { body: { ...makeMachineValues(example ? null : name), ...(text ? { text, src: text.split(" ").slice(0, 3) } : {}) } };
  },
};

test("the machine is stepped through by keys, and a part unfolds into its numbers", async ({ page, open }) => {
  await open("#/lessons/0", SERVER);
  const machine = page.getByTestId("machine");
  const details = machine.getByTestId("stage-details");
  await expect(details).toHaveAttribute("data-stage", "encoder_self");
  await machine.getByRole("button", { name: "Play" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await expect(details).toHaveAttribute("data-stage", "search");
  await expect(machine.getByTestId("written").locator(".done")).toHaveText(["x"]);
  await page.keyboard.press("PageDown");
  await expect(machine.getByRole("status").first()).toContainText("Word 2 of 3");
  await page.keyboard.press("End");
  await expect(machine.getByTestId("written").locator(".done")).toHaveText(["x", "y", "end"]);

  await machine.getByRole("button", { name: /^decoder self/ }).focus();
  await page.keyboard.press("Enter");
  await expect(details).toHaveAttribute("data-stage", "decoder_self");
  await expect(details.getByTestId("dot-product")).toContainText("8+ 6+ 4+ 2= 20");
  await details.getByRole("gridcell").last().focus();
  await page.keyboard.press("ArrowUp");
  await expect(details.getByTestId("dot-product")).toContainText("The mask hides this key");
  await page.keyboard.press("Home");
  await expect(details.getByTestId("dot-product")).toContainText("50.0 %");
});

test("a lesson shows where it is in the machine", async ({ page, open }) => {
  const lesson = { ...LESSON, number: 1, title: "Next", blocks: [] };
  await open("#/lessons/1", { ...SERVER, "POST /v1/lessons/1": () => ({ body: lesson }), "POST /v1/lessons/1/own": () => ({ body: { model: "ko-en", blocks: [], record: null } }) });
  const here = page.getByTestId("here");
  await here.getByText("Where this is in the machine").click();
  await expect(here.locator("g.active text.label")).toHaveText(["cross"]);
  await expect(here.locator("g.pale")).toHaveCount(3);
  await expect(here.locator("a[aria-current=page]")).toHaveAttribute("href", "#/lessons/1");
  await expectNothingSerious(page, "the map in a lesson");
  await page.setViewportSize({ width: 360, height: 800 });
  await expectToFit(page, 360, "the map in a lesson");
});

test("it plays by itself to the end", async ({ page, open }) => {
  await open("#/lessons/0", SERVER);
  const machine = page.getByTestId("machine");
  await machine.getByRole("button", { name: "Play" }).click();
  await expect(machine.locator("rect.token").first()).toBeAttached();
  await expect(machine.getByTestId("written").locator(".done")).toHaveCount(3, { timeout: 20_000 });
  await expect(machine.getByRole("button", { name: "Play" })).toBeVisible();
});

test("another sentence is shown", async ({ page, open }) => {
  await open("#/lessons/0", SERVER);
  const machine = page.getByTestId("machine");
  await machine.getByLabel("Sentence").fill("d e f");
  await machine.getByRole("button", { name: "Show" }).click();
  await expect(machine.getByRole("gridcell", { name: /^d, e/ })).toBeVisible();
  await expect(page).toHaveURL(/own\.text=d\+e\+f/);
});

test("the example is shown where there is no model", async ({ page, open }) => {
  await open("#/lessons/0", { ...SERVER, "GET /v1/models": () => ({ body: { models: [] } }) });
  await expect(page.getByTestId("machine").getByText(/tiny built-in model/)).toBeVisible();
});

test.describe("a model that cannot be drawn", () => {
  test.use({ expected: /status of 400/ });
  test("is replaced by the example", async ({ page, open }) => {
    const refuse: Handler = (request) => ((request.postDataJSON() as { example?: boolean }).example ? { body: makeMachineValues(null) } : { status: 400, body: { error: "needs a Transformer" } });
    await open("#/lessons/0", { ...SERVER, "POST /v1/lessons/machine": refuse });
    await expect(page.getByText(/cannot be drawn here/)).toBeVisible();
    await expect(page.getByTestId("dot-product")).toBeVisible();
  });
});

for (const [width, colorScheme, locale] of [[360, "dark", "ko-KR"], [1280, "light", "en-US"]] as const) {
  test.describe(`${width} px, ${colorScheme}`, () => {
    test.use({ locale, colorScheme, viewport: { width, height: 800 } });
    test("everything fits and is accessible, and the map leads to the lessons", async ({ page, open }) => {
      await open("#/lessons/0", SERVER);
      await page.locator("[data-stage=cross]").first().click();
      await expect(page.getByTestId("machine-drawing")).toHaveAttribute("data-shape", width < 500 ? "narrow" : "wide");
      await expectToFit(page, width);
      await expectNothingSerious(page);
      await open("#/lessons", SERVER);
      const map = page.getByTestId("lesson-map");
      if (width < 500) await map.locator("summary").click();
      await expectToFit(page, width);
      await expectNothingSerious(page);
      await map.getByRole("link", { name: /14/ }).click();
      await expect(page).toHaveURL(/lessons\/14/);
    });
  });
}

