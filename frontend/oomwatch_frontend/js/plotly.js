// Loads plotly, the page's one library: with the page where its address names a view with charts, else with the first chart.

import { h } from "./dom.js";

const PLOTLY = new URL("../vendor/plotly.min.js", import.meta.url).href;
const CHARTED = /^#\/(?:gpu|node|run)\//;

/** @type {Promise<any> | null} */
let loading = null;

/** @returns {Promise<any>} plotly */
export function loadPlotly() {
  loading ??= new Promise((resolve, reject) => {
    const script = h("script", { src: PLOTLY });
    script.onload = () => resolve(/** @type {any} */ (window).Plotly);
    script.onerror = () => {
      loading = null; // the next chart tries again
      script.remove();
      reject(new Error(PLOTLY));
    };
    document.head.append(script);
  });
  return loading;
}

/** Its 4.5 MB take a browser half a second: they come beside all else where they are wanted for sure. */
export function loadWhereCharted() {
  if (CHARTED.test(location.hash)) void loadPlotly().catch(() => undefined); // the chart says what went wrong
}

/** Has plotly fetched when there is time, and not run: the first chart then waits for no network. */
export function prefetchPlotly() {
  if (loading === null) document.head.append(h("link", { rel: "prefetch", as: "script", href: PLOTLY }));
}
