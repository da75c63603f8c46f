/**
 * Passes listening sockets between the watchkeeper processes of a machine that share a port (`reusePort`), through Unix
 * sockets in a directory (`drain.handoverDirectory`):
 *
 *     a process ends    ── offer ──▶ another one: its listening sockets
 *     a process starts  ── start ──▶ another one, which returns the listening sockets of an ended process
 *
 * So the clients that wait in the accept queue of an ending process are not reset. The other process keeps a listening
 * socket that it was passed only until a new process takes it over, so the number of such sockets does not grow with
 * each upgrade.
 */
import { randomBytes } from "node:crypto";
import { readdirSync, renameSync, rmSync, statSync } from "node:fs";
import type { Server } from "node:net";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { Failure, failureFrom } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import type { Descriptors } from "../../upstream/net/descriptors.ts";
import {
  type ChannelOwner,
  connectChannel,
  type HandleChannel,
  type HandleServer,
  isUnserved,
  listenForChannels,
  type Message,
  mostChannels,
  type PassedHandle,
} from "../../upstream/net/handle-channel.ts";
import type { Listeners } from "../downstream/listeners.ts";

/** Milliseconds within which another process must answer. A process that is stopped or overloaded gets no sockets. */
export const answerMs = 1000;

const [ending, endingBeforeUse] = [".sock", ".bind"];
/** Matches the names of the Unix sockets. Other files in the directory are neither used nor removed. */
const socketName = /^[\da-f]{16}\.sock$/;

/** A channel to another process. `owner` receives that process's messages; undefined: the messages are ignored. */
type Peer = { readonly channel: HandleChannel; owner?: ChannelOwner };

export type PeerSocketsParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly listeners: Listeners;
};

export class PeerSockets {
  readonly #parts: PeerSocketsParts;
  #directory: string | undefined;
  #served: { readonly server: HandleServer; readonly path: string; readonly directory: string } | undefined;
  #isStopped = false;
  /** The channel to the process that has taken over this process's listening sockets; undefined: there is none. */
  #successor: HandleChannel | undefined;

  constructor(parts: PeerSocketsParts) {
    this.#parts = parts;
  }

  /**
   * Lets other processes pass their sockets to this one through `directory`. If `directory` is undefined, they no
   * longer can.
   */
  serve(directory: string | undefined): void {
    if (this.#isStopped || (directory === this.#directory && this.#served?.directory === directory)) return;
    this.#close();
    this.#directory = directory;
    if (directory === undefined) return;
    const failure = this.#listen(directory);
    if (failure !== undefined)
      this.#parts.journal.write({ kind: "peer_sockets.failed", directory, reason: failure.message });
  }

  #listen(directory: string): Failure | undefined {
    const failure = unsafe(directory);
    if (failure !== undefined) return failure;
    const name = join(directory, randomBytes(8).toString("hex"));
    // This name is as long as the final name. So if the final path is too long for a connect, the bind fails, too.
    const unused = name + endingBeforeUse;
    const server = listenForChannels(unused, (channel) => new Receiver(channel, this.#parts));
    if (server instanceof Failure) return server;
    const path = name + ending;
    try {
      // The socket gets its final name only after this process listens on it. Other processes remove a socket with a
      // final name if no process listens on it.
      renameSync(unused, path);
    } catch (reason) {
      server.close();
      return failureFrom(reason, "proxy");
    }
    this.#served = { server, path, directory };
    return undefined;
  }

  #close(): void {
    if (this.#served === undefined) return;
    this.#served.server.close();
    remove(this.#served.path);
  }

  /** Accepts no new channels. A process that already has a channel can still pass its sockets to this process. */
  stop(): void {
    this.#isStopped = true;
    this.#close();
  }

  /**
   * Stops, and takes no more sockets, not even from processes that already have a channel. Tells the process that has
   * taken over this process's sockets that no more sockets follow.
   */
  close(): void {
    this.stop();
    this.#served?.server.end();
    this.#successor?.close();
  }

  /**
   * Asks another process for the listening sockets that it got from an ended process, and adds them to `sockets`. Does
   * nothing if this process has inherited sockets. Once this process accepts clients, the caller must call the returned
   * function, which tells the other process to stop accepting from these sockets.
   */
  async takeListeners(directory: string | undefined, sockets: Descriptors): Promise<() => void> {
    if (directory === undefined || !sockets.isEmpty) return () => {};
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const owner = {
      received: ({ kind, listener }: Message, handle: PassedHandle | undefined): void => {
        if (handle !== undefined) sockets.add(String(listener), handle);
        else if (kind === "end") resolve(true);
      },
      ended: () => resolve(false),
    };
    const peer = await this.#findPeer(directory);
    if (peer === undefined) return () => {};
    const { channel } = peer;
    peer.owner = owner;
    void channel.send({ kind: "start" });
    if (!(await this.#within(promise))) {
      // Closes the channel. If a listening socket arrived later, this process would not accept from it, so the clients
      // in its accept queue would never be served.
      channel.close();
      return () => {};
    }
    return () => void channel.send({ kind: "serving" }).then(() => channel.close());
  }

  /**
   * Passes this process's listening sockets to another process, if one takes them. `isHandedOver`: true if a successor
   * has already inherited the sockets that this process opened itself, so that only the sockets that it got from other
   * processes are passed on.
   */
  async passListeners(isHandedOver: boolean): Promise<void> {
    const channel =
      this.#directory === undefined ? undefined : (await this.#findPeer(this.#directory))?.channel;
    this.#successor = channel;
    if (channel === undefined) return;
    let listeners = 0;
    // oxlint-disable-next-line no-await-in-loop
    for (const [listener, { servers }] of this.#parts.listeners.byName)
      for (const server of [...(isHandedOver ? [] : servers.own), ...servers.passed])
        if (await this.#send(channel, { kind: "listener", listener }, server)) listeners += 1;
    if (listeners > 0) this.#parts.journal.write({ kind: "peer_sockets.passed", listeners });
  }

  /**
   * Sends an offer to all other processes. Returns the process that accepts first; undefined if none accepts in time.
   * The caller then passes sockets to that process, or asks it for sockets.
   */
  async #findPeer(directory: string): Promise<Peer | undefined> {
    const over = new AbortController();
    const stop = this.#parts.clock.after(answerMs, () => over.abort());
    const offers = socketsIn(directory, this.#served?.path).map((path) => offer(path, over.signal));
    const accepted = offers.map(async (one) => (await one) ?? Promise.reject(new Error("No answer")));
    const found = await Promise.any(accepted).catch(() => undefined);
    stop();
    over.abort();
    for (const one of offers) void one.then((peer) => (peer === found ? undefined : peer?.channel.close()));
    return found;
  }

  /**
   * Passes one socket to the other process. Resolves to true if the socket was sent. If that takes too long, closes the
   * channel, so that the drain does not wait.
   */
  async #send(channel: HandleChannel, message: Message, passed: Server): Promise<boolean> {
    const sent = channel.send(message, passed);
    if (!(await this.#within(sent.then(() => true)))) channel.close();
    return sent;
  }

  /** Resolves to `answer`, or to false if the other process does not answer in time. */
  async #within(answer: Promise<boolean>): Promise<boolean> {
    const late = Promise.withResolvers<boolean>();
    const stop = this.#parts.clock.after(answerMs, () => late.resolve(false));
    return Promise.race([answer, late.promise]).finally(stop);
  }
}

/**
 * Handles a channel that another process has opened. If that process drains, takes over its sockets. If that process
 * has just started, gives it the listening sockets that this process got from an ended process.
 */
class Receiver implements ChannelOwner {
  readonly #channel: HandleChannel;
  readonly #parts: PeerSocketsParts;
  #returned: ReadonlyMap<string, readonly Server[]> = new Map();
  #listeners = 0;

  constructor(channel: HandleChannel, parts: PeerSocketsParts) {
    this.#channel = channel;
    this.#parts = parts;
  }

  received(message: Message, handle: PassedHandle | undefined): void {
    const { kind } = message;
    if (handle === undefined) {
      if (kind === "offer") void this.#channel.send({ kind: "accepted" });
      else if (kind === "start") void this.#return();
      else if (kind === "serving") this.#release();
    } else if (kind === "listener") void this.#listen(String(message["listener"]), handle);
    else handle.close();
  }

  ended(): void {
    const listeners = this.#listeners;
    if (listeners > 0) this.#parts.journal.write({ kind: "peer_sockets.received", listeners });
  }

  async #listen(name: string, handle: PassedHandle): Promise<void> {
    const listener = this.#parts.listeners.byName.get(name);
    if (listener === undefined) handle.close();
    else if (await listener.acceptFrom(handle)) this.#listeners += 1;
  }

  /**
   * Sends copies of listening sockets that this process got from ended processes: one socket of each listener, because
   * the new process replaces one ended process. The other sockets are for the processes that replace the other ended
   * ones. If the first new process took all sockets, the others would open new ones, and the number of sockets would
   * grow with each upgrade. This process accepts from a returned socket until the new process does.
   */
  async #return(): Promise<void> {
    const returned = new Map<string, readonly Server[]>();
    for (const [listener, { servers }] of this.#parts.listeners.byName) {
      const [server] = servers.passed;
      if (server === undefined) continue;
      // oxlint-disable-next-line no-await-in-loop
      if (await this.#channel.send({ kind: "listener", listener }, server)) returned.set(listener, [server]);
    }
    this.#returned = returned;
    await this.#channel.send({ kind: "end" });
  }

  #release(): void {
    const { byName } = this.#parts.listeners;
    for (const [name, servers] of this.#returned) byName.get(name)?.release(servers);
  }
}

/** Returns the paths of the other processes' Unix sockets, at most `mostChannels` of them. */
function socketsIn(directory: string, ownPath: string | undefined): readonly string[] {
  if (unsafe(directory) !== undefined) return [];
  try {
    const names = readdirSync(directory).filter((name) => socketName.test(name));
    const paths = names.map((name) => join(directory, name)).filter((path) => path !== ownPath);
    return paths.slice(0, mostChannels);
  } catch {
    return []; // the process drains or starts as if no directory were configured
  }
}

/**
 * Resolves to a Peer when the process at `path` has accepted the offer, or to undefined if it has not accepted before
 * `over` aborts. Removes the socket file of a dead process.
 */
async function offer(path: string, over: AbortSignal): Promise<Peer | undefined> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  let peer: Peer | undefined;
  const channel = await connectChannel(path, {
    received: (message, handle) => {
      if (peer?.owner !== undefined) return peer.owner.received(message, handle);
      handle?.close();
      if (message["kind"] === "accepted") resolve(true);
    },
    ended: () => {
      resolve(false);
      peer?.owner?.ended();
    },
  });
  if (channel instanceof Failure) {
    if (isUnserved(channel)) remove(path);
    return undefined;
  }
  over.addEventListener("abort", () => resolve(false));
  void channel.send({ kind: "offer" });
  if (!over.aborted && (await promise)) peer = { channel };
  else channel.close();
  return peer;
}

/** Removes a socket file if possible. A file that stays does no harm, because no process listens on it. */
function remove(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // The file may stay, for example because the file system is read-only.
  }
}

/**
 * Returns a Failure if another user may write to the directory, because a process of that user could take over the
 * connections of clients. Returns undefined if the directory is safe.
 */
function unsafe(directory: string): Failure | undefined {
  try {
    const { mode, uid } = statSync(directory);
    const user = process.getuid?.();
    if (uid === user && (mode & 0o022) === 0) return undefined;
    const message = `${directory} must belong to user ${user}, and no other user may write in it`;
    return new Failure("bad-file", "proxy", message);
  } catch (reason) {
    return failureFrom(reason, "proxy");
  }
}
