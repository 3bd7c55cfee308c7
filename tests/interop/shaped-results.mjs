// What is wrong with the shaped results that a client of an SDK got, held against what the server of shaped.json said.
// As a program it reads what clients got, one per line, and prints the list of faults of each.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";

const APPLIED = "vary/applied";

/** The faults of all that a client of these tags got: `calls`, a resource and a prompt. */
export function faultsOf(server, { era, tags, calls, resource, prompt }) {
  const faults = calls.flatMap(({ tool, got, failed }) => {
    const found = failed ? [failed] : [...wrong(server, era, { tool, got }, tags)];
    return found.map((fault) => `${tool.name}: ${fault}: ${JSON.stringify(got)?.slice(0, 300)}`);
  });
  return [...faults, ...wrongResource(server, resource, tags), ...wrongPrompt(server, prompt, tags)];
}

/** What the tags of a set come to: who reads, in which form, and whether the client wants few words. */
function wanted(tags) {
  const agent = tags?.includes("agent") && !tags.includes("human");
  const human = tags?.includes("human") && !tags.includes("agent");
  const format = tags?.map((tag) => /^format=(.*)/.exec(tag)?.[1]).find(Boolean);
  return {
    form: format ?? (agent ? "json" : human ? "markdown" : undefined),
    alone: format === "json" && agent,
    lifts: format === "json",
    compact: tags?.includes("verbosity=compact") ?? false,
    samples: tags?.includes("sampling") ?? false,
    agent,
    human,
  };
}

/** What is wrong with what a client of these tags got from `tool`; nothing where all is well. */
function* wrong(server, era, { tool, got }, tags) {
  const said = server.results.tools[tool.name];
  const want = wanted(tags);
  const texts = got.content.filter((block) => block.type === "text").map((block) => block.text);
  const served = said.content.filter((block) => block.type === "text").map((block) => block.text);
  const link = got.content.find((block) => block.uri?.startsWith("vary://result/"));
  const isShort = want.compact && link !== undefined;
  const modern = era === "modern";
  const isObject = said.structuredContent?.constructor === Object;
  const value = modern || isObject ? said.structuredContent : undefined;
  const isBound = tool.outputSchema !== undefined && value !== undefined;
  const stays = isBound || tool._meta?.ui !== undefined;
  const ruled = tool.name.startsWith("told") && tags?.length > 0;
  const prose = want.form === "markdown" || want.form === "text";

  const others = (content) => content.filter((block) => block.type !== "text" && block !== link);
  if (!isDeepStrictEqual(others(got.content), others(said.content))) yield "another block than text was lost or changed";
  if (got.structuredContent === null) yield "`structuredContent` is null";
  if (link && !want.compact) yield "something was left out";
  if (!link && want.compact && tool.name === "rows") yield "nothing was left out of the rows";
  if (tags === undefined && got._meta?.[APPLIED]) yield "the report of what was applied is there, and nothing was declared";
  if (said.isError) {
    if (!got.isError) yield "it is no error any more";
    if (!isDeepStrictEqual(texts, served)) yield "the error says something else";
    return;
  }
  if (got.isError) yield "it is an error";
  if (stays && got.structuredContent === undefined) yield "`structuredContent` is missing";
  if (got.structuredContent !== undefined && value !== undefined && !isShort && (isBound || !ruled)) {
    if (!isDeepStrictEqual(withoutHints(got.structuredContent, want, ruled), value)) yield "`structuredContent` has another value";
  }
  if (ruled) return yield* wrongInTheOperatorsWords(tool, got, texts, want);
  if (isShort) {
    if (!texts.some((text) => text.includes("vary://result/"))) yield "nothing says where the rest is";
    return;
  }
  if (!want.form && !want.compact) {
    if (!isDeepStrictEqual(texts, served)) yield "its text is another";
    if (!isDeepStrictEqual(got.structuredContent, value)) yield "its `structuredContent` is another";
    if (got._meta?.[APPLIED]) yield "something was applied";
  }
  if (!want.form) return;
  const whole = said.structuredContent ?? document(served);
  const author = served.filter((text) => !isDeepStrictEqual(document([text]) ?? text, whole) && text !== String(whole));
  if (whole === undefined) {
    if (!isDeepStrictEqual(texts, served)) yield "prose says something else";
    return;
  }
  if (prose) {
    if (!stays && got.structuredContent !== undefined) yield "`structuredContent` is there for who reads text";
    if (texts.join("").trim() === "" && tool._meta?.ui === undefined) yield "it says nothing";
    if (texts.some((text) => document([text]) !== undefined)) yield "it is still JSON";
    if (author.some((text) => !texts.includes(text))) yield "the author's words are lost";
    if (got._meta?.[APPLIED]?.format !== want.form && texts.join() !== served.join()) yield "it is not told the form";
    return;
  }
  const may = modern || whole.constructor === Object;
  if (said.structuredContent === undefined && want.lifts && may) {
    if (!isDeepStrictEqual(got.structuredContent, whole)) yield "the document is no value";
  }
  // Words that the author wrote beside the value follow it, unless the client asked for the value alone.
  if (want.alone && may) {
    if (texts.some((text) => tool._meta?.ui === undefined || !author.includes(text))) yield "text stands beside the bare value";
  } else if (texts.length === 0 || !isDeepStrictEqual(JSON.parse(texts[0]), whole) || texts.slice(1).some((text) => !author.includes(text))) {
    yield "the text is not the value";
  }
  if (value !== undefined && got._meta?.[APPLIED]?.format !== "json") yield "it is not told the form";
}

/** Hints stand beside the value, for clients that sample. */
function withoutHints(value, want, ruled) {
  if (!ruled || !want.samples || value?.constructor !== Object) return value;
  const { hints, ...rest } = value;
  return rest;
}

function* wrongInTheOperatorsWords(tool, got, texts, want) {
  const projected = { ids: [1, 2], ...(want.samples && { hints: ["ask for one of them"] }) };
  const words = want.form === "text" ? "2 of them" : "**2** of them";
  if (want.form !== "json" && texts[0] !== words) yield `the text is ${texts[0]}`;
  if (want.form === "json" && tool.outputSchema === undefined) {
    if (!isDeepStrictEqual(got.structuredContent, projected)) yield "`structuredContent` is not the operator's";
  }
  // A value that is bound to a schema, and stands alone, has no place for it.
  const hasPlace = !want.alone || tool.outputSchema === undefined;
  if (want.samples && hasPlace && !JSON.stringify(got).includes("ask for one of them")) yield "the hint is missing";
  if (got._meta?.[APPLIED] === undefined) yield "it is not told what was applied";
}

/** The one JSON document, an object or a list, that the text is. */
function document(texts) {
  if (texts.length !== 1) return undefined;
  try {
    const value = JSON.parse(texts[0]);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function* wrongResource(server, got, tags) {
  const [first, picture] = got.contents;
  const { form } = wanted(tags);
  const [said, blob] = server.results.resources["map://valley"].contents;
  if (!isDeepStrictEqual(picture, blob)) yield "the blob of the map is another";
  const type = { markdown: "text/markdown", text: "text/plain" }[form] ?? said.mimeType;
  if (first.mimeType !== type) yield `the map is ${first.mimeType}, not ${type}`;
  if ((document([first.text]) !== undefined) !== (type === said.mimeType)) yield "the media type of the map is not true";
}

function* wrongPrompt(server, got, tags) {
  const { agent, human, samples } = wanted(tags);
  const [first, second] = got.messages;
  const said = server.results.prompts.plan.messages;
  if (!isDeepStrictEqual(second, said[1])) yield "the picture of the prompt is another";
  const words = agent && samples ? "Plan it step by step." : human ? "Let us plan it together." : "Plan it.";
  if (first.content.text !== words) yield `the prompt says ${first.content.text}`;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const server = JSON.parse(readFileSync(process.argv[2], "utf8"));
  for await (const line of createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(faultsOf(server, JSON.parse(line))));
  }
}
