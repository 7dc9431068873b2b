package provider

import "hookledger/schema/source"

// Config and the others are the names under which callers know the types of package source.
type ( //nolint:revive // One sentence is for all of them.
	Config          = source.Config
	SecretConfig    = source.SecretConfig
	SignatureConfig = source.SignatureConfig
	PairsConfig     = source.PairsConfig
	EventConfig     = source.EventConfig
	SuccessConfig   = source.SuccessConfig
	PostingConfig   = source.PostingConfig
	StatusConfig    = source.StatusConfig
	ConditionConfig = source.ConditionConfig
	Locator         = source.Locator
	Direction       = source.Direction
	Secret          = source.Secret
	Source          = source.Source
	Set             = source.Set
	Signature       = source.Signature
	Delivery        = source.Delivery
	Item            = source.Item
	Answer          = source.Answer
	Fact            = source.Fact
	IdentifyError   = source.IdentifyError
	ConfigError     = source.ConfigError
)

// IdentifyBody is source.IdentifyBody.
const IdentifyBody = source.IdentifyBody
