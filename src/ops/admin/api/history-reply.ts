/** `/api/v1/history`: the last hour of the process and of each backend (admin/history), as columns of numbers. */
import type { History } from "../history/history.ts";
import { backendSeries, processSeries } from "../history/series.ts";
import { failed, type Reply } from "../http/reply.ts";
import { object, type Schema } from "./fields.ts";

const column = ({ name, about }: { readonly name: string; readonly about: string }): [string, Schema] => [
  name,
  { type: "array", items: { type: ["number", "null"] }, description: about },
];

export const historySchema: Schema = object({
  kind: { const: "History" },
  at: { type: "string", format: "date-time", description: "Time of this response." },
  startedAt: { type: "string", format: "date-time", description: "When step 0 began." },
  stepMs: { type: "integer", description: "Duration of a step, in ms." },
  first: { type: "integer", description: "Number of the first step in the columns." },
  next: { type: "integer", description: "Number of the step after the last one in the columns." },
  process: { ...object(Object.fromEntries(processSeries.map(column))), description: "The process." },
  backends: {
    type: "array",
    description: "The backends of the last hour.",
    items: object({
      name: { type: "string", description: "The backend." },
      series: object(Object.fromEntries(backendSeries.map(column))),
    }),
  },
});

/** `?after=N` omits step N and all steps before it, because the client already has them. */
export async function historyReply(history: Pick<History, "text">, query: string): Promise<Reply> {
  const after = new URLSearchParams(query).get("after") ?? "-1";
  if (!/^(-1|\d{1,9})$/.test(after)) return failed(400, '"after" must be the number of a step');
  return { status: 200, type: "application/json; charset=utf-8", text: await history.text(Number(after)) };
}
