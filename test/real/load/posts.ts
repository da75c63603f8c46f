/** POSTs whose objects get a name from the apiserver, so that a POST that was executed twice creates two objects. */
import { order } from "../rig/ask.ts";
import { stored } from "../rig/etcd.ts";
import { type Asked, isFailure } from "./asking.ts";
import type { Heard, Question } from "./client.ts";
import { places, type Stage } from "./stage.ts";

export type CountedPosts = {
  readonly sent: number;
  readonly failed: readonly Heard[];
  /** Number of POSTs that were sent once and created more than one object. */
  readonly doubled: number;
  /** Number of POSTs that were answered with 201 and created no object. */
  readonly lost: number;
};

/** Returns the next request for `Asking`. `mark` is in the objects of this run's POSTs and of no others. */
export function posting(mark: string): (number: number) => { tag: string; question: Question } {
  return (number) => {
    const tag = `${mark}-${number}.`;
    const body = { metadata: { generateName: "posted-" }, data: { tag } };
    return { tag, question: { method: "POST", path: places.posted, body } };
  };
}

/**
 * Counts the objects that the POSTs created, and removes them. It reads etcd, because an apiserver's cache may be
 * behind.
 */
export async function countPosts({ cluster }: Stage, posts: readonly Asked<string>[]): Promise<CountedPosts> {
  const kept = [...(await stored(cluster.etcdUrl, "/registry/configmaps/posted/")).values()];
  const copies = (tag: string): number => kept.filter((value) => value.includes(tag)).length;
  await order(cluster.admin, { method: "DELETE", path: places.posted });
  return {
    sent: posts.length,
    failed: posts.map(({ heard }) => heard).filter((heard) => isFailure(heard)),
    doubled: posts.filter(({ tag }) => copies(tag) > 1).length,
    lost: posts.filter(({ tag, heard }) => heard.status === 201 && copies(tag) === 0).length,
  };
}
