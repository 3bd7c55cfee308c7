// Makes the pictures of the README and of the book: `node pictures.mjs VARY`, where VARY is the program. Each shows a gateway
// with one of the example configurations, light and dark. Look at them before you commit them.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Visitor, launch, tokenOf } from "./browser.mjs";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const vary = resolve(process.argv[2]);
/** The README shows them at half of their width. */
const SCALE = 2;

/** Each picture: the configuration behind it, the size of the window, the view, and what is done there. */
const PICTURES = {
  "page-variants": {
    configuration: "context-budgets",
    width: 1120,
    height: 700,
    view: "/variants",
    act: (page) => page.waitForSelector(".grid tbody .tokens"),
  },
  "page-calls": {
    configuration: "weather",
    width: 1120,
    height: 700,
    view: "/calls?tool=weather:get_weather&clients=any,json,markdown",
    act: async (page) => {
      await page.getByLabel("location").fill("Bern");
      await page.getByRole("button", { name: /^Call it as/ }).click();
      await page.waitForSelector(".results .card");
    },
  },
};

/** A gateway with a configuration, from which the page may call tools: `{newAddress, stop}`. */
async function serve(configuration) {
  const folder = await mkdtemp(join(tmpdir(), "vary-pictures-"));
  const file = join(folder, "vary.yaml");
  await writeFile(file, `admin-calls: on\n${await readFile(join(ROOT, `examples/configurations/${configuration}.yaml`), "utf8")}`);
  const options = { cwd: ROOT, env: { ...process.env, XDG_STATE_HOME: folder } };
  const gateway = spawn(vary, ["serve", file, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"], { ...options, stdio: ["ignore", "pipe", "pipe"] });
  const stop = async () => {
    const ended = once(gateway, "exit");
    if (gateway.kill("SIGTERM")) await ended;
    await rm(folder, { recursive: true });
  };
  const admin = await printed(gateway, /status: vary status (\S+)/);
  const newAddress = async () => (await promisify(execFile)(vary, ["open", admin, "--print"], options)).stdout.trim();
  await isUp(await newAddress());
  return { newAddress, stop };
}

/** What a program prints, as soon as it matches. */
function printed(program, pattern) {
  return new Promise((resolve, reject) => {
    let text = "";
    const take = (chunk) => {
      text += chunk;
      const found = text.match(pattern);
      if (found) resolve(found[1]);
    };
    program.stdout.on("data", take);
    program.stderr.on("data", take);
    program.on("error", reject);
    program.on("exit", (code) => reject(new Error(`${vary} ended with ${code}:\n${text}`)));
  });
}

/** Waits for the servers: cargo may compile them first. */
async function isUp(address) {
  const headers = { Authorization: `Bearer ${await tokenOf(address)}` };
  for (let waited = 0; waited < 600; waited++) {
    const status = await (await fetch(new URL("/status", address), { headers })).json();
    if (status.servers.every(({ state, tools }) => state === "up" && tools !== undefined)) return;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  throw new Error("a server is still not up after five minutes");
}

/** A screenshot as WebP, which the browser itself writes. */
async function webp(browser, png) {
  const page = await browser.newPage();
  const data = await page.evaluate(async (png) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
    const canvas = new OffscreenCanvas(image.width, image.height);
    canvas.getContext("2d").drawImage(image, 0, 0);
    const blob = await canvas.convertToBlob({ type: "image/webp", quality: 0.75 });
    return [...new Uint8Array(await blob.arrayBuffer())];
  }, png.toString("base64"));
  await page.close();
  return Buffer.from(data);
}

const browser = await launch();
for (const [name, { configuration, width, height, view, act }] of Object.entries(PICTURES)) {
  const { newAddress, stop } = await serve(configuration);
  for (const colorScheme of ["light", "dark"]) {
    const visitor = await Visitor.open(browser, await newAddress(), { viewport: { width, height }, deviceScaleFactor: SCALE, colorScheme });
    await visitor.view(view);
    await act(visitor.page);
    await visitor.page.waitForTimeout(400);
    const file = join(ROOT, `docs/images/${name}-${colorScheme}.webp`);
    const picture = await webp(browser, await visitor.page.screenshot());
    await writeFile(file, picture);
    console.log(`${file}: ${picture.length} bytes`);
    await visitor.page.context().close();
  }
  await stop();
}
await browser.close();
