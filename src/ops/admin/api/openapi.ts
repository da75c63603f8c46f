/** Generates the OpenAPI 3.1 document at /openapi.json from the lists, fields and operations that serve the API. */

import { forwardedPosts } from "../../../fleet/replicas/forwarding.ts";
import { docsPage } from "../../program/docs.ts";
import { adminLimits } from "../http/limits.ts";
import type { Page } from "../http/listing.ts";
import { jsonReply, type Reply, type Routes } from "../http/reply.ts";
import type { Pages } from "./api.ts";
import { backendFields } from "./backend-listing.ts";
import { certificateFields } from "./certificate-listing.ts";
import { clientFields } from "./client-listing.ts";
import { object, ref, type Schema, schemaOf } from "./fields.ts";
import { historySchema } from "./history-reply.ts";
import { incidentFields } from "./incident-listing.ts";
import { leaseFields } from "./lease-listing.ts";
import { limitFields } from "./limit-listing.ts";
import { type OperationPath, operationPaths } from "./operation-posts.ts";
import { replicaFields } from "./replica-listing.ts";
import { statsFields } from "./stats.ts";
import { watchDetailFields, watchFields } from "./watch-listing.ts";

const text = (description: string): Schema => ({ type: "string", description });

/** Schemas of the API's objects, by the name that references use. */
export const schemas: Readonly<Record<string, Schema>> = {
  Incident: schemaOf(incidentFields),
  Backend: schemaOf(backendFields),
  Watch: schemaOf(watchFields),
  WatchDetail: schemaOf(watchDetailFields),
  Client: schemaOf(clientFields),
  Lease: schemaOf(leaseFields),
  Limit: schemaOf(limitFields),
  Replica: schemaOf(replicaFields),
  Certificate: schemaOf(certificateFields),
  Stats: schemaOf(statsFields),
  History: historySchema,
  Group: object({
    value: text("A value of the column."),
    rows: { type: "integer", description: "Number of matching rows with this value." },
  }),
  Failure: object({ kind: { const: "Failure" }, message: text("The reason.") }),
  Operation: object({
    kind: { const: "Operation" },
    operation: { ...text("The operation."), enum: operationPaths.map(({ operation }) => operation) },
    target: text("What it was applied to."),
    outcome: text("The result, in a sentence."),
  }),
  Index: object({
    kind: { const: "Index" },
    paths: { type: "array", items: { type: "string" }, description: "Paths of the API." },
  }),
};

const events =
  "The journal as it is written, as server-sent events. A client that reconnects with Last-Event-ID first gets the entries that it missed.";

export function openapiRoutes(pages: Pages, version: string): Routes {
  let reply: Reply | undefined;
  return (path) => {
    if (path !== "/openapi.json") return undefined;
    return () => {
      reply ??= jsonReply(200, openapiOf(pages, version));
      return reply;
    };
  };
}

export function openapiOf(pages: Pages, version: string): Schema {
  const lists = Object.fromEntries(Array.from(pages, ([name, page]) => listPath(name, page)));
  // Operations are added to an existing path, because a list and an operation may have the same path.
  const operations = operationPaths
    .map((one) => operationPath(one))
    .map(([path, operation]) => [path, { ...lists[path], ...operation }]);
  return {
    openapi: "3.1.0",
    info: {
      title: "watchkeeper's admin API",
      version,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      description: `The proxy's state, and operations on it. See ${docsPage("admin-api.md")}.`,
    },
    servers: [{ url: "/" }],
    paths: {
      "/api/v1/": { get: read("index", "All paths.", ref("Index")) },
      ...lists,
      "/api/v1/incidents/{id}": incidentPath,
      "/api/v1/watches/{id}": watchPath,
      "/api/v1/stats": { get: read("stats", "Counters since the process began.", ref("Stats")) },
      "/api/v1/history": historyPath,
      "/api/v1/events": eventsPath,
      "/api/v1/replicas/{name}/{path}": forwardedGet,
      ...Object.fromEntries(operations),
      ...Object.fromEntries(operationPaths.flatMap((one) => forwardedPost(...operationPath(one)))),
    },
    components: { schemas },
  };
}

const json = (schema: Schema): Schema => ({ "application/json": { schema } });

const answer = (description: string, schema: Schema): Schema => ({ description, content: json(schema) });

const failure = (description: string): Schema => answer(description, ref("Failure"));

function read(operationId: string, summary: string, schema: Schema): Schema {
  return { operationId, summary, responses: { "200": answer(summary, schema) } };
}

function listPath(name: string, { kind, columns, sort }: Page): readonly [string, Schema] {
  const page = object({
    at: { type: "string", format: "date-time" },
    kind: { const: kind },
    total: { type: "integer", description: "All rows." },
    matching: { type: "integer", description: "Rows that match the filters." },
    offset: { type: "integer" },
    limit: { type: "integer" },
    items: { type: "array", items: ref(kind.replace(/List$/, "")) },
    groups: { type: "array", items: ref("Group"), description: "Empty without the parameter `group`." },
  });
  const orders = columns.flatMap((column) => [column, `-${column}`]);
  const parameters = [
    query("limit", whole(1, adminLimits.apiPageMost, adminLimits.apiPage), "Rows of a page."),
    query("offset", whole(0, adminLimits.apiOffset, 0), "Rows to skip."),
    query(
      "sort",
      { type: "string", enum: orders, default: sort },
      'A column; with "-" before it, descending.',
    ),
    query("group", { type: "string", enum: columns }, "A column whose values are counted."),
    query("q", { type: "string" }, "Text in any column, case-insensitive."),
    ...columns.map((column) =>
      query(
        column,
        { type: "array", items: { type: "string" } },
        "Whole values of that column: one must match.",
      ),
    ),
  ];
  const summary = `A page of ${name}.`;
  const responses = { "200": answer(summary, page), "400": failure("The query is invalid.") };
  return [`/api/v1/${name}`, { get: { operationId: `list-${name}`, summary, parameters, responses } }];
}

function whole(least: number, most: number, usual: number): Schema {
  return { type: "integer", minimum: least, maximum: most, default: usual };
}

function query(name: string, schema: Schema, description: string): Schema {
  return { name, in: "query", description, schema };
}

const incidentPath: Schema = {
  get: {
    operationId: "get-incident",
    summary: "One incident.",
    parameters: [{ name: "id", in: "path", required: true, schema: { type: "integer" } }],
    responses: {
      "200": answer("The incident.", ref("Incident")),
      "404": failure("No incident of that number is kept."),
    },
  },
};

const watchPath: Schema = {
  get: {
    operationId: "get-watch",
    summary: "One open watch, with the latest changes of its state.",
    parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
    responses: {
      "200": answer("The watch.", ref("WatchDetail")),
      "404": failure("No open watch has this audit ID."),
    },
  },
};

const historyPath: Schema = {
  get: {
    operationId: "history",
    summary: "The last hour, in steps of five seconds.",
    parameters: [query("after", { type: "integer", minimum: -1, default: -1 }, "Only steps after this one.")],
    responses: {
      "200": answer("The steps, as columns of numbers.", ref("History")),
      "400": failure("The query is invalid."),
    },
  },
};

const eventsPath: Schema = {
  get: {
    operationId: "events",
    summary: events,
    parameters: [
      query("kind", { type: "string" }, "Only entries whose kind begins with this text."),
      { name: "Last-Event-ID", in: "header", schema: { type: "string" } },
    ],
    responses: {
      "200": { description: events, content: { "text/event-stream": { schema: { type: "string" } } } },
      "503": failure("Too many streams are open."),
    },
  },
};

const replicaParameter: Schema = {
  name: "name",
  in: "path",
  required: true,
  description: "Name of a replica in `/api/v1/replicas`.",
  schema: { type: "string" },
};

const forwardFailures = {
  "404": failure("There is no replica of this name."),
  "502": failure("The replica does not answer."),
  "503": failure("Too many requests or responses are being forwarded."),
};

/** The GET request that is forwarded to a replica. `{path}` may have several segments, which OpenAPI cannot express. */
const forwardedGet: Schema = {
  get: {
    operationId: "get-from-replica",
    summary:
      "Forwards the request, with the caller's token, to a replica: `{path}` is a path of this document below /api/v1/, without /events and this path itself.",
    parameters: [replicaParameter, { name: "path", in: "path", required: true, schema: { type: "string" } }],
    responses: {
      "200": answer("The replica's response.", {}),
      "307": answer("The replica is this process: ask the path itself.", {}),
      ...forwardFailures,
    },
  },
};

/** Returns the path by which an operation is forwarded, with its POST operation; [] if it cannot be forwarded. */
function forwardedPost(path: string, { post }: Schema): readonly (readonly [string, Schema])[] {
  if (!forwardedPosts.test(path) || typeof post !== "object") return [];
  const own: Schema = { ...post };
  const { operationId, parameters, responses } = own;
  const forwarded: Schema = {
    ...own,
    operationId: `${String(operationId)}-at-replica`,
    parameters: [replicaParameter, ...(Array.isArray(parameters) ? parameters : [])],
    responses: { ...Object(responses), ...forwardFailures },
  };
  return [[path.replace("/api/v1/", "/api/v1/replicas/{name}/"), { post: forwarded }]];
}

/**
 * Returns the schema for the body of a request that sets a limit. The configuration's schema describes the fields in
 * detail.
 */
function limitBody(reason: Schema): Schema {
  const texts: Schema = { type: "array", maxItems: 32, items: { type: "string" } };
  const count: Schema = { type: "integer", minimum: 1 };
  return {
    type: "object",
    required: ["duration"],
    properties: {
      duration: text('How long the limit is in force, such as "1h".'),
      users: texts,
      groups: texts,
      userAgents: texts,
      sourceCIDRs: texts,
      verbs: texts,
      resources: texts,
      rate: text('Requests that may begin, such as "10/s".'),
      burst: count,
      maxInFlight: count,
      scope: { type: "string", enum: ["Replica", "AllReplicas"], default: "Replica" },
      reason,
    },
  };
}

/** Returns an operation's path and the description of its POST request. Placeholders in the path become parameters. */
function operationPath({
  path,
  operation,
  about,
  hasBody = false,
}: OperationPath): readonly [string, Schema] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const reason = { type: "string", maxLength: adminLimits.operatorChars, description: "For the log." };
  return [
    path,
    {
      post: {
        operationId: operation,
        summary: about,
        parameters: [
          ...names.map((name) => ({ name, in: "path", required: true, schema: { type: "string" } })),
          { name: "x-watchkeeper-operator", in: "header", required: true, schema: { type: "string" } },
        ],
        requestBody: {
          required: true,
          content: json(hasBody ? limitBody(reason) : { type: "object", properties: { reason } }),
        },
        responses: {
          "200": answer("Done.", ref("Operation")),
          "403": failure("Not allowed for this client, or operations are disabled."),
          "404": failure("No such backend, watch or limit."),
          "409": failure("Not possible in the current state."),
          "413": failure("The body is too long."),
          "415": failure("The body is not JSON."),
          "422": failure("The configuration was rejected."),
        },
      },
    },
  ];
}
