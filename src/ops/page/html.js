/** Imports the two packages that render the page, for all other files. */
import htm from "htm";
import { h } from "preact";

export { render } from "preact";
export { useEffect, useMemo, useRef, useState } from "preact/hooks";

/** A template tag that creates elements. A string value becomes text and never markup. */
export const html = htm.bind(h);
