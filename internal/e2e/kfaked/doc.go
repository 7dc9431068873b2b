// Command kfaked runs the embedded Kafka of development as a process of its own, so that
// a test can kill it, freeze it and start it again on the same folder.
//
// # Guarantee
//
// What it acknowledged is on disk: a write is synced first, and kill -9 loses none.
//
// # Flow
//
//	kfaked FOLDER PORT ADVERTISED     until it is killed
//
// ADVERTISED is the address that clients are told, that of a proxy in front.
//
// # Failure modes
//
// A port that is taken and a folder in use end it with an error.
package main
