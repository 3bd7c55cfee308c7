// A person who logs in and says yes, without a browser. As a program it takes the arguments of `consent`, and prints what that
// returns.

/** More pages than a login has. */
const MAX_STEPS = 12;

/** Fills in the forms at `url` as `who`, and returns the parameters with which the authorization server redirects to `callback`. */
export async function consent(url, callback, who = "ann") {
  const cookies = new Map();
  let next = { url: new URL(url) };
  for (let step = 0; step < MAX_STEPS; step += 1) {
    const response = await open(next, cookies);
    const location = response.headers.get("location");
    if (location) {
      next = { url: new URL(location, next.url) };
      if (next.url.href.startsWith(callback)) return next.url.searchParams;
    } else {
      next = form(await response.text(), response.status, next.url, who);
    }
  }
  throw new Error(`${MAX_STEPS} pages, and no redirect to ${callback}; the last is ${next.url}`);
}

async function open({ url, body }, cookies) {
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  const method = body ? "POST" : "GET";
  const response = await fetch(url, { method, body, headers: { cookie }, redirect: "manual" });
  for (const set of response.headers.getSetCookie()) {
    const [, name, value] = set.match(/^([^=]+)=([^;]*)/);
    cookies.set(name, value);
  }
  return response;
}

/** The request that sends the form of a page: a login, or the consent after it. */
function form(page, status, url, who) {
  const [, action] = page.match(/<form[^>]* action="([^"]+)"/) ?? [];
  const [, prompt] = page.match(/name="prompt" value="(\w+)"/) ?? [];
  if (!action || !prompt) throw new Error(`${url} answers ${status} without a form: ${page.slice(0, 300)}`);
  return { url: new URL(action, url), body: new URLSearchParams({ prompt, login: who, password: "any" }) };
}

if (import.meta.filename === process.argv[1]) console.log(String(await consent(...process.argv.slice(2))));
