/** Reads the API at intervals while the page is visible. If a read fails, the previous value stays. */
import { useEffect, useRef, useState } from "../html.js";

/**
 * Returns the latest value. `failure`: why the last read failed; "": it succeeded.
 * @template Answer
 * @param {() => Promise<Answer>} read
 * @param {number} everyMs
 * @param {string} key the page reads at once when the key changes
 * @returns {{ value: Answer | undefined, failure: string }}
 */
export function usePolled(read, everyMs, key) {
  const [state, setState] = useState({ value: /** @type {Answer | undefined} */ (undefined), failure: "" });
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    let isOver = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const again = async () => {
      if (!document.hidden) {
        const answer = await latest.current().then(
          (value) => ({ value, failure: "" }),
          (error) => ({ value: undefined, failure: String(error?.message ?? error) }),
        );
        if (isOver) return;
        setState((before) => ({ value: answer.value ?? before.value, failure: answer.failure }));
      }
      if (!isOver) timer = setTimeout(() => void again(), everyMs);
    };
    void again();
    const shown = () => {
      if (document.hidden) return;
      clearTimeout(timer);
      void again();
    };
    document.addEventListener("visibilitychange", shown);
    return () => {
      isOver = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", shown);
    };
  }, [key]);
  return state;
}
