/**
 * Compiles src/runtime/kernels.c to WebAssembly and writes it as src/runtime/kernels.ts.
 *
 * Run: node packages/attendo-web/build_kernels.mjs, in frontend/. Needs clang and lld 16 (Debian: clang-16 lld-16), or others given as CLANG.
 */

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const runtime = fileURLToPath(new URL("src/runtime/", import.meta.url));
const source = join(runtime, "kernels.c");
const options = ["--target=wasm32", "-O3", "-nostdlib", "-msimd128", "-mbulk-memory", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"];
const linkerOptions = ["--no-entry", "--strip-all", "--export=__heap_base", "-z", "stack-size=16384"].join(",");

const folder = mkdtempSync(join(tmpdir(), "kernels-"));
function compile(...more) {
  const target = join(folder, "kernels.wasm");
  execFileSync(process.env.CLANG ?? "clang-16", [...options, ...more, `-Wl,${linkerOptions.replaceAll(" ", ",")}`, "-o", target, source], { stdio: "inherit" });
  return readFileSync(target).toString("base64");
}
const constants = { SIMD: compile(), RELAXED_SIMD: compile("-mrelaxed-simd", "-DRELAXED") };
rmSync(folder, { recursive: true });

const digest = createHash("sha256").update(readFileSync(source)).digest("hex");
const lines = Object.entries(constants).map(([name, code]) => `export const ${name} =\n  "${code}";\n`);
const comment = `/** kernels.c as WebAssembly, written by build_kernels.mjs. */\n\n/** Of kernels.c. */\nexport const SOURCE_SHA256 = "${digest}";\n`;
writeFileSync(join(runtime, "kernels.ts"), `${comment}\n${lines.join("\n")}`);
