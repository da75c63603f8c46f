package main

import (
	"flag"
	"fmt"
)

// idle opens -clients sessions, lets each ask once, and holds them until the harness is gone.
func idle(args []string) error {
	flags := flag.NewFlagSet("idle", flag.ExitOnError)
	address := flags.String("to", "", "proxy")
	dir := flags.String("pki", ".", "folder of ca.crt")
	count := flags.Int("clients", 2000, "sessions")
	path := flags.String("path", "/api/v1/namespaces/default/pods/small", "what each asks once")
	flags.Parse(args)
	to, err := targetOf(*address, *dir)
	if err != nil {
		return err
	}
	for range *count {
		if _, err := greet(to, *path, heard{}); err != nil {
			return err
		}
	}
	say(map[string]any{"clients": *count})
	hear()
	return nil
}

// greet opens a session and waits for its first answer; what comes later goes to `then`.
func greet(to target, path string, then heard) (*client, error) {
	c, err := dial(to)
	if err != nil {
		return nil, err
	}
	first := make(chan bool, 1)
	var isAnswered bool
	onEnd := then.onEnd
	var status bool
	onHead := then.onHead
	then.onHead = func(id uint32, ok bool) {
		if !isAnswered {
			status = ok
		} else if onHead != nil {
			onHead(id, ok)
		}
	}
	then.onEnd = func(id uint32, ok bool) {
		if !isAnswered {
			isAnswered = true
			first <- ok && status
		} else if onEnd != nil {
			onEnd(id, ok)
		}
	}
	go func() {
		if c.read(then); !isAnswered {
			first <- false
		}
	}()
	if _, err := c.get(path); err != nil {
		return nil, err
	}
	if !<-first {
		return nil, fmt.Errorf("the first request got no 200")
	}
	return c, nil
}
