import { readFileSync } from "node:fs";

import { asked, expect, type Handler, model, test, translation } from "./app";

const box = "textarea[aria-describedby=counter]";
const answer = (text: string) => ({ body: { model: "ko-en", seconds: 0.1, translations: [translation(text)] } });

for (const [locale, words] of [
  ["en-US", { looked: "Attends to", hint: "Hover over a word", others: "Other translations", doubtful: "doubtful", fixed: "Starts with I was" }],
  ["ko-KR", { looked: "어텐션 대상:", hint: "단어에 마우스를 올리면", others: "다른 번역", doubtful: "의심스러움", fixed: "고정된 시작: I was" }],
] as const) {
  test.describe(`in ${locale}`, () => {
    test.use({ locale });

    test("type, read, hover, choose another word", async ({ page, open }) => {
      await open("#/translate");
      await page.locator(box).pressSequentially("나는 학생이다.");
      const output = page.getByTestId("translation");
      await expect(output).toHaveText("I am a student.");
      await expect(page).toHaveURL(/q=%EB%82%98/);
      await expect(page.getByText(words.hint)).toBeVisible();
      await expect(page.getByRole("heading", { name: words.others })).toBeVisible();
      await expect(page.getByTestId("alternatives").locator("mark")).toHaveText("teacher.");

      await output.getByRole("button", { name: "am" }).hover();
      await expect(page.getByTestId("band")).toContainText("✓");
      await expect(page.getByTestId("band")).toContainText("96.0%");
      await expect(page.getByTestId("sources")).toContainText(`am 80.0%. ${words.looked}`);
      await expect(page.getByTestId("sources")).toContainText("학생이다 90.0%");
      const marked = page.locator(".mirror mark").filter({ hasText: "학생이다." });
      await expect(marked).toHaveClass(/strong/);
      await expect(page.locator(".mirror mark").filter({ hasText: "나는" })).not.toHaveClass(/strong/);
      await expect(output.getByRole("button", { name: "student." })).toHaveAttribute("title", new RegExp(words.doubtful));

      await output.getByRole("button", { name: "am" }).click();
      await page.getByRole("menuitem", { name: /was/ }).click();
      await expect(output).toHaveText("I was indeed");
      await expect(page.locator(".chip")).toContainText(words.fixed);
      await page.goBack();
      await expect(output).toHaveText("I am a student.");
      await page.goForward();
      await expect(output).toHaveText("I was indeed");
    });
  });
}

test("an address brings back what was on the screen", async ({ page, open }) => {
  const bodies: unknown[] = [];
  await open(`#/translate?q=${encodeURIComponent("나는 학생이다.")}&prefix=I+was&beam=8&glossary=${encodeURIComponent("학생 = pupil")}`, {
    "POST /v1/translate": (request) => {
      bodies.push(asked(request));
      return { body: { model: "ko-en", seconds: 0.1, translations: [translation("나는 학생이다.", "I was")] } };
    },
  });
  await expect(page.getByTestId("translation")).toHaveText("I was indeed");
  await expect(page.locator(box)).toHaveValue("나는 학생이다.");
  expect(bodies).toEqual([{ model: "ko-en", beam_size: 8, glossary: { 학생: "pupil" }, text: "나는 학생이다.", n_best: 4, confidence: true, alignment: true, prefix: "I was" }]);
});

test("an older answer never comes after a newer one", async ({ page, open }) => {
  await open("#/translate", {
    "POST /v1/translate": (request) => {
      const text = String(asked(request).text);
      return { ...answer(text), after: text === "slow" ? 1500 : 50 };
    },
  });
  const asking = page.waitForRequest("**/v1/translate");
  await page.locator(box).fill("slow");
  await asking;
  await page.locator(box).fill("quick");
  await expect(page.getByTestId("translation")).toHaveText("QUICK");
  await page.waitForTimeout(1800);
  await expect(page.getByTestId("translation")).toHaveText("QUICK");
});

test("typing asks once, not at every letter", async ({ page, open }) => {
  let times = 0;
  await open("#/translate", { "POST /v1/translate": (request) => (times++, answer(String(asked(request).text))) });
  await page.locator(box).pressSequentially("abcdefghij", { delay: 40 });
  await expect(page.getByTestId("translation")).toHaveText("ABCDEFGHIJ");
  expect(times).toBe(1);
});

test("word by word where the search is quick", async ({ page, open }) => {
  const event = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  const stream: Handler = (request) => ({
    headers: { "Content-Type": "text/event-stream" },
    body: event("token", { text: "I", token: "▁I", probability: 0.9 }) + event("done", translation(String(asked(request).text))),
  });
  await open(`#/translate?q=${encodeURIComponent("나는 학생이다.")}`, { "POST /v1/stream": stream });
  await page.getByText("Fast (greedy)").click();
  await expect(page).toHaveURL(/beam=1/);
  const asking = page.waitForRequest("**/v1/stream");
  await page.locator(box).fill("왕자는 공주를 구했다.");
  expect(((await asking).postDataJSON() as { beam_size: number }).beam_size).toBe(1);
  await expect(page.getByTestId("translation")).toHaveText("The prince the princess saved.");
});

test("the words are reached by keys", async ({ page, open }) => {
  await open("#/translate?q=one+two+three");
  const word = page.getByTestId("translation").getByRole("button");
  await word.first().focus();
  await page.keyboard.press("ArrowRight");
  await expect(word.nth(1)).toBeFocused();
  await expect(page.getByTestId("sources")).toContainText("TWO");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("menuitem").first()).toBeFocused();
  await page.keyboard.press("ArrowDown");
  await expect(page.getByRole("menuitem").nth(1)).toBeFocused();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("menu")).toHaveCount(0);
  await expect(word.nth(1)).toBeFocused();
});

test("the glossary is sent, kept, and its wrong lines are shown", async ({ page, open }) => {
  await open("#/translate?q=a");
  await page.getByText("Glossary").click();
  const asking = page.waitForRequest((request) => request.url().endsWith("/v1/translate") && request.postData()!.includes("glossary"));
  await page.getByLabel("One entry per line").fill("왕자 = crown prince\noops");
  expect(((await asking).postDataJSON() as { glossary: object }).glossary).toEqual({ 왕자: "crown prince" });
  await expect(page.getByText("Line 2: “oops” does not contain =.")).toBeVisible();
  await expect(page).not.toHaveURL(/glossary=/);
  await open("#/translate?q=b");
  await page.reload();
  await expect(page.getByLabel("One entry per line")).toHaveValue("왕자 = crown prince\noops");
});

test("sentences are marked in both boxes, and each word in its own", async ({ page, open }) => {
  const source = "나는 학생이다. 왕자는 온다.";
  const words = ["I", "am", "He", "comes."];
  const aligned = (source_words: string[], target_words: string[]) => ({ source_words, target_words, weights: [[0.9, 0.1], [0.1, 0.9]] });
  const translated = {
    ...translation(source),
    text: words.join(" "),
    words,
    alignment: null,
    notes: ["unknown: 온다", "copied: 42"],
    note_details: [{ code: "unknown_words", text: "unknown: 온다", words: ["온다"] }, { code: "copied_words", text: "copied: 42", words: ["42"] }],
    sentences: [
      { source_start: 0, source_end: 8, start: 0, end: 4, alignment: aligned(["나는", "학생이다."], ["I", "am"]) },
      { source_start: 9, source_end: 16, start: 5, end: 14, alignment: aligned(["왕자는", "온다."], ["He", "comes."]) },
    ],
  };
  await open(`#/translate?q=${encodeURIComponent(source)}`, { "POST /v1/translate": () => ({ body: { model: "ko-en", seconds: 0.1, translations: [translated] } }) });
  await page.getByTestId("translation").getByRole("button", { name: "comes." }).hover();
  await expect(page.getByTestId("sources")).toContainText("온다 90.0%");
  await expect(page.locator(".mirror mark.strong")).toHaveText("온다.");
  expect((await page.locator(".mirror .same").allTextContents()).join("")).toBe("왕자는 온다.");
  await page.locator(box).click({ position: { x: 30, y: 30 } });
  await expect(page.getByTestId("translation").locator("button.same").first()).toHaveText("I");
  await expect(page.getByTestId("band")).toContainText("check");
  await expect(page.getByTestId("unfamiliar")).toContainText("Words this model does not know: 온다");
  await expect(page.getByText("Copied from the source: 42")).toBeVisible();
  await expect(page.getByRole("link", { name: "Inspect in detail" })).toHaveAttribute("href", /^#\/inspect\?model=ko-en&q=/);
});

test("the levels of confidence are in one row", async ({ page, open }) => {
  await open("#/translate?q=one+two");
  const items = page.locator(".legend .item");
  await expect(items).toHaveCount(4);
  expect(new Set(await items.evaluateAll((found) => found.map((item) => Math.round(item.getBoundingClientRect().bottom)))).size).toBe(1);
});

test.describe("on a phone", () => {
  test.use({ viewport: { width: 360, height: 780 }, hasTouch: true, isMobile: true });

  test("the menu of a word tells what it attends to, above the other words", async ({ page, open }) => {
    await open("#/translate?q=%EB%82%98%EB%8A%94+%ED%95%99%EC%83%9D%EC%9D%B4%EB%8B%A4.");
    await page.getByTestId("translation").getByRole("button", { name: "am" }).tap();
    await expect(page.getByRole("menuitem").first()).toBeVisible();
    await expect(page.getByTestId("menu-about")).toContainText("Attends to 학생이다 90.0%");
    await expect(page.getByTestId("sources")).toBeHidden();
  });

  test("the whole link is shown", async ({ page, open }) => {
    await open("#/translate?model=ko-en");
    await page.getByText("Share a link").click();
    expect(await page.getByTestId("share").locator("code").evaluate((code) => code.scrollWidth - code.clientWidth)).toBeLessThanOrEqual(0);
  });
});

test("the history is kept, and a link leaves out the text", async ({ page, open }) => {
  await open("#/translate?q=one+two");
  await expect(page.getByTestId("translation")).toHaveText("ONE TWO");
  await page.getByText("Share a link").click();
  const share = page.getByTestId("share");
  await expect(share.locator("code")).not.toContainText("one");
  await share.getByLabel("Include the text").check();
  await expect(share.locator("code")).toContainText("q=one+two");
  const history = page.getByTestId("history");
  await history.locator("summary").click();
  await expect(history.getByRole("link", { name: /one two/ })).toBeVisible({ timeout: 10_000 });
  await history.getByRole("button", { name: "Clear" }).click();
  await expect(history.getByRole("link")).toHaveCount(0);
});

test("too long a text is not sent", async ({ page, open }) => {
  let times = 0;
  await open("#/translate", { "POST /v1/translate": () => (times++, answer("x")) });
  await page.locator(box).fill("a".repeat(101));
  await expect(page.getByText("101 of 100 characters")).toBeVisible();
  await expect(page.getByRole("alert")).toContainText("longer than the 100 characters");
  await page.waitForTimeout(600);
  expect(times).toBe(0);
});

test("a text that looks like code stays a text", async ({ page, open }) => {
  const evil = "<img src=x onerror=alert(1)> <script>alert(2)</script>";
  await open(`#/translate?q=${encodeURIComponent(evil)}`);
  await expect(page.getByTestId("translation")).toHaveText(evil.toUpperCase());
  await expect(page.locator("img")).toHaveCount(0);
});

test.describe("when things go wrong", () => {
  test.use({ expected: /status of (503|429|504|400|403)|ERR_FAILED/ });

  test("a busy server is asked again after Retry-After", async ({ page, open }) => {
    let times = 0;
    const busy = { status: 503, headers: { "Retry-After": "1" }, body: { error: "the queue is full" } };
    await open("#/translate?q=a", { "POST /v1/translate": () => (times++ ? answer("a") : busy) });
    await expect(page.getByRole("alert")).toContainText("The server is busy. The page tries again automatically. the queue is full");
    await expect(page.getByText(/Next attempt in \d s/)).toBeVisible();
    await expect(page.getByTestId("translation")).toHaveText("A");
    await expect(page.getByRole("alert")).toHaveCount(0);
  });

  for (const [status, text] of [
    [429, "Too many requests in a short time."],
    [504, "The request took too long. Try a shorter text"],
    [400, "The server rejected the request. Its message: no such thing"],
  ] as const) {
    test(`${status} is shown`, async ({ page, open }) => {
      await open("#/translate?q=a", { "POST /v1/translate": () => ({ status, body: { error: "no such thing" } }) });
      await expect(page.getByRole("alert")).toContainText(text);
      await expect(page.getByRole("button", { name: "Try now" })).toBeVisible();
    });
  }

  test("a server that is gone is shown, and found again", async ({ page, open }) => {
    let isGone = true;
    await open("#/translate?q=a");
    await expect(page.getByTestId("translation")).toHaveText("A");
    await page.route("**/v1/translate", (route) => (isGone ? route.abort() : route.fallback()));
    await page.locator(box).fill("b");
    await expect(page.getByRole("alert")).toContainText("The server cannot be reached.");
    isGone = false;
    await expect(page.getByTestId("translation")).toHaveText("B");
  });

  test("a key is asked for and used", async ({ page, open }) => {
    const locked: Handler = (request) =>
      request.headers().authorization === "Bearer open sesame" ? { body: { models: [model()] } } : { status: 403, body: { error: "an API key is needed" } };
    await open("#/translate", { "GET /v1/models": locked });
    await page.getByLabel("API key").fill("open sesame");
    await page.getByRole("button", { name: "Use this key" }).click();
    await expect(page.locator(box)).toBeVisible();
    await page.reload();
    await expect(page.locator(box)).toBeVisible();
  });
});

test("a text file goes through in pieces, line by line", async ({ page, open }) => {
  const sizes: number[] = [];
  let goOn = (): void => undefined;
  const seen = new Promise<void>((resolve) => (goOn = resolve));
  await open("#/translate", {
    "POST /v1/translate": async (request) => {
      const texts = [asked(request).text].flat();
      sizes.push(texts.length);
      if (sizes.length === 2) await seen; // the second piece waits until the first has been read
      return { body: { model: "ko-en", seconds: 0.1, translations: texts.map((text) => translation(text)) } };
    },
  });
  const lines = Array.from({ length: 70 }, (_, index) => (index === 3 ? "" : `line ${index}`));
  await page.getByLabel("Open a file").setInputFiles({ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from(`${lines.join("\r\n")}\r\n`) });
  await expect(page.getByText("32 of 69 lines")).toBeVisible();
  await expect(page.getByRole("progressbar")).toBeVisible();
  goOn();
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download notes.en.txt" }).click();
  const found = await download;
  expect(found.suggestedFilename()).toBe("notes.en.txt");
  expect(readFileSync(await found.path(), "utf8")).toBe(`${lines.join("\n").toUpperCase()}\n`);
  expect(sizes).toEqual([32, 32, 5]);
});

test("a file with markup goes to the server whole", async ({ page, open }) => {
  await open("#/translate", {
    "POST /translate_file": () => ({ body: { translatedFileUrl: "http://inner-name:5000/download_file/abc123" } }),
    "GET /download_file/abc123": () => ({ headers: { "Content-Type": "text/html" }, body: "<p>I</p>" }),
  });
  await page.getByLabel("Open a file").setInputFiles({ name: "a.html", mimeType: "text/html", buffer: Buffer.from("<p>나는</p>") });
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download a.en.html" }).click();
  expect(readFileSync(await (await download).path(), "utf8")).toBe("<p>I</p>");
});

test("a document shows its progress, and what could not be kept", async ({ page, open }) => {
  const event = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
  const notes = ["text in pictures and embedded files is not translated"];
  const body = event("progress", { done: 2, total: 5 }) + event("done", { translatedFileUrl: "http://inner/download_file/abc", notes });
  await open("#/translate", {
    "POST /translate_file": () => ({ headers: { "Content-Type": "text/event-stream" }, body }),
    "GET /download_file/abc": () => ({ headers: { "Content-Type": "application/octet-stream" }, body: "PK" }),
  });
  await page.getByLabel("Open a file").setInputFiles({ name: "a.docx", mimeType: "application/octet-stream", buffer: Buffer.from("PK") });
  await expect(page.getByRole("list", { name: "What was not translated or kept" })).toContainText("text in pictures");
  await expect(page.getByRole("button", { name: "Download a.en.docx" })).toBeVisible();
});

test("a file that cannot be sent says why", async ({ page, open }) => {
  await open("#/translate");
  const give = (name: string, text: string) => page.getByLabel("Open a file").setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
  await give("long.txt", `short\n${"x".repeat(101)}`);
  await expect(page.getByRole("alert")).toContainText("Line 2 is longer than the 100 characters");
  await give("bytes.txt", "a\u0000b");
  await expect(page.getByRole("alert")).toContainText("not a text file");
});

test("copies and downloads", async ({ page, open, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]).catch(() => undefined);
  await open("#/translate?q=one+two");
  await expect(page.getByTestId("translation")).toHaveText("ONE TWO");
  await page.getByRole("button", { name: "Copy", exact: true }).first().click();
  await expect(page.getByRole("button", { name: "Copied" })).toBeVisible();
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download" }).click();
  expect(readFileSync(await (await download).path(), "utf8")).toBe("ONE TWO\n");
});

test("each kind of translation is shown, and one can be chosen", async ({ page, open }) => {
  const labels: (string | undefined)[] = [];
  await open(`#/translate?q=${encodeURIComponent("나는 학생이다.")}`, {
    "GET /v1/models": () => ({ body: { models: [model("ko-en", "ko", "en", { labels: ["polite", "rare"] })] } }),
    "POST /v1/translate": (request) => {
      const { label, text } = asked(request);
      labels.push(label);
      return { body: { model: "ko-en", seconds: 0.1, translations: [translation(String(text), label ? `So ${label}` : "")] } };
    },
  });
  const kinds = page.getByTestId("labels");
  await expect(kinds.getByRole("listitem")).toHaveText([/Polite\s+So polite indeed/, /rare\s+So rare indeed/]);
  await expect(page.getByTestId("translation")).toHaveText("I am a student.");
  await kinds.getByRole("button", { name: "Polite" }).click();
  await expect(page.getByTestId("translation")).toHaveText("So polite indeed");
  await expect(page).toHaveURL(/label=polite/);
  await expect(kinds.getByRole("button", { name: "Polite" })).toHaveAttribute("aria-pressed", "true");
  await kinds.getByRole("button", { name: "Polite" }).click();
  await expect(page.getByTestId("translation")).toHaveText("I am a student.");
  expect(labels.filter((label) => label === "rare")).toHaveLength(1);
});
