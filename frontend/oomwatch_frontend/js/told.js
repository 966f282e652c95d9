// What the tabs of this browser have told of, so that each alert is told of once.
//
// It is kept in IndexedDB, whose transactions come one after the other whatever process a tab runs in. What one tab writes
// into localStorage another may see late, even where it holds a lock.

import { claim } from "./news.js";

const DATABASE = "oomwatch";
const TOLD = "told";

/**
 * Of some names those that are this tab's to tell of in a way: no tab has told of them. All of them where the browser keeps
 * nothing (some do not in private windows): rather twice than never.
 * @param {string} way @param {string[]} names @returns {Promise<string[]>}
 */
export async function claimFor(way, names) {
  try {
    const database = await open();
    try {
      return await claimIn(database, way, names);
    } finally {
      database.close();
    }
  } catch {
    return names;
  }
}

/** @returns {Promise<IDBDatabase>} */
function open() {
  return new Promise((resolve, reject) => {
    const asked = indexedDB.open(DATABASE, 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(TOLD);
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
}

/** @param {IDBDatabase} database @param {string} way @param {string[]} names @returns {Promise<string[]>} */
function claimIn(database, way, names) {
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(TOLD, "readwrite");
    const kept = transaction.objectStore(TOLD);
    const asked = kept.get(way);
    /** @type {string[]} */
    let mine = [];
    asked.onsuccess = () => {
      const claimed = claim(asked.result ?? [], names);
      mine = claimed.mine;
      kept.put(claimed.told, way);
    };
    transaction.oncomplete = () => resolve(mine);
    transaction.onabort = transaction.onerror = () => reject(transaction.error);
  });
}
