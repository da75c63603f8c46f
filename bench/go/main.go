// Command bench runs the clients and the backend of the benchmark, for which Node would use too much CPU. Each
// subcommand has a file of its own. bench/*.ts sends it commands on stdin, and reads lines of JSON from its stdout.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

var commands = map[string]func(args []string) error{
	"pki":   pki,
	"serve": serve,
	"rate":  rate,
	"watch": watch,
	"idle":  idle,
	"shake": shake,
}

func main() {
	// Makes garbage collections rare, because one on the load's core would look like latency of the proxy.
	debug.SetGCPercent(400)
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: bench pki|serve|rate|watch|idle|shake [flags]")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "bench %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// say writes one line of JSON for the harness.
func say(fact map[string]any) {
	line, _ := json.Marshal(fact)
	os.Stdout.Write(append(line, '\n'))
}

var stdin = bufio.NewScanner(os.Stdin)

// hear waits for the harness's next command. It returns false if the harness has ended.
func hear() (string, bool) {
	ok := stdin.Scan()
	return strings.TrimSpace(stdin.Text()), ok
}
