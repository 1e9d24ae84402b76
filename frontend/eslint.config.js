import js from "@eslint/js";
import svelte from "eslint-plugin-svelte";
import ts from "typescript-eslint";

import svelteConfig from "./svelte.config.js";

export default ts.config(
  { ignores: ["node_modules/", "test-results/", "playwright-report/"] },
  js.configs.recommended,
  ...ts.configs.strict,
  ...ts.configs.stylistic,
  ...svelte.configs.recommended,
  {
    rules: {
      complexity: ["error", 10],
      "max-lines": ["error", { max: 320, skipBlankLines: true }],
      "no-console": "error",
      eqeqeq: ["error", "always", { null: "ignore" }],
      // TypeScript checks that names are defined.
      "no-undef": "off",
      // The schemas of records and responses check sizes and indices once, when they are read.
      "@typescript-eslint/no-non-null-assertion": "off",
      "@typescript-eslint/consistent-type-imports": "error",
    },
  },
  {
    files: ["**/*.svelte", "**/*.svelte.ts"],
    languageOptions: { parserOptions: { parser: ts.parser, extraFileExtensions: [".svelte"], svelteConfig } },
  },
  // One catalog per language, however many texts it has.
  { files: ["src/i18n/**"], rules: { "max-lines": "off" } },
  { files: ["e2e/**", "plugins/**"], rules: { "no-console": "off" } },
);
