package main

import (
	"flag"
	"fmt"
	"math/rand"
	"slices"
	"sync"
	"time"
)

// rate sends requests at a fixed mean rate with random gaps, whether or not earlier ones have been answered (open
// loop). It reports how long each response took, from the moment when its request was written.
func rate(args []string) error {
	flags := flag.NewFlagSet("rate", flag.ExitOnError)
	address := flags.String("to", "", "proxy")
	dir := flags.String("pki", ".", "folder of ca.crt")
	perSecond := flags.Int("rps", 1000, "requests a second")
	seconds := flags.Int("seconds", 10, "for how long")
	clients := flags.Int("clients", 50, "sessions")
	path := flags.String("path", smallPath, "what to ask")
	flags.Parse(args)
	to, err := targetOf(*address, *dir)
	if err != nil {
		return err
	}
	var takes stopwatch
	var all []*client
	for i := range *clients {
		c, err := greet(to, *path, heard{onEnd: func(id uint32, ok bool) { takes.stop(i, id, ok) }})
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	total := *perSecond * *seconds
	takes.running = make(map[[2]uint32]time.Time, 1024)
	// The same random gaps for every peer and every round.
	random := rand.New(rand.NewSource(1))
	next := time.Now()
	for sent := range total {
		time.Sleep(time.Until(next))
		i := sent % *clients
		takes.start(i, all[i].nextID)
		if _, err := all[i].get(*path); err != nil {
			return err
		}
		next = next.Add(time.Duration(random.ExpFloat64() / float64(*perSecond) * float64(time.Second)))
	}
	for began := time.Now(); takes.open() > 0; time.Sleep(time.Millisecond) {
		if time.Since(began) > 5*time.Second {
			return fmt.Errorf("%d requests never answered", takes.open())
		}
	}
	slices.Sort(takes.done)
	at := func(share float64) float64 {
		return float64(takes.done[int(share*float64(len(takes.done)-1))]) / float64(time.Microsecond)
	}
	say(map[string]any{"count": total, "failed": takes.failed, "p50": at(0.5), "p99": at(0.99), "p999": at(0.999), "max": at(1)})
	return nil
}

// stopwatch measures the duration of requests, by client and stream.
type stopwatch struct {
	mu      sync.Mutex
	running map[[2]uint32]time.Time
	done    []time.Duration
	failed  int
}

func (s *stopwatch) start(client int, id uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[[2]uint32{uint32(client), id}] = time.Now()
}

func (s *stopwatch) stop(client int, id uint32, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]uint32{uint32(client), id}
	if began, isRunning := s.running[key]; isRunning {
		s.done = append(s.done, time.Since(began))
		delete(s.running, key)
	}
	if !ok {
		s.failed++
	}
}

func (s *stopwatch) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running)
}
