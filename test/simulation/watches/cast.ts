/** Draws the clients of a run from the seed. */
import type { Random } from "../random.ts";
import { Asker } from "./asker.ts";
import type { Caller } from "./caller.ts";
import { OtherWatcher } from "./other-watchers.ts";
import { Reflector } from "./reflector.ts";
import type { Interest, Truth } from "./truth.ts";
import type { Company } from "./watch-call.ts";

export type Watcher = Reflector | OtherWatcher;

export const watchedResources = ["configmaps", "pods", "events"] as const;
export const namespaces = ["default", "kube-system"] as const;
export const apps = ["a", "b"] as const;

export function interestOf(random: Random): Interest {
  return {
    resource: random.pick(watchedResources),
    namespace: random.chance(0.6) ? random.pick(namespaces) : undefined,
    app: random.chance(0.4) ? random.pick(apps) : undefined,
  };
}

export type Stage = {
  readonly company: Company;
  readonly truth: Truth;
  readonly mayFail: () => boolean;
  readonly carriedSince: () => number | undefined;
};

function reflector(caller: Caller, { company }: Stage): Reflector {
  const { random } = caller.findings;
  const isShort = random.chance(0.3);
  return new Reflector(caller, company, {
    interest: interestOf(random),
    isProtobuf: random.chance(0.4),
    usesWatchList: random.chance(0.5),
    timeoutSeconds: () => (isShort ? random.whole(3, 20) : random.whole(300, 600)),
  });
}

function otherWatcher(caller: Caller, { company, truth }: Stage): OtherWatcher {
  const { random } = caller.findings;
  const kubectl = random.chance(0.5);
  const version = { from: "version", version: truth.store.revision } as const;
  const beginning =
    kubectl || random.chance(0.6) ? version : ({ from: random.pick(["now", "state"] as const) } as const);
  const order = {
    interest: interestOf(random),
    beginning,
    // Without bookmarks a client cannot tell where the initial events end.
    wantsBookmarks: beginning.from === "state" || (!kubectl && random.chance(0.7)),
    isProtobuf: !kubectl && random.chance(0.3),
    timeoutSeconds: random.chance(0.3) ? random.whole(5, 30) : undefined,
  };
  return new OtherWatcher(caller, company, order, kubectl ? "exits" : "retries");
}

/** Most clients of real clusters are reflectors, so most of these are. */
export function watcherFor(caller: Caller, stage: Stage): Watcher {
  return caller.findings.random.chance(0.65) ? reflector(caller, stage) : otherWatcher(caller, stage);
}

export function askerFor(caller: Caller, stage: Stage): Asker {
  return new Asker(caller, stage, caller.findings.random.whole(300, 3_000));
}
