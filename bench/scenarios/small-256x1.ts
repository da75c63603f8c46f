import { smallRequests } from "../small.ts";

export const scenario = smallRequests(256, 1);
