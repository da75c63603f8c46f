/**
 * Clean-up of everything that must not outlive the run. It runs synchronously at exit and on SIGINT, SIGTERM and
 * SIGHUP, newest entry first. A run that is killed cannot clean up: the kernel kills its child processes (child.ts),
 * and the next run removes its namespaces (network.ts).
 */
type Undo = () => void;

const undos = new Set<Undo>();
let watching = false;

function undoAll(): void {
  for (const undo of [...undos].toReversed()) {
    undos.delete(undo);
    try {
      undo();
    } catch (error) {
      process.stderr.write(`Cannot clean up: ${String(error)}\n`);
    }
  }
}

/** Runs `undo` at exit. The returned function runs it earlier and only once. */
export function onLeave(undo: Undo): Undo {
  if (!watching) {
    watching = true;
    process.on("exit", undoAll);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
      process.on(signal, () => process.exit(130));
  }
  undos.add(undo);
  return () => {
    if (undos.delete(undo)) undo();
  };
}
