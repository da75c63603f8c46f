/** Spreads the work of an update over several frames, so that no frame takes the time of the whole update. */
import { useEffect, useRef, useState } from "./html.js";

/**
 * Returns `value`, delayed by `turn` frames. A part of the page with turn 0 shows a new value immediately, a part with
 * turn 2 two frames later.
 * @template Value
 * @param {Value} value
 * @param {number} turn number of frames
 * @returns {Value | undefined} undefined: the first value is still delayed
 */
export function usePaced(value, turn) {
  const [shown, setShown] = useState(/** @type {Value | undefined} */ (undefined));
  const latest = useRef(value);
  latest.current = value;
  const frame = useRef(0);
  useEffect(() => {
    // While a value waits for its frame, a new value takes its place and is shown in that frame. Otherwise,
    // frequent changes would postpone that frame again and again.
    if (turn === 0 || frame.current !== 0) return;
    let left = turn;
    const next = () => {
      left -= 1;
      frame.current = left > 0 ? requestAnimationFrame(next) : 0;
      if (left === 0) setShown(latest.current);
    };
    frame.current = requestAnimationFrame(next);
  }, [value, turn]);
  useEffect(() => () => cancelAnimationFrame(frame.current), []);
  return turn === 0 ? value : shown;
}
