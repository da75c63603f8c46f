/**
 * TCP as the watch scene needs it: segments in order with delay and loss, hosts and single connections that can be cut
 * off in either direction, and what the kernel does then. Nothing written is lost: through a hole that heals it
 * arrives at the next retransmission, seconds late, which is what makes holes hard (D6).
 */
import { Failure } from "../../../src/base/failure.ts";
import { limits } from "../../../src/base/limits.ts";
import type { Wire, WireOwner } from "../../../src/proxy/net/wire.ts";
import type { Random } from "../random.ts";
import type { World } from "../world.ts";

/** Linux' first retransmission; each later one waits twice as long (RFC 6298). */
const firstRetryMs = 200;
/** Segments that may be sent without one of them being acknowledged: Linux' first congestion window (RFC 6928). */
const blindSegments = 10;
/** What the kernel takes from a writer whose reader is slow: both socket buffers together. */
const kernelBytes = 128 * 1024;

const unowned: WireOwner = { receive() {}, drained() {}, closed() {} };

/** What travels: bytes, the end of one direction, or the reset of both. */
type Segment = Buffer | "end" | "reset";

/** One place that packets leave from and come to. */
export class Host {
  readonly name: string;
  /** Packets are dropped on their way to it, or from it. */
  dropsIn = false;
  dropsOut = false;
  /** Its processes stand still while its kernel acknowledges: SIGSTOP. */
  isFrozen = false;
  /** It refuses new connections. */
  isDown = false;
  readonly ends = new Set<End>();

  constructor(name: string) {
    this.name = name;
  }

  thaw(): void {
    this.isFrozen = false;
    for (const end of this.ends) end.resume();
  }

  /** Nothing comes to it, nor from it. */
  drop(): void {
    this.dropsIn = true;
    this.dropsOut = true;
  }

  /** What was dropped so far comes with its next retransmission. */
  heal(): void {
    this.dropsIn = false;
    this.dropsOut = false;
    for (const end of this.ends) end.healed();
  }
}

export type WireOptions = {
  /** One way. */
  readonly delayMs: number;
  readonly jitterMs: number;
  /** How likely a segment is lost and comes one retransmission late, and all behind it too. */
  readonly loss: number;
  /** How likely a write is cut in two at any byte; each part may be cut again. */
  readonly cuts: number;
};

export class End implements Wire {
  readonly host: Host;
  readonly #wires: Wires;
  readonly #options: WireOptions;
  owner: WireOwner = unowned;
  peer: End | undefined;
  /** This direction alone is cut off: one conntrack entry. */
  drops = false;
  isClosed = false;
  /** The connection is made: until then what is written waits here. */
  #isConnected = false;
  /** What is being read now was long on its way: dropped at first, or waiting for a process that stood still. */
  isLate = false;
  #arrivesAt = 0;
  /** Sent and not delivered: in flight, or dropped and due at a later retransmission. */
  readonly #unacknowledged: Segment[] = [];
  #droppedSince = -1;
  /** Sent while nothing came back. */
  #sentBlindly = 0;
  #isEnding = false;
  #hasSentEnd = false;
  /** Delivered to the peer's kernel, not read by its process. */
  readonly #inbox: Segment[] = [];
  #isPaused = false;
  /** Written beyond what the kernels hold. */
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
    // Copied as the kernel would: who wrote may use its buffers again.
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

  /** The process at this end reads nothing for a while. */
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
    // What its kernel still has to say is said when the hole has healed.
    if (this.#droppedSince < 0) this.host.ends.delete(this);
    this.#wires.open.delete(this);
    this.#wires.world.after(0, () => this.owner.closed(failure));
  }

  /** A hole over this direction has healed: the next retransmission comes through. */
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

  /** True if what is sent from here does not arrive. */
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
      // On its way when the hole opened: dropped with all behind it.
      this.#droppedSince = this.#wires.world.now();
      return;
    }
    const segment = this.#unacknowledged.shift();
    if (segment !== undefined) this.peer?.heard(segment);
  }

  /** All that was dropped comes at the first retransmission from now on. */
  #retransmit(): void {
    if (this.#droppedSince < 0 || this.isCut || this.peer?.isCut === true) return;
    const { world } = this.#wires;
    const since = this.#droppedSince;
    let waitMs = firstRetryMs;
    while (since + waitMs < world.now()) waitMs = 2 * waitMs + firstRetryMs;
    // A reset is not sent again: whatever the other side says next is answered with one.
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

  /** The other process has read so much. */
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

  /** Two ends of a connection that is being made; `accept` is called when the first packet got through. */
  connect(from: Host, to: Host, options: WireOptions, accept: (end: End) => void): End {
    const near = new End(this, from, options);
    const far = new End(this, to, options);
    near.peer = far;
    far.peer = near;
    this.open.add(near);
    this.open.add(far);
    // Three more crossings: SYN and TLS. What is written meanwhile waits behind them.
    this.world.after(2 * options.delayMs, () => this.#deliver(near, to, accept));
    return near;
  }

  /** SYN is sent again like anything else; a host that is down refuses it. */
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

  /** Every connection of a host ends, as when its process is killed. */
  kill(host: Host): void {
    for (const end of Array.from(host.ends)) end.destroy();
  }
}
