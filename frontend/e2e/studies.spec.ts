import { signed } from "../src/inspector/display/format";
import { similarities, sinusoidal } from "../src/inspector/analysis/positions";
import { readRecord } from "../src/inspector/record/record";
import { makeRecord } from "../tests/fixtures/make-record";
import { expect, test } from "./page";

const made = makeRecord();
const record = readRecord(made);

test("attribution tells the value of a pair of words", async ({ page, show }) => {
  await show(made, "why");
  await page.getByRole("application", { name: /^Attribution/ }).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await expect(page.getByTestId("reading")).toHaveText(`am → 학생이다.: ${signed(record.attribution!.words[1][1], 3)}`);
  await page.getByText("Tokens", { exact: true }).click();
  await expect(page.getByTestId("reading")).toHaveText(`am → 학생: ${signed(record.attribution!.tokens[1][1], 3)}`);
});

test("ablation puts the head that matters most first, and shows what became of the translation", async ({ page, show }) => {
  await show(made, "why");
  const worst = [...record.ablation!.heads].sort((a, b) => a.change - b.change)[0];
  const first = page.getByTestId("ablation").getByRole("listitem").first();
  await expect(first).toContainText(`Layer ${worst.layer + 1}, head ${worst.head + 1}`);
  await expect(first).toContainText(signed(worst.change, 3));
  await expect(first).toContainText(worst.text!);
  await page.getByRole("button", { name: "Show all 24" }).click();
  await expect(page.getByTestId("ablation").getByRole("listitem")).toHaveCount(24);
});

test("positions: the model's own, both orders, and the formula by sliders", async ({ page, show }) => {
  await show(made, "words");
  const reading = page.getByTestId("position-reading");
  const map = page.getByRole("application", { name: "Position vectors: 64 positions by 16 dimensions" });
  await map.focus();
  await page.keyboard.press("ArrowRight");
  await expect(reading).toHaveText(`Position 5, dimension 1: ${Math.cos(5).toFixed(3)}`);
  await page.getByText("Halves (Hugging Face Marian)").click();
  await expect(reading).toHaveText(`Position 5, dimension 1: ${Math.sin(5 / 10000 ** (2 / 16)).toFixed(3)}`);
  await page.getByText("Formula").click();
  await page.getByRole("slider", { name: /^Dimensions/ }).fill("32");
  await page.getByRole("slider", { name: /^Positions/ }).fill("50");
  await expect(page.getByRole("application", { name: "Position vectors: 50 positions by 32 dimensions" })).toBeVisible();
  await page.getByRole("slider", { name: /^Position \d/ }).fill("7");
  const alike = [...similarities(sinusoidal(50, 32, "halves"), 7)];
  const nearest = Math.max(...alike.filter((_, index) => index !== 7));
  await expect(page.getByTestId("nearest")).toContainText(nearest.toFixed(3));
});

test("neighbors of a word", async ({ page, show }) => {
  await show(made, "words");
  await page.getByRole("group", { name: "Translation" }).getByRole("button", { name: "student" }).click();
  await expect(page.getByTestId("nearest-tokens")).toContainText("Nearest to “student”");
  await expect(page.getByTestId("nearest-tokens").locator(".number")).toHaveText(record.embeddings!.tgt[3].map((one) => one.similarity.toFixed(3)));
});

test("figures sort, and lead to the head", async ({ page, show }) => {
  await show(made, "metrics");
  await page.getByRole("button", { name: "Entropy" }).click();
  const shown = await page.getByTestId("metrics").locator("tbody tr td:nth-of-type(2)").allTextContents();
  expect(shown).toEqual(record.measures.cross.flat().map((one) => one.entropy!).sort((a, b) => b - a).map((value) => value.toFixed(2)));
  await page.getByRole("button", { name: "Show layer 2, head 4" }).click();
  await expect(page.getByTestId("matrix-name")).toHaveText("Cross · Layer 2 · Head 4");
});

test("what is not in the record says how to get it", async ({ page, show }) => {
  await show(makeRecord({ isBare: true }), "why");
  await expect(page.locator("code")).toHaveText(['attendo look MODEL "…" --attribution', 'attendo look MODEL "…" --ablation']);
  await page.getByRole("tab", { name: "Beam search" }).click();
  await expect(page.getByText("so there was no search")).toBeVisible();
  await page.getByRole("tab", { name: "Steps" }).click();
  await expect(page.getByText("To add it:").filter({ visible: true })).toHaveText("Not in this record. To add it: attendo look MODEL \"…\"");
  await page.getByRole("tab", { name: "Embeddings" }).click();
  await expect(page.getByText("no embedding table")).toBeVisible();
  await expect(page.getByTestId("positions")).toBeVisible();
});
