/** What an exchange asks of whoever gave it its course, and what it tells: serve answers for all of them. */
import type { Failure } from "../failure.ts";
import type { Field } from "../h2/field.ts";
import type { LaneKey } from "./lane-key.ts";
import type { Leg } from "./leg.ts";
import type { Exchange } from "./relay.ts";
import type { Watching } from "./watching.ts";

export type ExchangeOwner = {
  /** Which lanes it may use by now. */
  laneKey(exchange: Exchange): LaneKey;
  /** One of its legs has no lane in good time, or is on one that does not answer: may it be asked elsewhere too? */
  suspected(exchange: Exchange, leg: Leg): void;
  /** One leg was refused, and the other is still out: when is the refusal to be taken after all? */
  refusalHeld(exchange: Exchange): void;
  /** Is this the refusal of a backend that is going, and is there another one to be asked? */
  mayLeave(exchange: Exchange, leg: Leg, refusal: readonly Field[]): boolean;
  /** The final head arrived, with this status. */
  answered(exchange: Exchange, status: number, legs: Legs): void;
  /** Its legs are gone with nothing answered, and the request may be sent again: place it anew. */
  replace(exchange: Exchange, failure: Failure): void;
  /** Nothing is answered and nothing may be sent again: tell the client. */
  failed(exchange: Exchange, failure: Failure): void;
  /** Its answer is a watch: what carries it from here on, or undefined when nobody here can read it. */
  watchOf(exchange: Exchange, head: readonly Field[], leg: Leg): Watching | undefined;
  /** A backend answered with this status, as it was asked for a watch once more. */
  learnt(status: number): void;
  /** A fault of ours has cost it. */
  faulted(error: unknown): void;
  /** Over, whoever ended it. Told once. */
  ended(exchange: Exchange, end: ExchangeEnd): void;
};

/** Who answered, and who was asked as well and did not. */
export type Legs = { readonly leg: Leg; readonly rest: Leg | undefined };

export type ExchangeEnd = "complete" | "client-gone" | "backend-gone" | "refused";
