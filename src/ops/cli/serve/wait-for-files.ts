/**
 * `run --wait-for-files`: loads the configuration when its file and all files that it names exist. A static pod or a
 * systemd unit may start before kubeadm or cert-manager has written the files. The process waits instead of exiting,
 * because the kubelet delays each further restart of a container that exits.
 */
import { existsSync } from "node:fs";
import { wallClock } from "../../../base/clock.ts";
import { type Config, loadConfig } from "../../config/config.ts";
import { isProblems, type Problem } from "../../config/problem.ts";
import { complain } from "../commands/screen.ts";

const checkMs = 1000;

/** Loads `file`. While files are missing, prints their names and tries again every second, for up to `waitMs`. */
export async function loadWhenComplete(file: string, waitMs: number): Promise<Config | readonly Problem[]> {
  const deadline = wallClock.now() + waitMs;
  const stopLeaving = leaveOnSignal();
  let printed = "";
  for (;;) {
    const loaded = loadConfig(file);
    const missing = missingFiles(file, loaded).join(", ");
    const left = deadline - wallClock.now();
    if (missing === "" || left <= 0) {
      stopLeaving();
      return loaded;
    }
    if (missing !== printed)
      complain(`Waiting up to ${Math.ceil(left / 1000)} s for files that do not exist yet: ${missing}`, 0);
    printed = missing;
    await new Promise((resolve) => wallClock.after(Math.min(checkMs, left), () => resolve(undefined)));
  }
}

const leave = (): void => process.exit(0);

/** Returns the missing files. An invalid file is not returned, because waiting does not correct it. */
function missingFiles(file: string, loaded: Config | readonly Problem[]): readonly string[] {
  const files = isProblems(loaded) ? [file] : loaded.files;
  return files.filter((one) => !existsSync(one));
}

/**
 * Makes SIGTERM and SIGINT end the process. Returns a function that removes these signal handlers. Without handlers, a
 * container that waits for files could not be stopped, because the kernel ignores unhandled signals to process 1.
 */
function leaveOnSignal(): () => void {
  process.on("SIGTERM", leave);
  process.on("SIGINT", leave);
  return () => {
    process.off("SIGTERM", leave);
    process.off("SIGINT", leave);
  };
}
