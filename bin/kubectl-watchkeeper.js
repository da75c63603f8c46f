#!/usr/bin/env node
// The kubectl plugin: for `kubectl watchkeeper status`, kubectl runs the program of this name on the PATH.
import "./watchkeeper.js";
