/**
 * A model of TCP for the watch simulation. Segments arrive in order, with delay and loss. A host or a single connection
 * can be cut off in either direction, and the model then does what the kernel does. No written byte is lost: bytes that
 * are sent during an outage arrive with the first retransmission after it, seconds late (D6).
 */
import { Failure } from "../../../src/base/failure.ts";
import { limits } from "../../../src/base/limits.ts";
import type { Wire, WireOwner } from "../../../src/upstream/net/wire.ts";
import type { Random } from "../random.ts";
import type { World } from "../world.ts";

/** Linux' first retransmission timeout. Each later retransmission waits twice as long (RFC 6298). */
const firstRetryMs = 200;
/**
 * Number of segments that a sender may send before the first acknowledgement: Linux' initial congestion window (RFC
 * 6928).
 */
const blindSegments = 10;
/** Bytes that the kernel accepts from a writer whose peer does not read: the send and the receive buffer together. */
const kernelBytes = 128 * 1024;

const unowned: WireOwner = { receive() {}, drained() {}, closed() {} };

/** One unit of transmission: bytes, a FIN ("end") or a reset of the connection. */
type Segment = Buffer | "end" | "reset";

/** A machine that sends and receives packets. */
export class Host {
  readonly name: string;
  /** True while packets to this host (`dropsIn`) or from it (`dropsOut`) are dropped. */
  dropsIn = false;
  dropsOut = false;
  /** True while the host's processes are stopped (SIGSTOP). Its kernel still acknowledges packets. */
  isFrozen = false;
  /** True while the host refuses new connections. */
  isDown = false;
  readonly ends = new Set<End>();

  constructor(name: string) {
    this.name = name;
  }

  thaw(): void {
    this.isFrozen = false;
    for (const end of this.ends) end.resume();
  }

  /** Drops all packets to this host and from it. */
  drop(): void {
    this.dropsIn = true;
    this.dropsOut = true;
  }

  /** Ends the outage. Segments that were dropped arrive with their next retransmission. */
  heal(): void {
    this.dropsIn = false;
    this.dropsOut = false;
    for (const end of this.ends) end.healed();
  }
}

export type WireOptions = {
  /** Delay in one direction. */
  readonly delayMs: number;
  readonly jitterMs: number;
  /** Probability that a segment is lost. A lost segment, and all segments behind it, arrive one retransmission late. */
  readonly loss: number;
  /** Probability that a write is split in two at a random byte. Each half may be split again. */
  readonly cuts: number;
};

export class End implements Wire {
  readonly host: Host;
  readonly #wires: Wires;
  readonly #options: WireOptions;
  owner: WireOwner = unowned;
  peer: End | undefined;
  /** True while only this direction of this connection drops packets, as when one conntrack entry is lost. */
  drops = false;
  isClosed = false;
  /** True once the connection is established. Bytes that are written earlier wait in the backlog. */
  #isConnected = false;
  /**
   * True while the owner reads bytes that arrive long after they were sent: they were dropped at first, or they waited
   * for a stopped process.
   */
  isLate = false;
  #arrivesAt = 0;
  /**
   * Segments that were sent and not yet delivered. They are in flight, or they were dropped and wait for a
   * retransmission.
   */
  readonly #unacknowledged: Segment[] = [];
  #droppedSince = -1;
  /** Number of segments that were sent since packets from the peer, and so its acknowledgements, were cut off. */
  #sentBlindly = 0;
  #isEnding = false;
  #hasSentEnd = false;
  /** Segments that arrived in this host's kernel and that its process has not read yet. */
  readonly #inbox: Segment[] = [];
  #isPaused = false;
  /** Bytes that were written and that do not fit into the kernel's buffers. */
  readonly #backlog: Buffer[] = [];
  #backlogBytes = 0;
  #underWayBytes = 0;
  #isDrainDue = false;

  constructor(wires: Wires, host: Host, options: WireOptions) {
    this.#wires = wires;
    this.host = host;
    this.#options = options;
    host.ends.add(this);
  }

  write(buffers: readonly Buffer[]): boolean {
    if (this.isClosed || this.#isEnding) return true;
    const [first] = buffers;
    // Copied as the kernel does, so the caller may reuse its buffers.
    if (first !== undefined) this.#push(buffers.length === 1 ? Buffer.from(first) : Buffer.concat(buffers));
    return this.#backlogBytes <= limits.socketBacklogBytes;
  }

  end(): void {
    if (this.isClosed || this.#isEnding) return;
    this.#isEnding = true;
    if (this.#backlogBytes === 0 && this.#maySend) this.#sendEnd();
  }

  destroy(): void {
    if (this.isClosed) return;
    this.#unacknowledged.length = 0;
    this.#send("reset");
    this.close(undefined);
  }

  connected(): void {
    this.#isConnected = true;
    this.taken(0);
  }

  /** Stops the process at this end from reading. */
  pause(): void {
    this.#isPaused = true;
  }

  unpause(): void {
    this.#isPaused = false;
    this.resume();
  }

  resume(): void {
    if (this.#inbox.length > 0) this.#wires.world.after(0, () => this.#late(() => this.#read()));
    this.taken(0);
  }

  close(failure: Failure | undefined): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#inbox.length = 0;
    this.#backlog.length = 0;
    // After an outage the kernel still sends the segments of a closed socket, so the host keeps this end until then.
    if (this.#droppedSince < 0) this.host.ends.delete(this);
    this.#wires.open.delete(this);
    this.#wires.world.after(0, () => this.owner.closed(failure));
  }

  /** An outage of this direction is over: the next retransmission arrives. */
  healed(): void {
    this.#retransmit();
    this.peer?.retransmit();
  }

  retransmit(): void {
    this.#retransmit();
  }

  get #maySend(): boolean {
    return this.#isConnected && !this.host.isFrozen;
  }

  /** True if segments that are sent from this end do not arrive. */
  get isCut(): boolean {
    return this.drops || this.host.dropsOut || this.peer?.host.dropsIn === true;
  }

  #push(bytes: Buffer): void {
    const { random } = this.#wires;
    if (bytes.length > 20 && this.#options.cuts > 0 && random.chance(this.#options.cuts)) {
      const at = random.whole(1, bytes.length - 1);
      this.#push(bytes.subarray(0, at));
      this.#push(bytes.subarray(at));
    } else if (!this.#maySend || this.#backlogBytes > 0 || this.#underWayBytes > kernelBytes) {
      this.#backlog.push(bytes);
      this.#backlogBytes += bytes.length;
      this.#isDrainDue = true;
    } else {
      this.#underWayBytes += bytes.length;
      this.#send(bytes);
    }
  }

  #send(segment: Segment): void {
    const { world, random } = this.#wires;
    const { delayMs, jitterMs, loss } = this.#options;
    this.#unacknowledged.push(segment);
    if (this.#droppedSince >= 0) return;
    this.#sentBlindly = this.peer?.isCut === true ? this.#sentBlindly + 1 : 0;
    if (this.isCut || this.#sentBlindly > blindSegments) {
      this.#droppedSince = world.now();
      return;
    }
    const lateMs = loss > 0 && random.chance(loss) ? firstRetryMs : 0;
    const at = world.now() + delayMs + random.next() * jitterMs + lateMs;
    this.#arrivesAt = Math.max(this.#arrivesAt, at);
    world.at(this.#arrivesAt, () => this.#arrive());
  }

  #arrive(): void {
    if (this.#droppedSince >= 0) return;
    if (this.isCut) {
      // The outage began while this segment was in flight. It is dropped, and so is every segment behind it.
      this.#droppedSince = this.#wires.world.now();
      return;
    }
    const segment = this.#unacknowledged.shift();
    if (segment !== undefined) this.peer?.heard(segment);
  }

  /** Delivers all dropped segments at the time of the next retransmission. */
  #retransmit(): void {
    if (this.#droppedSince < 0 || this.isCut || this.peer?.isCut === true) return;
    const { world } = this.#wires;
    const since = this.#droppedSince;
    let waitMs = firstRetryMs;
    while (since + waitMs < world.now()) waitMs = 2 * waitMs + firstRetryMs;
    // The kernel does not retransmit a reset. It answers the peer's next packet with a reset.
    if (this.isClosed) waitMs = world.now() - since + firstRetryMs;
    world.at(since + waitMs + this.#options.delayMs, () => {
      if (this.#droppedSince !== since || this.isCut) return;
      this.#droppedSince = -1;
      this.#sentBlindly = 0;
      if (this.isClosed) this.host.ends.delete(this);
      const segments = this.#unacknowledged.splice(0);
      this.peer?.heardLate(segments);
    });
  }

  heardLate(segments: readonly Segment[]): void {
    this.#late(() => {
      for (const segment of segments) this.heard(segment);
    });
  }

  heard(segment: Segment): void {
    if (this.isClosed) return;
    if (segment === "reset") return this.close(new Failure("backend-lost", "backend", "read ECONNRESET"));
    this.#inbox.push(segment);
    this.#read();
  }

  #late(read: () => void): void {
    this.isLate = true;
    read();
    this.isLate = false;
  }

  #read(): void {
    while (!this.#isPaused && !this.host.isFrozen && !this.isClosed) {
      const segment = this.#inbox.shift();
      if (segment === undefined || segment === "reset") return;
      if (segment === "end") return this.#heardEnd();
      this.peer?.taken(segment.length);
      this.owner.receive(segment);
    }
  }

  #sendEnd(): void {
    if (this.#hasSentEnd || this.isClosed) return;
    this.#hasSentEnd = true;
    this.#send("end");
  }

  #heardEnd(): void {
    this.end();
    this.close(undefined);
  }

  /** The peer's process has read `count` bytes. */
  taken(count: number): void {
    this.#underWayBytes -= count;
    if (!this.#maySend) return;
    while (this.#underWayBytes <= kernelBytes) {
      const next = this.#backlog.shift();
      if (next === undefined) break;
      this.#backlogBytes -= next.length;
      this.#underWayBytes += next.length;
      this.#send(next);
    }
    if (this.#backlogBytes > 0) return;
    if (this.#isEnding) this.#sendEnd();
    if (!this.#isDrainDue) return;
    this.#isDrainDue = false;
    this.#wires.world.after(0, () => {
      if (!this.isClosed) this.owner.drained();
    });
  }
}

export class Wires {
  readonly world: World;
  readonly random: Random;
  readonly open = new Set<End>();

  constructor(world: World, random: Random) {
    this.world = world;
    this.random = random;
  }

  /** Begins a connection and returns its near end. Calls `accept` with the far end when the SYN has arrived. */
  connect(from: Host, to: Host, options: WireOptions, accept: (end: End) => void): End {
    const near = new End(this, from, options);
    const far = new End(this, to, options);
    near.peer = far;
    far.peer = near;
    this.open.add(near);
    this.open.add(far);
    // The handshakes of TCP and TLS take three more trips. Bytes that are written meanwhile wait until they are over.
    this.world.after(2 * options.delayMs, () => this.#deliver(near, to, accept));
    return near;
  }

  /** A dropped SYN is sent again after one second. A host that is down refuses the connection. */
  #deliver(near: End, to: Host, accept: (end: End) => void): void {
    if (near.isClosed || near.peer === undefined) return;
    if (near.host.dropsOut || to.dropsIn || near.drops) {
      this.world.after(1_000, () => this.#deliver(near, to, accept));
    } else if (to.isDown) {
      near.peer.close(undefined);
      near.close(new Failure("backend-refused", "backend", "connect ECONNREFUSED"));
    } else {
      accept(near.peer);
      near.peer.connected();
      near.connected();
    }
  }

  /** Resets every connection of the host, as when its process is killed. */
  kill(host: Host): void {
    for (const end of Array.from(host.ends)) end.destroy();
  }
}
