/** The two packages that render the page; no other file imports them. */
import htm from "htm";
import { h } from "preact";

export { render } from "preact";
export { useEffect, useRef, useState } from "preact/hooks";

/** A tagged template that makes elements, without a build step. Values are always text, never markup. */
export const html = htm.bind(h);
