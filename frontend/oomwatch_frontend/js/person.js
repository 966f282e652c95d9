// Who sits here: asked for once, and kept in this browser.

const STORED = "oomwatch.person";

export const rememberedName = () => localStorage.getItem(STORED) ?? "";

/** @param {string} name */
export const rememberName = (name) => localStorage.setItem(STORED, name);
