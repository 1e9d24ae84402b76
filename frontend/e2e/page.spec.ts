import { makeRecord } from "../tests/fixtures/make-record";
import { expectNothingSerious, expectToFit } from "./fit";
import { expect, test, tokenRows, withoutRecord, withRecord } from "./page";

const TABS = ["attention", "steps", "beam", "why", "words", "metrics"];
const made = makeRecord();

test("is in Korean and English, and remembers", async ({ page, show }) => {
  await show(made);
  await page.getByRole("button", { name: "한국어로 보기" }).click();
  await expect(page.getByRole("heading", { name: "단어 사이의 어텐션" })).toBeVisible();
  await expect(page.locator("html")).toHaveAttribute("lang", "ko");
  await page.reload();
  await expect(page.getByRole("tab", { name: "빔 탐색" })).toBeVisible();
  await page.getByRole("button", { name: "Read in English" }).click();
  await expect(page.getByRole("tab", { name: "Beam search" })).toBeVisible();
});

test.describe("in a Korean browser", () => {
  test.use({ locale: "ko-KR" });
  test("begins in Korean", async ({ page, show }) => {
    await show(made);
    await expect(page.getByRole("tab", { name: "어텐션" })).toBeVisible();
  });
});

test("has a light and a dark theme", async ({ page, show }) => {
  await show(made);
  const ground = () => page.locator(".attendo").evaluate((element) => getComputedStyle(element).backgroundColor);
  const light = await ground();
  await page.getByRole("button", { name: "Switch to the dark theme" }).click();
  expect(await ground()).not.toBe(light);
  await expect(page.locator(".attendo")).toHaveAttribute("data-theme", "dark");
  await page.getByRole("button", { name: "Switch to the light theme" }).click();
  expect(await ground()).toBe(light);
});

test.describe("where the system is dark", () => {
  test.use({ colorScheme: "dark" });
  test("begins dark", async ({ page, show }) => {
    await show(made);
    await expect(page.locator(".attendo")).toHaveAttribute("data-theme", "dark");
  });
});

test("tabs are reached by keys, and the address keeps them", async ({ page, show }) => {
  await show(made);
  await page.getByRole("tab", { name: "Attention" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await expect(page.getByRole("tab", { name: "Beam search" })).toBeFocused();
  await expect(page.getByRole("tree")).toBeVisible();
  expect(page.url()).toMatch(/#beam$/);
});

test("the first stop of Tab leads past the header", async ({ page, show }) => {
  await show(made);
  await page.keyboard.press("Tab");
  await expect(page.getByRole("link", { name: "Skip to content" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.locator("#main")).toBeFocused();
});

for (const size of ["short", "long"]) {
  test(`fits a phone of 360 pixels, a ${size} sentence`, async ({ page, show }) => {
    await page.setViewportSize({ width: 360, height: 740 });
    const record = size === "short" ? made : makeRecord({ S: 30, T: 30, layers: 6, heads: 8 });
    for (const tab of TABS) {
      await page.goto("about:blank");
      await show(record, tab);
      await expect(page.getByRole("tabpanel")).toBeVisible();
      await expectToFit(page, 360, tab);
    }
  });
}

for (const colorScheme of ["light", "dark"] as const) {
  test(`has nothing serious for axe to find, ${colorScheme}`, async ({ page, show }) => {
    test.setTimeout(120_000);
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    for (const tab of TABS) {
      await page.goto("about:blank");
      await show(made, tab);
      if (tab === "attention") await tokenRows(page).looking.nth(1).click();
      await expectNothingSerious(page, tab);
    }
  });
}

test("nor on the page without a record, nor in the list of keys", async ({ page, show }) => {
  await show(withoutRecord());
  await expectNothingSerious(page);
  await page.getByRole("button", { name: "Shortcuts" }).click();
  await expectNothingSerious(page);
});

test("asks for nothing but itself", async ({ page, show }) => {
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  const file = await show(made);
  for (const tab of await page.getByRole("tab").all()) await tab.click();
  expect(asked.filter((url) => !url.startsWith(`file://${file}`) && !url.startsWith("data:"))).toEqual([]);
});

test.describe("without JavaScript", () => {
  test.use({ javaScriptEnabled: false });
  test("says so in both languages", async ({ page, show }) => {
    await show(made);
    const text = page.locator("noscript p");
    await expect(text).toContainText(["JavaScript, which is turned off", "지금 꺼져 있습니다"]);
    for (const one of await text.all()) await expect(one).toBeVisible();
  });
});

test("refuses a record of a newer version", async ({ page, show }) => {
  await show({ ...made, version: 2, attendo: "9.1.0" });
  await expect(page.getByRole("alert")).toContainText("The record has version 2, written by Attendo 9.1.0; this page reads versions up to 1");
});

test("names the part of a broken record", async ({ page, show }) => {
  await show({ ...made, steps: [] });
  await expect(page.getByRole("alert")).toContainText("steps: expected 6 entries, not 0");
});

test("without a record opens one from the disk, and says what is wrong with others", async ({ page, show }) => {
  await show(withoutRecord());
  await expect(page.getByRole("heading", { name: "Open a record" })).toBeVisible();
  const file = (name: string, text: string) => ({ name, mimeType: "application/json", buffer: Buffer.from(text) });
  await page.getByLabel("Choose a file").setInputFiles(file("a.json", "{oops"));
  await expect(page.getByRole("alert")).toContainText("It is not JSON");
  await page.getByLabel("Choose a file").setInputFiles(file("b.json", '{"format": "other"}'));
  await expect(page.getByRole("alert")).toContainText("not an Attendo record");
  await page.getByLabel("Choose a file").setInputFiles(file("c.json", JSON.stringify(made)));
  await expect(page.getByRole("heading", { level: 1 })).toContainText("I am a student.");
});

test("a record dropped on the page is opened", async ({ page, show }) => {
  await show(withoutRecord());
  const transfer = await page.evaluateHandle((text) => {
    const data = new DataTransfer();
    data.items.add(new File([text], "record.json", { type: "application/json" }));
    return data;
  }, JSON.stringify(made));
  await page.locator("main").dispatchEvent("drop", { dataTransfer: transfer });
  await expect(page.getByRole("tab", { name: "Attention" })).toBeVisible();
});

test("a text that looks like code stays a text", async ({ page, show }) => {
  const evil = '</script><img src=x onerror="document.title=1"><script>document.title=2</script>';
  const record = structuredClone(made);
  record.src.text = record.src.words[0] = record.src.tokens[0].text = evil;
  record.notes.push(evil);
  await show(record);
  await expect(page.getByRole("heading", { level: 1 })).toContainText(evil);
  await expect(page).toHaveTitle(/student/);
  await expect(page.locator("img")).toHaveCount(0);
});

test("even code that got into the page does not run", async ({ page }, info) => {
  const { writeFileSync, mkdirSync } = await import("node:fs");
  mkdirSync(info.outputDir, { recursive: true });
  const file = info.outputPath("evil.html");
  writeFileSync(file, withRecord(JSON.stringify(made)).replace("</body>", "<script>document.body.dataset.owned = 1</script></body>"));
  await page.goto(`file://${file}`);
  await expect(page.getByRole("tab", { name: "Attention" })).toBeVisible();
  await expect(page.locator("body")).not.toHaveAttribute("data-owned");
});

test("works in a frame, as notebooks show it", async ({ page, show }) => {
  await show("<!doctype html><title>notebook</title><iframe sandbox='allow-scripts' style='width: 900px; height: 700px'></iframe>");
  await page.locator("iframe").evaluate((frame, html) => ((frame as HTMLIFrameElement).srcdoc = html), withRecord(JSON.stringify(made)));
  const frame = page.frameLocator("iframe");
  await frame.getByRole("tab", { name: "Steps" }).click();
  await expect(frame.getByTestId("step")).toContainText("Step 1 of 6");
});
