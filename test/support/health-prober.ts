/** Asks a health endpoint from a thread of its own, fifty times a second, so that what its starter does costs it nothing. */
import { parentPort, workerData } from "node:worker_threads";

export type HealthTimes = {
  readonly asked: number;
  readonly failed: number;
  readonly sorted: readonly number[];
};

const url = String(workerData);
const times: number[] = [];
let failed = 0;
let isOver = false;
parentPort?.once("message", () => {
  isOver = true;
});

async function ask(): Promise<void> {
  const began = performance.now();
  const isWell = await fetch(url).then(
    (answer) => answer.status === 200,
    () => false,
  );
  if (!isWell) failed += 1;
  times.push(performance.now() - began);
}

function look(): void {
  if (!isOver) {
    void ask();
    return;
  }
  clearInterval(timer);
  const told: HealthTimes = { asked: times.length, failed, sorted: times.toSorted((a, b) => a - b) };
  parentPort?.postMessage(told, []);
}

const timer = setInterval(look, 20);
