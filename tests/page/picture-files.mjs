// The check of the pictures that the README and the book show. `pictures.mjs` makes them.

import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { check, equal, holds } from "./browser.mjs";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PAGES = ["README.md", "docs/how-to/page.md"];
const MOST_BYTES = 150_000;

/** Runs the checks. */
export async function checkPictures() {
  const shown = PAGES.flatMap((page) => picturesOf(page));

  await check("each picture of the page is there, light and dark, and small", () => {
    for (const [page, light, dark] of shown) {
      equal(dark, light.replace("-light.", "-dark."), `the dark picture in ${page}`);
      for (const file of [light, dark]) {
        holds(existsSync(file), `${page}: ${file} is missing; run \`node tests/page/pictures.mjs target/debug/vary\``);
        const { size } = statSync(file);
        holds(size <= MOST_BYTES, `${file} has ${size} bytes; ${MOST_BYTES} are the most`);
      }
    }
    return `${shown.length} pictures`;
  });

  await check("the README and the book show each picture that was made", () => {
    const made = readdirSync(join(ROOT, "docs/images")).filter((it) => it.startsWith("page-")).sort();
    for (const page of PAGES) {
      const files = shown.filter(([of]) => of === page).flatMap(([, ...files]) => files.map((it) => basename(it)));
      equal(files.sort(), made, page);
    }
  });
}

/** The pictures in a page: the page, the light file and the dark one. */
function picturesOf(page) {
  const text = readFileSync(join(ROOT, page), "utf8");
  const file = (element, attribute) => join(ROOT, dirname(page), element.match(new RegExp(`${attribute}="([^"]+)"`))?.[1] ?? "");
  return [...text.matchAll(/<picture>.*?<\/picture>/gs)].map(([it]) => [page, file(it, " src"), file(it, "srcset")]);
}
