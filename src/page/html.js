/** The two packages that draw: the only place that names them. */
import htm from "htm";
import { h } from "preact";

export { render } from "preact";
export { useEffect, useRef, useState } from "preact/hooks";

/** A tagged template that makes elements: markup without a build step. Text is always text, never markup. */
export const html = htm.bind(h);
