import { asked, expect, type Handler, model, test, translation } from "./app";

const box = "textarea[aria-describedby=counter]";
const TEXT = "나는 학생이다.";

interface Saved {
  source_text: string;
  target_text: string;
  model?: string;
  output?: string;
  author?: string;
}

/** A server with a memory: it answers with what was saved. */
function withMemory(saved: Saved[], repaired: string | null = null): Record<string, Handler> {
  return {
    "GET /v1/models": () => ({ body: { models: [model()], has_memory: true } }),
    "POST /v1/corrections": (request) => {
      saved.push(request.postDataJSON() as Saved);
      return { body: { id: saved.length } };
    },
    "DELETE /v1/corrections/1": () => ({ body: { deleted: saved.splice(0).length } }),
    "POST /v1/translate": (request) => {
      const text = String(asked(request).text);
      const known = saved.find(({ source_text }) => source_text === text);
      const similar = { kind: "fuzzy", score: 0.9, source_text: "나는 교사이다.", target_text: "I am a teacher.", repaired_text: asked(request).repair ? repaired : null, id: 7, author: null, time: null };
      const exact = known && { kind: "exact", score: 1, source_text: text, target_text: known.target_text, id: 1, author: known.author ?? null, time: "2026-11-19T09:00:00Z" };
      const plain = { ...translation(text), memory: [similar] };
      const answer = exact ? { ...plain, text: known.target_text, words: known.target_text.split(" "), confidence: null, alignment: null, alternatives: [], memory: [exact] } : plain;
      return { body: { model: "ko-en", seconds: 0.1, translations: [answer] } };
    },
  };
}

for (const [locale, words] of [
  ["en-US", { open: "Correct", text: "The right translation", name: "Your name", save: "Save", known: "From the translation memory", remove: "Remove", use: "Use this", cancel: "Cancel" }],
  ["ko-KR", { open: "고치기", text: "올바른 번역", name: "이름", save: "저장", known: "번역 메모리에서", remove: "메모리에서 지우기", use: "이것을 사용", cancel: "취소" }],
] as const) {
  test.describe(`in ${locale}`, () => {
    test.use({ locale });

    test("correct a translation, see it again, remove it", async ({ page, open }) => {
      const saved: Saved[] = [];
      await open("#/translate", withMemory(saved));
      await page.locator(box).fill(TEXT);
      const output = page.getByTestId("translation");
      await expect(output).toHaveText("I am a student.");
      await expect(page.getByTestId("from-memory")).toHaveCount(0);

      await page.getByRole("button", { name: words.open, exact: true }).click();
      const editor = page.getByLabel(words.text);
      await expect(editor).toBeFocused();
      await expect(editor).toHaveValue("I am a student.");
      await editor.fill("I'm a pupil.");
      await page.getByLabel(words.name).fill("Kim");
      await page.getByRole("button", { name: words.save, exact: true }).click();

      await expect(output).toHaveText("I'm a pupil.");
      expect(saved).toEqual([{ source_text: TEXT, target_text: "I'm a pupil.", model: "ko-en", output: "I am a student.", author: "Kim" }]);
      await expect(page.getByTestId("from-memory")).toContainText(words.known);
      await expect(page.getByTestId("from-memory")).toContainText("Kim");
      await expect(page.getByTestId("memory-matches")).toHaveCount(0);

      await page.getByTestId("from-memory").getByRole("button", { name: words.remove }).click();
      await expect(output).toHaveText("I am a student.");
      await expect(page.getByTestId("from-memory")).toHaveCount(0);
    });

    test("a similar text is shown and can be used", async ({ page, open }) => {
      const saved: Saved[] = [];
      await open("#/translate", withMemory(saved));
      await page.locator(box).fill(TEXT);
      const matches = page.getByTestId("memory-matches");
      await expect(matches).toContainText("I am a teacher.");
      await expect(matches.locator("mark")).toHaveText("교사이다.");
      await matches.getByRole("button", { name: words.use }).click();
      await expect(page.getByLabel(words.text)).toHaveValue("I am a teacher.");
      await page.getByRole("button", { name: words.cancel, exact: true }).click();
      await expect(page.getByTestId("translation")).toHaveText("I am a student.");
      expect(saved).toEqual([]);
    });
  });
}

test("a similar text is repaired: the words that differ are the model's", async ({ page, open }) => {
  await open("#/translate", withMemory([], "I am a pupil."));
  await page.locator(box).fill(TEXT);
  const matches = page.getByTestId("memory-matches");
  await expect(matches).toContainText("I am a teacher.");
  await expect(matches.getByTestId("repaired").locator("mark")).toHaveText("pupil.");
  await matches.getByRole("button", { name: "Use this" }).click();
  await expect(page.getByLabel("The right translation")).toHaveValue("I am a pupil.");
});

test("another text closes the editor", async ({ page, open }) => {
  await open("#/translate", withMemory([]));
  await page.locator(box).fill(TEXT);
  await page.getByRole("button", { name: "Correct", exact: true }).click();
  await page.locator(box).fill("나는");
  await expect(page.getByTestId("translation")).toHaveText("I");
  await expect(page.getByTestId("correction")).toHaveCount(0);
});

test.describe("when the memory is full", () => {
  test.use({ expected: /status of 400/ });

  test("the reason is shown and the text stays", async ({ page, open }) => {
    const full: Handler = () => ({ status: 400, body: { error: "the memory is full: 5 units" } });
    await open("#/translate", { ...withMemory([]), "POST /v1/corrections": full });
    await page.locator(box).fill(TEXT);
    await page.getByRole("button", { name: "Correct", exact: true }).click();
    await page.getByLabel("The right translation").fill("I'm a pupil.");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await expect(page.getByText("the memory is full: 5 units")).toBeVisible();
    await expect(page.getByLabel("The right translation")).toHaveValue("I'm a pupil.");
  });
});

test("a server without a memory offers no corrections", async ({ page, open }) => {
  await open("#/translate");
  await page.locator(box).fill(TEXT);
  await expect(page.getByTestId("translation")).toHaveText("I am a student.");
  await expect(page.getByRole("button", { name: "Correct", exact: true })).toHaveCount(0);
});
