// What Go's scheduler and channels cost on this machine. Reads lines of "<name> <turns>", answers each with nanoseconds a turn.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

func perTurn(turns int, run func()) float64 {
	start := time.Now()
	run()
	return float64(time.Since(start).Nanoseconds()) / float64(turns)
}

// Two goroutines on one processor that give way to each other.
func yield(turns int) {
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	var all sync.WaitGroup
	for i := 0; i < 2; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for turn := 0; turn < turns/2; turn++ {
				runtime.Gosched()
			}
		}()
	}
	all.Wait()
}

func spawn(turns int) {
	var all sync.WaitGroup
	all.Add(turns)
	for i := 0; i < turns; i++ {
		go all.Done()
	}
	all.Wait()
}

func messages(turns, capacity int) {
	channel := make(chan int, capacity)
	go func() {
		for i := 0; i < turns; i++ {
			channel <- i
		}
	}()
	for i := 0; i < turns; i++ {
		<-channel
	}
}

func mutexPairs(turns int) {
	var mutex sync.Mutex
	for i := 0; i < turns; i++ {
		mutex.Lock()
		mutex.Unlock()
	}
}

func main() {
	input := bufio.NewReader(os.Stdin)
	for {
		var name string
		var turns int
		if _, err := fmt.Fscan(input, &name, &turns); err != nil {
			return
		}
		took := -1.0
		switch name {
		case "yield":
			took = perTurn(turns, func() { yield(turns) })
		case "spawn":
			took = perTurn(turns, func() { spawn(turns) })
		case "channel":
			took = perTurn(turns, func() { messages(turns, 0) })
		case "channel-buffered":
			took = perTurn(turns, func() { messages(turns, 1024) })
		case "mutex":
			took = perTurn(turns, func() { mutexPairs(turns) })
		}
		fmt.Printf("%.3f\n", took)
	}
}
