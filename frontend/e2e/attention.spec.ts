import { headOf, meanOf } from "../src/inspector/analysis/attention";
import { shortShare } from "../src/inspector/display/format";
import { readRecord } from "../src/inspector/record/record";
import { makeRecord } from "../tests/fixtures/make-record";
import { expect, numbersOf, test, tokenRows } from "./page";

const made = makeRecord();
const record = readRecord(made);
const cross = record.attention.cross!;
const best = record.measures.cross
  .flatMap((heads, layer) => heads.map(({ alignment }, head) => ({ layer, head, alignment: alignment! })))
  .sort((a, b) => b.alignment - a.alignment)[0];

const rowOf = (values: Float32Array, row: number, columns = cross.columns) => [...values.subarray(row * columns, (row + 1) * columns)];

test.beforeEach(async ({ show }) => {
  await show(made);
});

test("shows lines without a click, of the head that is most like an alignment", async ({ page }) => {
  await expect(page.getByTestId("arcs").locator("path")).not.toHaveCount(0);
  await expect(page.getByTestId("matrix-name")).toHaveText(`Cross · Layer ${best.layer + 1} · Head ${best.head + 1}`);
  await expect(page.getByTestId("weights")).toContainText("Largest weights");
});

test("hovering a word shows its weights, in numbers and in thickness", async ({ page }) => {
  const { looking, lookedAt } = tokenRows(page);
  await looking.nth(3).hover();
  const weights = rowOf(headOf(cross, best.layer, best.head), 3);
  expect(await numbersOf(lookedAt)).toEqual(weights.map(shortShare));
  const strongest = weights.indexOf(Math.max(...weights));
  const line = page.locator(`[data-arc="${best.head}.3.${strongest}"]`);
  expect(Number(await line.getAttribute("stroke-width"))).toBeCloseTo(10 * weights[strongest], 3);
  await expect(page.getByTestId("weights")).toContainText("“student” attends to");
  await expect(page.getByTestId("weights").locator("tbody tr").first()).toContainText(weights[strongest].toFixed(2));
  await page.mouse.move(5, 5);
  expect(await numbersOf(lookedAt)).toEqual(weights.map(() => ""));
});

test("every line ends at its word, also when numbers appear under narrow words", async ({ page }) => {
  const { looking, lookedAt } = tokenRows(page);
  await page.keyboard.press("m");
  const before = await lookedAt.last().boundingBox();
  await looking.nth(2).hover();
  expect(await lookedAt.last().boundingBox()).toEqual(before);
  const stage = (await page.getByTestId("arcs").boundingBox())!;
  for (const line of await page.locator(".line").all()) {
    const column = Number((await line.getAttribute("data-arc"))!.split(".")[2]);
    const [x, y] = (await line.getAttribute("d"))!.split(" ").slice(-2).map(Number);
    const word = (await lookedAt.nth(column).boundingBox())!;
    expect(Math.abs(stage.x + x - (word.x + word.width / 2))).toBeLessThan(1.5);
    expect(Math.abs(stage.y + y - (word.y + word.height))).toBeLessThan(1.5);
  }
});

test("hovering a source word shows who looks at it", async ({ page }) => {
  const { looking, lookedAt } = tokenRows(page);
  await lookedAt.nth(1).hover();
  const values = headOf(cross, best.layer, best.head);
  const expected = Array.from({ length: cross.rows }, (_, row) => shortShare(values[row * cross.columns + 1]));
  expect(await numbersOf(looking)).toEqual(expected);
});

test("a click keeps a word until it is let go", async ({ page }) => {
  const { looking, lookedAt } = tokenRows(page);
  await looking.nth(2).click();
  await page.mouse.move(5, 5);
  await expect(looking.nth(2)).toHaveAttribute("aria-pressed", "true");
  expect((await numbersOf(lookedAt)).join("")).not.toBe("");
  await page.getByRole("button", { name: "Unpin" }).click();
  await page.mouse.move(5, 5);
  await expect(looking.nth(2)).toHaveAttribute("aria-pressed", "false");
  await looking.nth(2).click();
  await page.mouse.move(5, 5);
  await page.keyboard.press("Escape");
  await expect(looking.nth(2)).toHaveAttribute("aria-pressed", "false");
});

test("words are reached and kept by keyboard alone", async ({ page }) => {
  const { looking, lookedAt } = tokenRows(page);
  await lookedAt.first().focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await expect(looking.nth(1)).toBeFocused();
  expect(await numbersOf(lookedAt)).toEqual(rowOf(headOf(cross, best.layer, best.head), 1).map(shortShare));
  await page.keyboard.press("Enter");
  await expect(looking.nth(1)).toHaveAttribute("aria-pressed", "true");
  await page.keyboard.press("End");
  await expect(looking.last()).toBeFocused();
  await page.keyboard.press("ArrowUp");
  await expect(lookedAt.last()).toBeFocused();
});

test("heads, layers, kinds and units are chosen by keyboard", async ({ page }) => {
  const { looking, lookedAt } = tokenRows(page);
  const name = page.getByTestId("matrix-name");
  const chip = (head: number) => page.getByRole("button", { name: `Head ${head}`, exact: true });
  await looking.nth(3).click();
  await page.keyboard.press("3");
  await page.keyboard.press("[");
  await page.mouse.move(5, 5);
  await expect(name).toHaveText("Cross · Layer 1 · Head 3");
  expect(await numbersOf(lookedAt)).toEqual(rowOf(headOf(cross, 0, 2), 3).map(shortShare));
  await page.keyboard.press("Shift+Digit1");
  await expect(chip(1)).toHaveAttribute("aria-pressed", "true");
  await expect(name).toHaveText("Cross · Layer 1 · mean of heads 1, 3");
  expect(await numbersOf(lookedAt)).toEqual(rowOf(meanOf(cross, [0], [0, 2]), 3).map(shortShare));
  await page.keyboard.press("a");
  for (const head of [1, 2, 3, 4]) await expect(chip(head)).toHaveAttribute("aria-pressed", "true");
  await expect(page.getByTestId("weights").locator("thead th")).toHaveCount(6);
  await page.keyboard.press("m");
  await expect(name).toHaveText("Cross · Layer 1 · mean of all heads");
  expect(await numbersOf(lookedAt)).toEqual(rowOf(meanOf(cross, [0], [0, 1, 2, 3]), 3).map(shortShare));
  await page.keyboard.press("]");
  await expect(name).toHaveText("Cross · Layer 2 · mean of all heads");
  await page.keyboard.press("k");
  await expect(name).toHaveText("Encoder self · Layer 2 · mean of all heads");
  await expect(looking).toHaveCount(5);
  await page.keyboard.press("w");
  await expect(looking).toHaveText(["나는", "학생이다.", "⟨end⟩"]);
});

test("shortcuts can be switched off", async ({ page }) => {
  await page.getByRole("button", { name: "Shortcuts" }).click();
  await page.getByLabel("Use single-key shortcuts").uncheck();
  await page.getByRole("button", { name: "Close" }).click();
  const before = await page.getByTestId("matrix-name").textContent();
  await page.keyboard.press("m");
  await expect(page.getByTestId("matrix-name")).toHaveText(before!);
});

test("heads are chosen by mouse: one, several, all", async ({ page }) => {
  const chip = (head: number) => page.getByRole("button", { name: `Head ${head}`, exact: true });
  await chip(2).click();
  await expect(page.getByTestId("matrix-name")).toContainText("Head 2");
  await page.getByText("Chosen", { exact: true }).click();
  await chip(4).click();
  await expect(page.getByTestId("matrix-name")).toContainText("mean of heads 2, 4");
  await tokenRows(page).looking.nth(0).hover();
  const heads = await page.locator(".line").evaluateAll((lines) => new Set(lines.map((line) => (line as SVGElement).dataset.arc?.split(".")[0])).size);
  expect(heads).toBe(2);
});

test("decoder self-attention begins at the start symbol and hides what comes later", async ({ page }) => {
  await page.getByText("Decoder self", { exact: true }).click();
  const { looking, lookedAt } = tokenRows(page);
  await expect(lookedAt.first()).toHaveText("⟨start⟩");
  await looking.nth(1).hover();
  const numbers = await numbersOf(lookedAt);
  expect(numbers.slice(2)).toEqual(["", "", "", ""]);
});

test("a head of the grid opens large, by mouse and by keys, with the record's values", async ({ page }) => {
  const grid = page.getByRole("toolbar", { name: "All layers and heads" });
  await grid.locator('[data-cell="1.2"]').click();
  await expect(page.getByTestId("matrix-name")).toHaveText("Cross · Layer 2 · Head 3");
  await expect(page.getByTestId("grid-about")).toContainText(`Focus ${record.measures.cross[1][2].focus!.toFixed(2)}`);
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  await expect(page.getByTestId("matrix-name")).toHaveText("Cross · Layer 1 · Head 4");
  const values = headOf(cross, 0, 3);
  const matrix = page.getByRole("application", { name: /^Cross/ });
  await matrix.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await expect(page.getByTestId("reading").first()).toHaveText(`am → 이다: ${values[cross.columns + 2].toFixed(3)}`);
  const fields = page.getByTestId("cells").first();
  const box = (await fields.boundingBox())!;
  await fields.hover({ position: { x: box.width * 0.5, y: box.height * 0.75 } });
  await expect(page.getByTestId("reading").first()).toHaveText(`. → 이다: ${values[4 * cross.columns + 2].toFixed(3)}`);
  await page.getByText("As a table").first().click();
  const cells = page.locator("details table tbody tr").nth(2).locator("td");
  await expect(cells).toHaveText(rowOf(values, 2).map((value) => value.toFixed(3)));
});
