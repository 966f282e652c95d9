// What the page asks the server to do. Whatever changed comes back over the live connection: nothing is shown as done
// before that.

const PATIENCE_MS = 15_000;
const AT_ONCE = 6;

/** The server said no, or nothing. */
export class ApiError extends Error {
  /** @param {number} status of HTTP; 0: no answer came @param {string} sentence the server's own, or the browser's @param {unknown} [answer] its whole JSON */
  constructor(status, sentence, answer = null) {
    super(sentence);
    this.status = status;
    this.answer = answer;
  }
}

/**
 * @param {"GET" | "POST" | "DELETE"} method @param {string} path below api/v1 @param {unknown} [body]
 * @param {AbortSignal} [signal] whoever aborts it gets an ApiError of status 0
 * @returns {Promise<unknown>} the answer's JSON; null where there is none
 * @throws {ApiError}
 */
export async function ask(method, path, body, signal) {
  const patience = AbortSignal.timeout(PATIENCE_MS);
  /** @type {RequestInit} */
  const request = { method, signal: signal === undefined ? patience : AbortSignal.any([signal, patience]) };
  if (body !== undefined)
    Object.assign(request, { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
  return valueOf(await answerOf(`api/v1/${path}`, request));
}

/**
 * What stands beside the interface: /readyz. It tells the same JSON with 200 and with 503.
 * @param {string} path @param {AbortSignal} signal @returns {Promise<unknown>} null where it is no JSON @throws {ApiError} no answer came
 */
export async function askBeside(path, signal) {
  const { text } = await answerOf(path, { signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]) });
  return parse(text);
}

/**
 * Sends a text as it is, for as long as the signal lets it.
 * @param {"POST" | "PUT"} method @param {string} path below api/v1 @param {string} body
 * @param {AbortSignal} signal @param {Record<string, string>} [headers]
 * @returns {Promise<unknown>}
 * @throws {ApiError}
 */
export async function sendText(method, path, body, signal, headers = {}) {
  const request = { method, body, signal, headers: { "Content-Type": "text/plain; charset=utf-8", ...headers } };
  return valueOf(await answerOf(`api/v1/${path}`, request));
}

/** @param {{ status: number, text: string }} answer */
function valueOf({ status, text }) {
  const value = text === "" ? null : parse(text);
  if (status >= 200 && status < 300) return value;
  const said = typeof value === "object" && value !== null && "error" in value ? String(value.error) : "";
  throw new ApiError(status, said, value);
}

/** @param {string} url @param {RequestInit} request */
async function answerOf(url, request) {
  try {
    const response = await fetch(url, request);
    return { status: response.status, text: await response.text() };
  } catch (error) {
    throw new ApiError(0, error instanceof Error ? error.message : String(error));
  }
}

/** @param {string} text @returns {unknown} null for what is no JSON: a proxy's page, say */
function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/**
 * Does the same to each, some at once.
 * @template T
 * @param {T[]} items @param {(item: T) => Promise<unknown>} act
 * @returns {Promise<{ done: T[], errors: ApiError[] }>}
 */
export async function each(items, act) {
  /** @type {{ done: T[], errors: ApiError[] }} */
  const result = { done: [], errors: [] };
  const waiting = [...items];
  const work = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) {
      try {
        await act(item);
        result.done.push(item);
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        result.errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return result;
}
