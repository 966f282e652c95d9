// A text for the clipboard, also where the browser keeps its clipboard from the page.

/**
 * Whether it is there now. A page that came over plain http from another machine has no navigator.clipboard, and one may
 * be told to keep off it: what is selected can be copied all the same, while the click lasts.
 * @param {string} text @param {Element} beside something that was clicked: in a dialog nothing else can be selected
 */
export async function toClipboard(text, beside) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return bySelection(text, beside);
  }
}

/** @param {string} text @param {Element} beside */
function bySelection(text, beside) {
  const field = document.createElement("textarea");
  field.className = "unseen";
  field.value = text;
  const focused = document.activeElement;
  beside.after(field);
  field.select();
  const isDone = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isDone;
}
