/**
 * Passes sockets between the watchkeeper processes of a machine that share a port (`reusePort`), through Unix sockets in
 * a directory (`drain.handoverDirectory`):
 *
 *     a process ends    ── offer ──▶ another one: its listening sockets, then its Passthrough connections
 *     a process starts  ── start ──▶ another one, which returns the listening sockets of an ended process
 *
 * So the clients that wait in the accept queue of an ending process are not reset, and a Passthrough connection, which
 * no GOAWAY can end in order, goes on. The other process keeps a listening socket only until a successor takes it:
 * their number does not grow with each upgrade.
 */
import { randomBytes } from "node:crypto";
import { readdirSync, renameSync, rmSync, statSync } from "node:fs";
import type { Server } from "node:net";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { Failure, failureFrom } from "../../base/failure.ts";
import type { Journal } from "../../events/journal.ts";
import type { Listeners } from "../downstream/listeners.ts";
import type { Descriptors } from "../net/descriptors.ts";
import {
  type ChannelOwner,
  connectChannel,
  type HandleChannel,
  type HandleServer,
  listenForChannels,
  type Message,
  mostChannels,
  type PassedHandle,
  socketOf,
} from "../net/handle-channel.ts";
import { abort } from "../net/socket-end.ts";
import type { PassedConnection, Passthrough } from "../tunnel/passthrough.ts";

/** Milliseconds until another process must answer. A process that is stopped or overloaded gets no sockets. */
export const answerMs = 1000;

const ending = ".sock";

export type PeerSocketsParts = {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly listeners: Listeners;
  /** Passthrough connections, by cluster. */
  readonly passthroughs: () => ReadonlyMap<string, Passthrough>;
};

export class PeerSockets {
  readonly #parts: PeerSocketsParts;
  #directory: string | undefined;
  #served: { readonly server: HandleServer; readonly path: string } | undefined;
  /** The process that takes the sockets of this one; undefined: none was found yet. */
  #successor: Promise<HandleChannel | undefined> | undefined;

  constructor(parts: PeerSocketsParts) {
    this.#parts = parts;
  }

  /** Offers other processes to take their sockets, from now on. Undefined: no longer. */
  serve(directory: string | undefined): void {
    if (directory === this.#directory) return;
    this.stop();
    this.#directory = directory;
    if (directory === undefined) return;
    const failure = this.#listen(directory);
    if (failure !== undefined)
      this.#parts.journal.write({ kind: "peer_sockets.failed", directory, reason: failure.message });
  }

  #listen(directory: string): Failure | undefined {
    const failure = unsafe(directory);
    if (failure !== undefined) return failure;
    const name = randomBytes(8).toString("hex");
    const server = listenForChannels(join(directory, name), (channel) => new Receiver(channel, this.#parts));
    if (server instanceof Failure) return server;
    // Other processes remove a socket of this ending on which no process listens.
    const path = join(directory, name + ending);
    renameSync(join(directory, name), path);
    this.#served = { server, path };
    return undefined;
  }

  /** Takes no more sockets of other processes. */
  stop(): void {
    const served = this.#served;
    this.#served = undefined;
    if (served === undefined) return;
    served.server.close();
    rmSync(served.path, { force: true });
  }

  /** Stops, and tells the process that has taken sockets that no more follow. */
  async close(): Promise<void> {
    this.stop();
    (await this.#successor)?.close();
  }

  /**
   * Adds the listening sockets that another process has of an ended one to `sockets`, except if there are inherited
   * ones. The returned function tells the other process that this one accepts clients.
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
    const channel = await connectToPeer(directory, owner, "");
    if (channel === undefined) return () => {};
    await channel.send({ kind: "start" });
    if (!(await this.#within(promise))) {
      // A socket that arrived later would have no listener, and its clients would wait for ever.
      channel.close();
      return () => {};
    }
    return () => void channel.send({ kind: "serving" }).then(() => channel.close());
  }

  /** Passes the listening sockets on, as far as another process takes them. `isHandedOver`: only those of others. */
  async passListeners(isHandedOver: boolean): Promise<void> {
    const channel = await this.#offer();
    if (channel === undefined) return;
    let listeners = 0;
    // oxlint-disable-next-line no-await-in-loop
    for (const [listener, { servers }] of this.#parts.listeners.byName)
      for (const server of [...(isHandedOver ? [] : servers.own), ...servers.passed])
        if (await channel.send({ kind: "listener", listener }, server)) listeners += 1;
    if (listeners > 0) this.#parts.journal.write({ kind: "peer_sockets.passed", listeners, connections: 0 });
  }

  /** Passes on the Passthrough connections that have no bytes under way. */
  async passConnections(): Promise<void> {
    const channel = await this.#offer();
    if (channel === undefined) return;
    const send = async (cluster: string, connection: PassedConnection): Promise<boolean> => {
      const { down, up, ...names } = connection;
      const isSent = await channel.send({ kind: "client", cluster, ...names }, down);
      return isSent && channel.send({ kind: "backend" }, up);
    };
    let connections = 0;
    // oxlint-disable-next-line no-await-in-loop
    for (const [cluster, passthrough] of this.#parts.passthroughs())
      connections += await passthrough.passOn((one) => send(cluster, one));
    if (connections > 0)
      this.#parts.journal.write({ kind: "peer_sockets.passed", listeners: 0, connections });
  }

  #offer(): Promise<HandleChannel | undefined> {
    this.#successor ??= this.#findSuccessor();
    return this.#successor;
  }

  async #findSuccessor(): Promise<HandleChannel | undefined> {
    if (this.#directory === undefined) return undefined;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const owner = { received: () => resolve(true), ended: () => resolve(false) };
    const channel = await connectToPeer(this.#directory, owner, this.#served?.path ?? "");
    if (channel === undefined) return undefined;
    await channel.send({ kind: "offer" });
    if (await this.#within(promise)) return channel;
    channel.close();
    return undefined;
  }

  /** Resolves with false if the other process does not answer in time. */
  async #within(answer: Promise<boolean>): Promise<boolean> {
    const late = Promise.withResolvers<boolean>();
    const stop = this.#parts.clock.after(answerMs, () => late.resolve(false));
    return Promise.race([answer, late.promise]).finally(stop);
  }
}

/** Takes the sockets of one other process, or returns them to it. */
class Receiver implements ChannelOwner {
  readonly #channel: HandleChannel;
  readonly #parts: PeerSocketsParts;
  /** A client whose backend's socket has not arrived yet. */
  #client: { readonly message: Message; readonly handle: PassedHandle } | undefined;
  #returned: ReadonlyMap<string, readonly Server[]> = new Map();
  #listeners = 0;
  #connections = 0;

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
    else if (kind === "client" && this.#client === undefined) this.#client = { message, handle };
    else if (kind === "backend" && this.#client !== undefined) this.#join(this.#client, handle);
    else handle.close();
  }

  ended(): void {
    this.#client?.handle.close();
    this.#client = undefined;
    const [listeners, connections] = [this.#listeners, this.#connections];
    if (listeners + connections > 0)
      this.#parts.journal.write({ kind: "peer_sockets.received", listeners, connections });
  }

  async #listen(name: string, handle: PassedHandle): Promise<void> {
    const listener = this.#parts.listeners.byName.get(name);
    if (listener === undefined) handle.close();
    else if (await listener.acceptFrom(handle)) this.#listeners += 1;
  }

  #join(
    { message, handle }: { readonly message: Message; readonly handle: PassedHandle },
    up: PassedHandle,
  ): void {
    this.#client = undefined;
    const wordOf = (key: string): string => String(message[key] ?? "");
    const listener = this.#parts.listeners.byName.get(wordOf("listener"));
    const connection = {
      client: wordOf("client"),
      listener: wordOf("listener"),
      serverName: wordOf("serverName"),
      backend: wordOf("backend"),
      down: socketOf(handle),
      up: socketOf(up),
    };
    if (listener?.takeOver(connection, wordOf("cluster")) === true) this.#connections += 1;
    else for (const socket of [connection.down, connection.up]) abort(socket);
  }

  /** Sends copies of the listening sockets of ended processes. This process accepts until the other one does. */
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

/** Returns a channel to another process that serves; undefined: there is none. Removes the sockets of dead processes. */
async function connectToPeer(
  directory: string,
  owner: ChannelOwner,
  ownPath: string,
): Promise<HandleChannel | undefined> {
  if (unsafe(directory) !== undefined) return undefined;
  const paths = readdirSync(directory)
    .filter((name) => name.endsWith(ending))
    .map((name) => join(directory, name))
    .filter((path) => path !== ownPath);
  for (const path of paths.slice(0, mostChannels)) {
    // oxlint-disable-next-line no-await-in-loop
    const channel = await connectChannel(path, owner);
    if (!(channel instanceof Failure)) return channel;
    rmSync(path, { force: true });
  }
  return undefined;
}

/** Every process that can write in the directory could take the connections of clients, so only the own user may write. */
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
