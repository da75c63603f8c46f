import { smallRequests } from "../small.ts";

export const scenario = smallRequests(64, 1);
