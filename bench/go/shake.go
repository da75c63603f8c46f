package main

import (
	"flag"
	"fmt"
	"sync"
	"time"
)

// shake makes -count full TLS handshakes, -at of them at once. Each ends only after the server's SETTINGS have arrived,
// which shows that the server has also finished.
func shake(args []string) error {
	flags := flag.NewFlagSet("shake", flag.ExitOnError)
	address := flags.String("to", "", "proxy")
	dir := flags.String("pki", ".", "folder of ca.crt")
	count := flags.Int("count", 500, "handshakes")
	at := flags.Int("at", 8, "at once")
	flags.Parse(args)
	to, err := targetOf(*address, *dir)
	if err != nil {
		return err
	}
	work := make(chan struct{}, *count)
	for range *count {
		work <- struct{}{}
	}
	close(work)
	var failed sync.Map
	var wait sync.WaitGroup
	began := time.Now()
	for range *at {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for range work {
				if err := shakeOnce(to); err != nil {
					failed.Store(err.Error(), true)
				}
			}
		}()
	}
	wait.Wait()
	var first error
	failed.Range(func(key, _ any) bool { first = fmt.Errorf("handshake: %v", key); return false })
	if first != nil {
		return first
	}
	say(map[string]any{"count": *count, "seconds": time.Since(began).Seconds()})
	return nil
}

func shakeOnce(to target) error {
	c, err := dial(to)
	if err != nil {
		return err
	}
	defer c.socket.Close()
	_, err = c.framer.ReadFrame()
	return err
}
