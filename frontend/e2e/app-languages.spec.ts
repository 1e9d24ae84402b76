import { asked, expect, model, test, translation } from "./app";

const box = "textarea[aria-describedby=counter]";

test("languages swap, and the translation becomes the text", async ({ page, open }) => {
  await open(`#/translate?q=${encodeURIComponent("나는")}`, { "GET /v1/models": () => ({ body: { models: [model(), model("en-ko", "en", "ko"), model("ko-de", "ko", "de")] } }) });
  await expect(page.getByTestId("translation")).toHaveText("I");
  await page.getByRole("button", { name: "Swap the languages" }).click();
  await expect(page.getByLabel("From")).toHaveValue("en");
  await expect(page.locator(box)).toHaveValue("I");
  await expect(page).toHaveURL(/model=en-ko/);
  await page.getByLabel("From").selectOption("ko");
  await page.getByRole("combobox").nth(1).selectOption("de");
  await expect(page).toHaveURL(/model=ko-de/);
});

test("two models translate where none does directly, and the page says so", async ({ page, open }) => {
  const asks: Record<string, unknown>[] = [];
  await open(`#/translate?q=${encodeURIComponent("나는")}`, {
    "GET /v1/models": () => ({ body: { models: [model(), model("en-de", "en", "de")], pivots: [{ source: "ko", target: "de", via: "en" }] } }),
    "POST /v1/translate": (request) => {
      asks.push(request.postDataJSON() as Record<string, unknown>);
      return { body: { model: "en-de", seconds: 0.1, translations: [translation("나는")] } };
    },
  });
  await page.getByRole("combobox").last().selectOption({ label: "German (via English)" });
  await expect(page.getByTestId("via")).toContainText("ko-en, then en-de");
  await expect(page.getByTestId("translation")).toHaveText("I");
  // Two steps have no model of their own and no alignment, and are not streamed.
  await page.getByText("Fast (greedy)").click();
  await expect.poll(() => asks.at(-1)?.beam_size).toBe(1);
  expect(asks.at(-1)).toMatchObject({ source: "ko", target: "de", alignment: false });
  expect(asks.at(-1)).not.toHaveProperty("model");
  await expect(page.getByTestId("model-card")).toHaveCount(2);
  await expect(page.getByText("Glossary")).toHaveCount(0);
  await expect(page).toHaveURL(/to=de/);
});

test("the language is detected first, and shown", async ({ page, open }) => {
  let ranked = [{ language: "en", confidence: 98 }];
  const models: (string | undefined)[] = [];
  await open(`#/translate?q=${encodeURIComponent("I am")}&detect=1`, {
    "GET /v1/models": () => ({ body: { models: [model(), model("en-ko", "en", "ko")] } }),
    "POST /detect": () => ({ body: ranked }),
    "POST /v1/translate": (request) => {
      models.push(asked(request).model);
      return { body: { model: "m", seconds: 0.1, translations: [translation(String(asked(request).text))] } };
    },
  });
  await expect(page.getByTestId("translation")).toHaveText("I AM");
  expect(models).toEqual(["en-ko"]);
  await expect(page.getByLabel("From").locator("option:checked")).toHaveText("Detected: English (98.0%)");
  ranked = [{ language: "en", confidence: 1.6 }];
  await page.locator(box).fill("Bonjour");
  await expect(page.getByText("The language of the text was not recognized.")).toBeVisible();
});

test("a text that seems to be in another language than chosen is shown", async ({ page, open }) => {
  const unfamiliar = { num_tokens: 3, num_unseen: 3, bits_per_character: null };
  const answer = translation("I am");
  await open(`#/translate?q=${encodeURIComponent("I am")}`, {
    "GET /v1/models": () => ({ body: { models: [model(), model("en-ko", "en", "ko")] } }),
    "POST /detect": () => ({ body: [{ language: "en", confidence: 98 }] }),
    "POST /v1/translate": () => ({ body: { model: "m", seconds: 0.1, translations: [{ ...answer, confidence: { ...answer.confidence, unfamiliar } }] } }),
  });
  await page.getByTestId("other-language").getByRole("button", { name: "Translate from English" }).click();
  await expect(page).toHaveURL(/model=en-ko/);
});
