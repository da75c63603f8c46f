#!/usr/bin/env node
// `kubectl watchkeeper status`: kubectl runs what has this name on the PATH. It is the same program.
import "./watchkeeper.js";
