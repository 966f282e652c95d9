// What is dropped or chosen, as texts that the doctor reads.

/** @typedef {{ name: string, text: string }} NamedText */

const WHOLE_BYTES = 2 * 2 ** 20; // a larger file is a log, of which only what verl printed counts
const WINDOW_BYTES = 2 ** 19; // of which verl prints a tenth
const LINES_MAX = 3000; // five times as many as verl prints
const CHUNK_BYTES = 4 * 2 ** 20;
const LOOKED_THROUGH_BYTES = 512 * 2 ** 20;
const PRINTED = "{'actor_rollout_ref': {"; // as backend/oomwatch/doctor/read/text.py has it
const HYDRA = ".hydra";
const HYDRA_FILES = ["config", "overrides"].map((name) => `${name}.yaml`);

/** A file in which nothing was found to read. */
export class FileError extends Error {
  /** @param {string} name */
  constructor(name) {
    super(name);
    this.name = name;
  }
}

/** @param {File} file @param {string} [name] where it lay @returns {Promise<NamedText>} @throws {FileError} */
export async function textOf(file, name = file.name) {
  if (file.size <= WHOLE_BYTES) return { name, text: await file.text() };
  return { name, text: await printedIn(file) };
}

/** The last configuration that verl printed into a log. @param {File} file */
async function printedIn(file) {
  const least = Math.max(0, file.size - LOOKED_THROUGH_BYTES);
  for (let end = file.size; end > least; end -= CHUNK_BYTES) {
    const from = Math.max(least, end - CHUNK_BYTES);
    // Two pieces overlap by as much as the words are long, or they could be cut in two.
    const bytes = new Uint8Array(await file.slice(from, Math.min(file.size, end + PRINTED.length)).arrayBuffer());
    const text = new TextDecoder("latin1").decode(bytes); // a character for each byte
    const at = text.lastIndexOf(PRINTED);
    if (at === -1) continue;
    const line = from + text.lastIndexOf("\n", at) + 1; // with what stands before it, as before each line that follows
    const shown = await file.slice(line, line + WINDOW_BYTES).text();
    return shown.split("\n", LINES_MAX).join("\n");
  }
  throw new FileError(file.name);
}

/**
 * The files of a drop; of a folder the configuration that Hydra left in it.
 * @param {DataTransfer} data @returns {Promise<NamedText[]>} @throws {FileError}
 */
export async function textsOf(data) {
  const entries = [...data.items].flatMap((item) => item.webkitGetAsEntry() ?? []); // gone after the first wait
  const files = [...data.files];
  if (!entries.some((entry) => entry.isDirectory)) return Promise.all(files.map((file) => textOf(file)));
  const found = await Promise.all(entries.map((entry) => (entry.isDirectory ? hydraIn(entry) : [])));
  const texts = found.flat();
  if (texts.length === 0) throw new FileError(entries[0].name);
  return texts;
}

/** @param {FileSystemEntry} folder */
async function hydraIn(folder) {
  const directory = /** @type {FileSystemDirectoryEntry} */ (folder);
  const path = directory.name === HYDRA ? "" : `${HYDRA}/`;
  const found = await Promise.all(HYDRA_FILES.map((name) => fileIn(directory, path + name)));
  const files = found.filter((file) => file !== null);
  return Promise.all(files.map((file) => textOf(file, `${HYDRA}/${file.name}`)));
}

/** @param {FileSystemDirectoryEntry} folder @param {string} path @returns {Promise<File | null>} */
function fileIn(folder, path) {
  return new Promise((resolve) => {
    const open = (/** @type {FileSystemEntry} */ entry) => /** @type {FileSystemFileEntry} */ (entry).file(resolve, () => resolve(null));
    folder.getFile(path, {}, open, () => resolve(null));
  });
}

/** The file of a model's shape, as Hugging Face publishes it; null for any other text. @param {string} text @returns {Record<string, unknown> | null} */
export function modelConfigIn(text) {
  if (!text.trimStart().startsWith("{")) return null;
  try {
    const value = JSON.parse(text);
    const shape = value?.text_config ?? value;
    return typeof shape?.num_hidden_layers === "number" || typeof shape?.num_attention_heads === "number" ? value : null;
  } catch {
    return null;
  }
}
