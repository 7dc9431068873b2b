// Command victim comes to a crash point five times and says so.
package main

import (
	"fmt"

	"hookledger/internal/crashpoint"
)

func main() {
	for i := range 5 {
		fmt.Println(i)
		crashpoint.Reach("victim.other")
		crashpoint.Reach("victim.step")
	}
	fmt.Println("end")
}
