import { buildTree, continuationOf, pathTo, textOf } from "../src/inspector/analysis/beam";
import { score } from "../src/inspector/display/format";
import { readRecord } from "../src/inspector/record/record";
import { makeRecord } from "../tests/fixtures/make-record";
import { expect, test } from "./page";

const made = makeRecord();
const { beam, tgt } = readRecord(made);
const tree = buildTree(beam!);

test.beforeEach(async ({ show }) => {
  await show(made, "beam");
});

test("shows the translation first, with its score", async ({ page }) => {
  await expect(page.getByTestId("beam-path")).toHaveText(tgt.text);
  await expect(page.getByTestId("beam-score")).toHaveText(score(beam!.hypotheses[0].score));
  await expect(page.getByRole("treeitem")).toHaveCount(tree.nodes.length);
});

test("a losing word tells how its path went on, and why it ended", async ({ page }) => {
  const loser = tree.nodes.find((node) => !node.isWinner && node.depth === 1 && continuationOf(node).nodes.length > 0)!;
  await page.locator(`[data-node="${loser.key}"]`).click();
  await expect(page.getByTestId("beam-path")).toHaveText(textOf(pathTo(loser)));
  await expect(page.getByTestId("beam-score")).toHaveText(score(loser.candidate!.score));
  const onward = continuationOf(loser);
  await expect(page.getByTestId("beam-onward")).toContainText(textOf(pathTo(onward.last)));
});

test("a word that was dropped at once says so", async ({ page }) => {
  const dropped = tree.nodes.find((node) => node.outcome === "pruned" && node.candidate!.why === "beam_full")!;
  await page.locator(`[data-node="${dropped.key}"]`).hover();
  await expect(page.getByTestId("beam-pointed")).toContainText("better candidates fill the beam");
  await page.locator(`[data-node="${dropped.key}"]`).click();
  await expect(page.getByTestId("beam-outcome")).toHaveText("pruned: better candidates fill the beam");
  await expect(page.getByTestId("beam-onward")).toContainText("did not follow this path any further");
});

test("is explored by keys", async ({ page }) => {
  await page.locator('[data-node="0"]').focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await expect(page.getByTestId("beam-path")).toHaveText("I am");
  await page.keyboard.press("ArrowDown");
  await expect(page.getByTestId("beam-path")).not.toHaveText("I am");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  await expect(page.getByTestId("beam-path")).toHaveText("(nothing yet)");
});

test("hides dropped branches, and zooms", async ({ page }) => {
  const width = async () => (await page.getByRole("tree").boundingBox())!.width;
  const before = await width();
  await page.getByRole("button", { name: "Zoom in" }).click();
  expect(await width()).toBeGreaterThan(before * 1.2);
  await page.getByRole("button", { name: "Fit" }).click();
  expect(await width()).toBeLessThan(1200);
  await page.getByLabel("Show pruned branches").uncheck();
  await expect(page.getByRole("treeitem")).toHaveCount(tree.nodes.filter((node) => node.outcome !== "pruned").length);
});
