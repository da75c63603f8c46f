/** Faults in lanes, their PINGs and what they say of their backend. */
import { type Defect, defect } from "../defect.ts";

export const lanes: readonly Defect[] = [
  defect(
    "a lane resets as often as it is asked to",
    {
      file: "proxy/lane.ts",
      find: "if (isAnswered || this.#resets.take()) {",
      replace: "if (isAnswered || !isAnswered) {",
    },
    ["proxy/lane", "beyond its budget of resets"],
  ),
  defect(
    "an answer that nobody wants is read for ever",
    {
      file: "proxy/lane.ts",
      find: "    if (this.#left < 0) this.stream?.reset(errorCode.CANCEL);\n    else this.stream?.grant(end - start);",
      replace: "    this.stream?.grant(end - start);",
    },
    ["proxy/lane", "a drained answer that does not end"],
  ),
  defect(
    "a slow upload is taken for silence",
    {
      file: "proxy/lane.ts",
      find: "if (waiting < this.#waitingBytes) this.#heardAt = this.now;",
      replace: "",
    },
    ["proxy/lane", "a PING behind a backlog"],
  ),
  defect(
    "a lane takes more streams than its backend allows",
    {
      file: "proxy/lane.ts",
      find: "Math.min(this.#options.mostStreams, this.#session.peerMaxStreams)",
      replace: "this.#options.mostStreams",
    },
    ["proxy/lanes", "a lane takes no more streams than its backend allows"],
  ),
  defect(
    "watches and GETs share lanes",
    {
      file: "proxy/lane-key.ts",
      find: 'owner === "" ? `${trust} ${kind}` :',
      replace: 'owner === "" ? `${trust}` :',
    },
    ["proxy/lanes", "short requests and watches never share a lane"],
  ),
  defect(
    "private lanes are everybody's",
    { file: "proxy/lane-key.ts", find: "`${trust} ${kind} ${owner}`", replace: "`${trust} ${kind}`" },
    ["proxy/lanes", "sharing none gives every client lanes of its own"],
  ),
  defect(
    "idle lanes stay",
    { file: "proxy/lane-row.ts", find: "now - lane.idleSince > ms", replace: "ms < 0" },
    ["proxy/lanes", "lanes beyond the warm ones go"],
  ),
  defect(
    "what a burst has opened stays for a minute",
    { file: "proxy/lane-row.ts", find: "idleFor(limits.spareLaneMs)", replace: "idleFor(limits.idleLaneMs)" },
    ["proxy/lane-row", "lanes that a burst has opened close within 5 s"],
  ),
  defect(
    "our own stall is held against lanes",
    {
      file: "proxy/pulse.ts",
      find: "if (isLate) for (const lane of lanes()) lane.forgive(lateMs);",
      replace: "",
    },
    ["proxy/pulse", "time in which our own loop stood still"],
  ),
  defect(
    "a deadline is met late",
    {
      file: "proxy/pulse.ts",
      find: "if (now >= dueAt) tell(lane, now - silentSince);",
      replace: "if (now > dueAt + 50) tell(lane, now - silentSince);",
    },
    ["proxy/pulse", "deadlines are kept to the millisecond"],
  ),
  defect(
    "a lane in a hole that heals dies",
    {
      file: "proxy/pulse.ts",
      find: "isAnswering ? Math.max(deadAfterMs, limits.lanePatienceMs) : deadAfterMs",
      replace: "isAnswering ? deadAfterMs : deadAfterMs",
    },
    ["proxy/pulse", "a silent lane of a backend that answers elsewhere"],
  ),
  defect(
    "one GOAWAY is taken for all",
    {
      file: "proxy/witness.ts",
      find: "opened.length > 0 && opened.every((lane) => lane.isPeerGoing)",
      replace: "opened.some((lane) => lane.isPeerGoing)",
    },
    ["proxy/witness", "GOAWAY on one lane is that lane's"],
  ),
  defect(
    "one silent lane makes its backend suspect",
    {
      file: "proxy/witness.ts",
      find: "    if (this.hasAnswering) return;\n    this.#isSilent = true;",
      replace: "    this.#isSilent = true;",
    },
    ["proxy/witness", "one silent lane among others"],
  ),
];
