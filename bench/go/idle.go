package main

import (
	"flag"
	"fmt"
)

// warmUps is the number of requests before memory is measured.
const warmUps = 10_000

// idle warms up the proxy. On a command it opens -clients sessions, sends one request on each, and keeps them open
// until the harness ends.
func idle(args []string) error {
	flags := flag.NewFlagSet("idle", flag.ExitOnError)
	address := flags.String("to", "", "proxy")
	dir := flags.String("pki", ".", "folder of ca.crt")
	count := flags.Int("clients", 2000, "sessions")
	path := flags.String("path", smallPath, "what each asks once")
	flags.Parse(args)
	to, err := targetOf(*address, *dir)
	if err != nil {
		return err
	}
	if err := warm(to, *path, warmUps); err != nil {
		return err
	}
	say(map[string]any{"ready": "warm"})
	hear()
	for range *count {
		if _, err := greet(to, *path, heard{}); err != nil {
			return err
		}
	}
	say(map[string]any{"clients": *count})
	hear()
	return nil
}

// greet opens a session and waits for the first response on it. What arrives later goes to `then`.
func greet(to target, path string, then heard) (*client, error) {
	c, err := dial(to)
	if err != nil {
		return nil, err
	}
	first := make(chan bool, 1)
	var isAnswered, isOK bool
	later := then
	then.onHead = func(id uint32, ok bool) {
		if !isAnswered {
			isOK = ok
		} else if later.onHead != nil {
			later.onHead(id, ok)
		}
	}
	then.onEnd = func(id uint32, ok bool) {
		if !isAnswered {
			isAnswered = true
			first <- ok && isOK
		} else if later.onEnd != nil {
			later.onEnd(id, ok)
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

// warm sends `count` requests on separate sessions, so that the proxy's heap and pools reach their working size. Memory
// that is measured after that belongs to what is opened after it.
func warm(to target, path string, count int) error {
	const sessions = 10
	answered := make(chan bool, 1)
	for range sessions {
		c, err := greet(to, path, heard{onEnd: func(_ uint32, ok bool) { answered <- ok }})
		if err != nil {
			return err
		}
		for range count / sessions {
			if _, err := c.get(path); err != nil {
				return err
			}
			if !<-answered {
				return fmt.Errorf("a request of the warm-up failed")
			}
		}
		c.socket.Close()
	}
	return nil
}
