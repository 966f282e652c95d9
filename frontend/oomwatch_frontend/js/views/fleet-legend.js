// What the colours and the shapes of the map mean.

import { h } from "../dom.js";
import { BANDS } from "../fleet-look.js";
import { markIcon, signIcon } from "../marks.js";

/** @param {import("../i18n.js").Words} words */
export function legend(words) {
  const bands = BANDS.map((_, band) =>
    h("li", {}, h("i", { class: `swatch tone-band-${band}` }), words.t(`legend.band_${band}`)),
  );
  const marks = /** @type {const} */ (["watch", "warning", "critical"]).map((mark) =>
    h("li", {}, markIcon(mark), words.t(`mark.${mark}`)),
  );
  const foreseen = h("li", {}, h("i", { class: "swatch foreseen" }), words.t("legend.foreseen"));
  const signs = /** @type {const} */ (["acknowledged", "muted"]).map((sign) =>
    h("li", {}, signIcon(sign), words.t(`legend.${sign}`)),
  );
  const data = /** @type {const} */ (["stale", "lost"]).map((mark) =>
    h("li", {}, markIcon(mark), words.t(`legend.${mark}`)),
  );
  return h("ul", { class: "legend", "aria-label": words.t("legend.title") }, ...bands, foreseen, ...marks, ...signs, ...data);
}
