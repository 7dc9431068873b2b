// Package provider knows what payment providers send. A provider is one file: it registers
// a source.Definition, mostly data, and package source does the rest.
//
// # Guarantee
//
// What a file says is what its provider documents or what the provider's own library does;
// the source stands in the comment. What nobody documents is not guessed: a movement of
// money that cannot be named, or an amount that is not the event's own, moves nothing: the
// event is kept without effect, or goes to quarantine where money must have moved.
//
// One movement is made once: of several events that tell of it one moves the money, or all
// have one rule and one movement. Reversals make what they reverse too, so that the order of
// events does not matter. Fees are between merchant and provider: a source whose accounts
// bear them adds rules of its own.
//
// # Flow
//
//	register(source.Definition{…})          at start, from every file
//	source.Config ──New──▶ source.Source    names its definition by provider:
//
// Every file is the provider of its name, and may be read alone, but for four: registry.go
// finds them, alias.go gives package source's names to users of this one, catalog.go says
// what the events of a source mean, and words.go holds the words in which the others are written.
//
// # Failure modes
//
// A provider that does not exist is an error of New that lists those that do. Two files
// with one name end the program at its start.
package provider
