/** Compares a run's result with what its row allows. Each miss is a sentence. */
import { isFailure, reasons } from "../load/asking.ts";
import type { Heard } from "../load/client.ts";
import type { Fate, Result } from "./play.ts";
import type { Row, Targets } from "./rows.ts";

/**
 * `wrong`: what must never happen, but did. `late`: what happened too late, which may also be due to a machine that
 * paused.
 */
export type Misses = { readonly wrong: readonly string[]; readonly late: readonly string[] };

/** `patience` multiplies every time limit. 1 for measurements, more on a shared machine. */
export function misses(row: Row, result: Result, patience = 1): Misses {
  const tunnels = ofTunnels(row, result, patience);
  return {
    wrong: [...failedGets(row, result), ...ofBodies(row, result), ...ofWatches(result), ...tunnels.wrong],
    late: [
      ...unjustVerdicts(row, result),
      ...lateVerdicts(row, result, patience),
      ...lateGets(row, result, patience),
      ...tunnels.late,
    ],
  };
}

function lateVerdicts({ targets }: Row, result: Result, patience: number): string[] {
  const missed: string[] = [];
  const bound = (what: string, ms: number | undefined, most: number | undefined): void => {
    if (most !== undefined && ms !== undefined && ms > most * patience)
      missed.push(tooLate(`${what} after`, ms, most * patience));
  };
  bound("suspect", result.suspect, targets.suspect?.most);
  bound("dead", result.dead, targets.dead);
  bound("draining", result.draining, targets.draining);
  bound("last new client on it", result.lastOnVictim, targets.elsewhere);
  return missed;
}

function tooLate(what: string, ms: number, most: number): string {
  return `${what} ${ms} ms, not ${most}`;
}

/** Counted as late, not as wrong: an apiserver that the machine kept from answering for a second was really silent. */
function unjustVerdicts({ targets }: Row, result: Result): string[] {
  const missed: string[] = [];
  for (const due of ["suspect", "dead", "draining"] as const) {
    if (targets[due] !== undefined && result[due] === undefined) missed.push(`never called ${due}`);
  }
  // The proxy may mark a victim dead once its process has exited, whatever the row says.
  const said = { suspect: result.suspect, dead: result.dead, draining: result.draining };
  for (const [what, ms] of Object.entries(said)) {
    if (targets.never.includes(what) && ms !== undefined && ms < result.gone) {
      missed.push(`${what} after ${ms} ms, while it answered`);
    }
  }
  // 300 ms of tolerance: a dying process closes its connections a moment before its parent process learns of the exit.
  const isEarly = result.dead !== undefined && result.dead < result.gone - 300;
  if (targets.tunnels === "own" && isEarly)
    missed.push(`dead after ${result.dead} ms, gone after ${result.gone}`);
  return missed;
}

function failedGets({ targets }: Row, { gets }: Result): string[] {
  const isFailed = (heard: Heard): boolean =>
    isFailure(heard) && (targets.isWhole === true || heard.ending !== "cut");
  const failed = gets.filter((heard) => isFailed(heard));
  return failed.length > 0 ? [`${failed.length} of ${gets.length} GETs failed: ${reasons(failed)}`] : [];
}

function lateGets({ targets }: Row, { gets }: Result, patience: number): string[] {
  const slowest = Math.max(...gets.map(({ headMs }) => headMs));
  const most = targets.get * patience;
  return slowest > most ? [tooLate("slowest GET", slowest, most)] : [];
}

function ofBodies({ targets }: Row, { lists, posts }: Result): string[] {
  const missed: string[] = [];
  if (targets.writes === "all") {
    if (posts.failed.length > 0)
      missed.push(`${posts.failed.length} of ${posts.sent} POSTs failed: ${reasons(posts.failed)}`);
    for (const { end } of lists) if (end !== "whole") missed.push(`a LIST: ${end}`);
  }
  for (const { end, isOnVictim } of lists) {
    if (end === "false") missed.push("a LIST cut short that ended as if complete");
    if (end !== "whole" && !isOnVictim) missed.push(`a LIST of the other apiserver: ${end}`);
    if (end === "headless" || end === "refused") missed.push(`a LIST ${end}`);
  }
  if (posts.doubled > 0) missed.push(`${posts.doubled} POSTs doubled`);
  if (posts.lost > 0) missed.push(`${posts.lost} POSTs answered 201 and lost`);
  return missed;
}

function ofWatches({ watches }: Result): string[] {
  const missed: string[] = [];
  for (const { ends, difference } of watches) {
    if (ends.length > 0)
      missed.push(`a watch ended: ${ends.map(({ how, detail }) => `${how} ${detail}`).join(", ")}`);
    const { missing, doubled, reordered } = difference;
    if (missing + doubled + reordered > 0) {
      missed.push(`a watch: ${missing} missing, ${doubled} doubled, ${reordered} out of order`);
    }
  }
  return missed;
}

function ofTunnels({ targets }: Row, { tunnels, gone, newExec }: Result, patience: number): Misses {
  const wrong = newExec ? [] : ["a new exec did not open"];
  const late: string[] = [];
  for (const fate of tunnels) {
    const allowed = fate.kind === "logs" ? (targets.logs ?? targets.tunnels) : targets.tunnels;
    const whose = `${fate.kind} of the ${fate.isOnVictim ? "victim" : "witness"}`;
    const miss = wrongFate(fate, fate.isOnVictim ? allowed : "live", gone);
    if (miss !== undefined) wrong.push(`${whose} ${miss}`);
    else if (fate.isOnVictim && typeof allowed === "number" && (fate.endedMs ?? 0) > allowed * patience)
      late.push(tooLate(`${whose} ended after`, fate.endedMs ?? 0, allowed * patience));
  }
  return { wrong, late };
}

/**
 * A tunnel that stays open must still carry data. An open tunnel that silently carries nothing is the failure that this
 * project prevents.
 */
function wrongFate(
  { endedMs, answers }: Fate,
  allowed: Targets["tunnels"],
  gone: number,
): string | undefined {
  if (endedMs === undefined) return answers ? undefined : "lives and carries nothing";
  if (allowed === "live") return `ended after ${endedMs} ms`;
  // 300 ms of tolerance: a dying process closes its sockets a moment before its parent process learns of the exit.
  const isEarly = allowed === "own" && endedMs < gone - 300;
  return isEarly ? `ended after ${endedMs} ms, its apiserver after ${gone}` : undefined;
}
