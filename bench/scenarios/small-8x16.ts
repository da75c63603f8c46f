import { smallRequests } from "../small.ts";

export const scenario = smallRequests(8, 16);
