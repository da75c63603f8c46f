/** Troubles: faults of the apiservers and changes of the configuration, one after another, until the round ends. */
import { setTimeout as sleep } from "node:timers/promises";
import { faultKinds } from "../../demo/apiserver/embedded.ts";
import type { Random } from "../support/random.ts";
import { count } from "./felt.ts";
import { type Shape, type Stage, whole } from "./stage.ts";

/** `pauseMs` is the time between two troubles. `faultMs` is the shortest and the longest duration of a fault. */
const pauseMs = 1500;
const faultMs = { least: 500, most: 5000 };

const shapes: readonly [Shape, ...Shape[]] = [
  { ...whole, backends: 2 },
  { ...whole, hasSide: false },
  { ...whole, hasExtra: true },
];
const nonsense: readonly [string, ...string[]] = [
  "",
  "kind: [",
  "apiVersion: watchkeeper.dev/v1alpha2\nkind: X\n",
];

export class Troubles {
  readonly #stage: Stage;
  readonly #random: Random;
  /** How often each trouble occurred, by name. */
  readonly played = new Map<string, number>();

  constructor(stage: Stage, random: Random) {
    this.#stage = stage;
    this.#random = random;
  }

  /** Causes random troubles until `deadline`. Then restores everything. */
  async until(deadline: number): Promise<void> {
    const kinds = [
      () => this.#fault(),
      () => this.#fault(),
      () => this.#reload(),
      () => this.#certificate(),
    ] as const;
    while (performance.now() < deadline) {
      if (this.#random.chance(0.05)) await this.#allGone();
      else await this.#random.pick(kinds)();
      await sleep(pauseMs);
    }
    this.#stage.configure(whole);
    this.#stage.certify(true);
    this.#stage.hangUp();
  }

  async #fault(): Promise<void> {
    const { apiservers } = this.#stage;
    const victim = apiservers[this.#random.below(apiservers.length)];
    const fault = this.#random.pick(faultKinds);
    count(this.played, fault);
    await victim?.strike(fault);
    await sleep(faultMs.least + this.#random.below(faultMs.most - faultMs.least));
    await victim?.heal(fault);
  }

  async #allGone(): Promise<void> {
    count(this.played, "all gone");
    await Promise.all(this.#stage.apiservers.map((one) => one.strike("restart")));
    await sleep(faultMs.least + this.#random.below(faultMs.most));
    await Promise.all(this.#stage.apiservers.map((one) => one.heal("restart")));
  }

  async #reload(): Promise<void> {
    const isGood = this.#random.chance(0.7);
    count(this.played, isGood ? "reload" : "bad reload");
    if (isGood) this.#stage.configure(this.#random.pick(shapes));
    else this.#stage.write(this.#random.pick(nonsense));
    if (this.#random.chance(0.5)) this.#stage.hangUp();
    await sleep(2000);
    this.#stage.configure(whole);
    if (this.#random.chance(0.5)) this.#stage.hangUp();
  }

  async #certificate(): Promise<void> {
    const isGood = this.#random.chance(0.6);
    count(this.played, isGood ? "certificate" : "bad certificate");
    this.#stage.certify(isGood);
    await sleep(2500);
    if (!isGood) this.#stage.certify(true);
  }
}
