/** A fault that is planted in the sources, and the test that must detect it (`npm run mutations`). */
import type { Mutation } from "../simulation/mutated.ts";

export type Defect = {
  /** Completes the sentence "with it ...". */
  readonly name: string;
  readonly mutations: readonly Mutation[];
  /** Path of the test below test/, without `.test.ts`. */
  readonly test: string;
  /** A part of the title of the test that must fail. */
  readonly fails: string;
};

/** A fault that replaces one piece of one file. `seen` names the test that must fail, and a part of its title. */
export function defect(
  name: string,
  mutation: Mutation,
  seen: readonly [test: string, fails: string],
): Defect {
  const [test, fails] = seen;
  return { name, mutations: [mutation], test, fails };
}
