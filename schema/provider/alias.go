package provider

import "hookledger/schema/source"

// Callers that know sources by their provider need this package alone.
type (
	// Config is source.Config.
	Config = source.Config
	// SecretConfig is source.SecretConfig.
	SecretConfig = source.SecretConfig
	// SignatureConfig is source.SignatureConfig.
	SignatureConfig = source.SignatureConfig
	// PairsConfig is source.PairsConfig.
	PairsConfig = source.PairsConfig
	// EventConfig is source.EventConfig.
	EventConfig = source.EventConfig
	// SuccessConfig is source.SuccessConfig.
	SuccessConfig = source.SuccessConfig
	// PostingConfig is source.PostingConfig.
	PostingConfig = source.PostingConfig
	// StatusConfig is source.StatusConfig.
	StatusConfig = source.StatusConfig
	// ConditionConfig is source.ConditionConfig.
	ConditionConfig = source.ConditionConfig
	// Locator is source.Locator.
	Locator = source.Locator
	// Direction is source.Direction.
	Direction = source.Direction
	// Secret is source.Secret.
	Secret = source.Secret
	// Source is source.Source.
	Source = source.Source
	// Set is source.Set.
	Set = source.Set
	// Signature is source.Signature.
	Signature = source.Signature
	// Delivery is source.Delivery.
	Delivery = source.Delivery
	// Item is source.Item.
	Item = source.Item
	// Answer is source.Answer.
	Answer = source.Answer
	// Fact is source.Fact.
	Fact = source.Fact
	// IdentifyError is source.IdentifyError.
	IdentifyError = source.IdentifyError
	// ConfigError is source.ConfigError.
	ConfigError = source.ConfigError
)

// IdentifyBody is source.IdentifyBody.
const IdentifyBody = source.IdentifyBody
