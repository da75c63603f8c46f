/**
 * Passes open sockets between two processes of one machine, over a Unix socket (SCM_RIGHTS). Node has this only between
 * a parent and its child, so this file uses the internal pipe that Node's child processes use. In a Node version
 * without it, `connect` and `listen` return a Failure, and processes end their sockets instead of passing them on.
 *
 * A message is one line of JSON. A socket travels with the line that announces it.
 */
import { chmodSync } from "node:fs";
import type net from "node:net";
import os from "node:os";
import { getSystemErrorName } from "node:util";
import { Failure, failureFrom } from "../../base/failure.ts";
import { JsonLines, type JsonRecord } from "../../base/json.ts";

/** Maximum length of a line in bytes. A message names one connection, so watchkeeper never sends a longer line. */
export const mostLineBytes = 16_384;
/** Maximum number of channels at a time. A machine runs two watchkeeper processes; each opens one channel. */
export const mostChannels = 8;

export type Message = Readonly<Record<string, string | number>>;

/** A socket's handle (class TCP of Node), which `net.Socket` and `net.Server` can be created with. */
export type PassedHandle = { readonly close: () => void };

export type ChannelOwner = {
  /** Called for each message in order, with the socket that came with it. The owner must use the handle or close it. */
  received(message: Message, handle: PassedHandle | undefined): void;
  /** Called once, when either side has closed the channel. */
  ended(): void;
};

type Pipe = PassedHandle & {
  readonly fd: number;
  pendingHandle?: PassedHandle | null;
  onread: (chunk: ArrayBuffer | undefined) => void;
  onconnection: (status: number, accepted: Pipe | undefined) => void;
  readonly bind: (path: string) => number;
  readonly listen: (backlog: number) => number;
  readonly open: (fd: number) => number;
  readonly connect: (request: object, path: string) => number;
  readonly readStart: () => number;
  readonly unref: () => void;
  readonly writeUtf8String: (request: object, line: string, handle?: object) => number;
};
type Internals = {
  readonly Pipe: new (kind: number) => Pipe;
  readonly PipeConnectWrap: new () => object;
  readonly WriteWrap: new () => object;
  readonly kinds: { readonly SERVER: number; readonly IPC: number };
  /** True if the kernel did not take the last write at once, so that `oncomplete` is called later. */
  readonly isUnderWay: () => boolean;
};

function internals(): Internals | undefined {
  try {
    const binding: unknown = Reflect.get(process, "binding");
    if (typeof binding !== "function") return undefined;
    const { Pipe, PipeConnectWrap, constants } = Reflect.apply(binding, process, ["pipe_wrap"]);
    const { WriteWrap, streamBaseState, kLastWriteWasAsync } = Reflect.apply(binding, process, [
      "stream_wrap",
    ]);
    const known = [Pipe, PipeConnectWrap, WriteWrap].every((one) => typeof one === "function");
    if (!known || typeof streamBaseState?.[kLastWriteWasAsync] !== "number") return undefined;
    const isUnderWay = (): boolean => streamBaseState[kLastWriteWasAsync] !== 0;
    return { Pipe, PipeConnectWrap, WriteWrap, kinds: constants, isUnderWay };
  } catch {
    return undefined; // this version of Node has no such internals
  }
}

const unsupported = new Failure("bad-request", "proxy", "This version of Node cannot pass sockets");

function failed(what: string, code: number): Failure {
  return new Failure("bad-request", "proxy", `${what}: ${getSystemErrorName(code)}`, code);
}

/**
 * True if the failure proves that no process listens at the path. After any other failure, a process may be listening:
 * it may be busy, or this process may have no free descriptor.
 */
export function isUnserved({ cause }: Failure): boolean {
  return cause === -os.constants.errno.ECONNREFUSED;
}

/** Connects to the process that listens at `path`. */
export function connectChannel(path: string, owner: ChannelOwner): Promise<HandleChannel | Failure> {
  const node = internals();
  if (node === undefined) return Promise.resolve(unsupported);
  const pipe = new node.Pipe(node.kinds.IPC);
  return new Promise((resolve) => {
    const done = (status: number): void => {
      if (status !== 0) pipe.close();
      resolve(
        status === 0 ? new HandleChannel(pipe, node, owner) : failed(`Cannot connect to ${path}`, status),
      );
    };
    const request = Object.assign(new node.PipeConnectWrap(), { oncomplete: done });
    const status = pipe.connect(request, path);
    if (status !== 0) done(status);
  });
}

export type HandleServer = {
  /** Accepts no more channels. Open channels stay. */
  readonly close: () => void;
  /** Ends the open channels. */
  readonly end: () => void;
};

/** Accepts channels at `path`, for processes of the same user. `ownerOf` is called for each channel. */
export function listenForChannels(
  path: string,
  ownerOf: (channel: HandleChannel) => ChannelOwner,
): HandleServer | Failure {
  const node = internals();
  if (node === undefined) return unsupported;
  const server = new node.Pipe(node.kinds.SERVER);
  const failure = (what: string, code: number): Failure => {
    server.close();
    return failed(what, code);
  };
  const bound = server.bind(path);
  if (bound !== 0) return failure(`Cannot bind ${path}`, bound);
  try {
    chmodSync(path, 0o600);
  } catch (reason) {
    server.close();
    return failureFrom(reason, "proxy");
  }
  const listening = server.listen(mostChannels);
  if (listening !== 0) return failure(`Cannot listen at ${path}`, listening);
  const open = new Set<HandleChannel>();
  server.onconnection = (status, accepted) => {
    if (status !== 0 || accepted === undefined) return;
    if (open.size >= mostChannels) return accepted.close();
    // Node's object for an accepted pipe cannot receive sockets, so a second object is created for the same descriptor.
    // The first object is never closed, because closing the second one closes the descriptor. This costs half a
    // kilobyte of memory for each channel.
    accepted.unref();
    const pipe = new node.Pipe(node.kinds.IPC);
    if (pipe.open(accepted.fd) !== 0) return accepted.close();
    const channel: HandleChannel = new HandleChannel(pipe, node, {
      received: (message, handle) => owner.received(message, handle),
      ended: () => {
        open.delete(channel);
        owner.ended();
      },
    });
    open.add(channel);
    const owner = ownerOf(channel);
  };
  return {
    close: () => server.close(),
    end: () => {
      for (const channel of open) channel.close();
    },
  };
}

export class HandleChannel {
  readonly #pipe: Pipe;
  readonly #node: Internals;
  readonly #owner: ChannelOwner;
  /** Sockets that have arrived, but whose messages are still incomplete. */
  readonly #handles: PassedHandle[] = [];
  readonly #lines = new JsonLines(mostLineBytes);
  #isOver = false;

  constructor(pipe: Pipe, node: Internals, owner: ChannelOwner) {
    this.#pipe = pipe;
    this.#node = node;
    this.#owner = owner;
    pipe.pendingHandle = null;
    pipe.onread = (chunk) => this.#read(chunk);
    pipe.readStart();
  }

  /**
   * Sends a message, and with it a socket or a listening server, which stays open here as well. Resolves with true when
   * the kernel has both, so that the sender may close its socket; with false if the other process is gone.
   */
  send(message: Message, passed?: net.Socket | net.Server): Promise<boolean> {
    const handle: unknown = passed && Reflect.get(passed, "_handle");
    if (this.#isOver || handle === null || (passed !== undefined && typeof handle !== "object"))
      return Promise.resolve(false);
    const line = `${JSON.stringify({ ...message, ...(passed && { hasHandle: 1 }) })}\n`;
    return new Promise((resolve) => {
      const oncomplete = (status: number): void => resolve(status === 0);
      // `request` refers to the handle, so that the handle is not freed before the kernel has the socket.
      const request = Object.assign(new this.#node.WriteWrap(), { oncomplete, handle });
      const status =
        handle === undefined
          ? this.#pipe.writeUtf8String(request, line)
          : this.#pipe.writeUtf8String(request, line, handle);
      if (status !== 0) resolve(false);
      else if (!this.#node.isUnderWay()) resolve(true);
    });
  }

  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const handle of this.#handles) handle.close();
    this.#pipe.close();
    this.#owner.ended();
  }

  #read(chunk: ArrayBuffer | undefined): void {
    const handle = this.#pipe.pendingHandle;
    this.#pipe.pendingHandle = null;
    if (this.#isOver) return handle?.close();
    if (handle) this.#handles.push(handle);
    if (chunk === undefined) return this.close();
    const isFit = this.#lines.take(Buffer.from(chunk), (message) => {
      this.#take(message);
      return !this.#isOver;
    });
    // The kernel delivers a socket with the first byte of its line. All complete lines are processed at this point, so
    // at most one socket may be left, and only if an incomplete line is left.
    const mostHandles = this.#lines.pendingBytes > 0 ? 1 : 0;
    if (!isFit || this.#handles.length > mostHandles) this.close();
  }

  #take(message: JsonRecord | undefined): void {
    if (message === undefined) return this.close();
    const { hasHandle, ...rest } = messageIn(message);
    // A message is useless without its socket, which may be missing because this process has no free descriptor. In
    // this case the channel is closed.
    const handle = hasHandle === undefined ? undefined : this.#handles.shift();
    if (hasHandle === undefined || handle !== undefined) this.#owner.received(rest, handle);
    else this.close();
  }
}

function messageIn(value: JsonRecord): Message {
  const entries = Object.entries(value).filter(
    (entry): entry is [string, string | number] =>
      typeof entry[1] === "string" || typeof entry[1] === "number",
  );
  return Object.fromEntries(entries);
}
