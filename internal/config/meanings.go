package config

const unitBytes = "bytes"

// meaning is what the reference says of a key beside its type and default, which
// the code knows.
type meaning struct {
	text string
	// unit is that of a bare number.
	unit string
	// kind is a word for the type where the code's own says too little.
	kind   string
	secret bool
}

// meanings has every key; a test compares it with the structs. Keys of a list are
// written with [].
var meanings = map[string]meaning{
	"kafka.brokers":            {text: "Addresses asked first, host:port."},
	"kafka.client_id":          {text: "Name under which brokers log this program and apply quotas."},
	"kafka.tls.enabled":        {text: "TLS to every broker, its certificate verified against its host name. Files are read again for each new connection."},
	"kafka.tls.ca_file":        {text: "Certificates in PEM that may sign a broker's; default those of the system."},
	"kafka.tls.cert_file":      {text: "Certificate in PEM that is shown to the brokers (mTLS)."},
	"kafka.tls.key_file":       {text: "Key of that certificate, in PEM."},
	"kafka.tls.server_name":    {text: "Name that a broker's certificate must have; default the host that is dialled."},
	"kafka.sasl.mechanism":     {text: "`SCRAM-SHA-512`, `SCRAM-SHA-256`, or `PLAIN`, which needs TLS; none: no login."},
	"kafka.sasl.username":      {text: "User of the login."},
	"kafka.sasl.password.env":  {text: "Environment variable that holds the password."},
	"kafka.sasl.password.file": {text: "File that holds the password; read again for each new connection."},
	"kafka.insecure_plaintext": {text: "Accepts brokers on other machines without TLS: whoever is on the network reads and changes what is sent."},
	"kafka.topic":              {text: "Topic of the events."},
	"kafka.partitions":         {text: "Partitions the topic is created with, the most workers that can share it; `topics apply` adds more, never removes.", unit: "partitions"},
	"kafka.replication":        {text: "Copies of each record the topic is created with.", unit: "copies"},
	"kafka.retention":          {text: "How long the topic keeps a record: the longest outage, and the furthest rewind, that loses nothing."},
	"kafka.durability":         {text: "`replicated` refuses to start on a topic that can lose acknowledged records; `single` accepts one copy, for development."},
	"kafka.group":              {text: "Consumer group of the workers."},

	"database.url":                {text: "Postgres: postgres://user:password@host:5432/database. To another machine sslmode is verify-full unless it says otherwise. Not needed by ingest.", secret: false},
	"database.insecure_plaintext": {text: "Accepts a database on another machine without verified TLS: whoever is on the network could read the books, or be the database."},
	"database.max_connections":    {text: "Most connections of one process; 0 is as many as its work needs.", unit: "connections"},

	"ingest.listen":               {text: "Public address of the receiver. Only POST /webhooks/{source} is there."},
	"ingest.admin":                {text: "Address of /livez, /readyz, /metrics and pprof of the receiver. No authentication: keep it private."},
	"ingest.trusted_proxies":      {text: "Addresses and networks of proxies in front. From them X-Forwarded-For is believed, for providers told by their address."},
	"ingest.tls.cert_file":        {text: "Certificate of the public address, with its chain, in PEM; read again when it changes. None: something in front speaks TLS."},
	"ingest.tls.key_file":         {text: "Key of that certificate, in PEM."},
	"ingest.max_connections":      {text: "Most connections served at once; more wait to be accepted.", unit: "connections"},
	"ingest.max_body_bytes":       {text: "Largest body accepted; a larger one is answered 413.", unit: unitBytes},
	"ingest.max_inflight_bytes":   {text: "Bound of the bodies being received and checked at once; beyond it the answer is 503.", unit: unitBytes},
	"ingest.ack_timeout":          {text: "How long the broker may take before the delivery is answered 503."},
	"ingest.max_buffered_records": {text: "Most records that wait for the broker; beyond them the answer is 503 at once.", unit: "records"},
	"ingest.max_buffered_bytes":   {text: "Bound of the records that wait for the broker.", unit: unitBytes},
	"ingest.shutdown_delay":       {text: "How long deliveries are still accepted after a stop was asked for, until load balancers have noticed."},
	"ingest.shutdown_timeout":     {text: "How long deliveries in hand may then take."},

	"consume.admin":             {text: "Address of /livez, /readyz, /metrics and pprof of the worker. No authentication: keep it private."},
	"consume.session_timeout":   {text: "How long the group waits for a silent worker before its partitions move."},
	"consume.instance_id":       {text: "Makes the worker a static member, back at once after a restart. Each worker needs its own."},
	"consume.appliers":          {text: "Partitions applied at once; 0 is the smaller of 4 and the database pool.", unit: "partitions"},
	"consume.batch_max_records": {text: "Most records of one transaction.", unit: "records"},
	"consume.batch_max_bytes":   {text: "Most bytes of one transaction; a larger record gets one of its own.", unit: unitBytes},
	"consume.buffer_bytes":      {text: "Bound of what was read and waits to be applied.", unit: unitBytes},
	"consume.check_interval":    {text: "How often positions are compared with Postgres."},

	"dedupe.rotate": {text: "Age at which a new generation of the memory of events is opened, by one of the workers."},
	"dedupe.keep":   {text: "How long an event is remembered at least, 1 to 6 times dedupe.rotate, better more than kafka.retention + 24h. The ledger never forgets, so this decides what a repeat costs, not whether it pays twice."},

	"log.level":  {text: "`debug`, `info`, `warn` or `error`."},
	"log.format": {text: "`json`, `console`, or `auto`: console on a terminal."},

	"sources":            {text: "The webhook endpoints. The variable holds the list as YAML or JSON."},
	"sources[].name":     {text: "Last part of the URL: POST /webhooks/NAME."},
	"sources[].key":      {text: "Immutable identity in topic and ledger, default the name. A renamed source keeps its old name here, so that nobody is paid twice."},
	"sources[].provider": {text: "Who sends: one of the providers below, or `generic`."},
	"sources[].account":  {text: "Path of the account in an event; of several, the first that leads to a value."},
	"sources[].currency": {text: "Currency of events that do not say one, such as EUR; default: they go to quarantine."},
	"sources[].trust":    {text: "Where the signature does not cover the whole body: `signed_fields_only` (default), or `body` for who checks otherwise."},
	"sources[].livemode": {text: "`any` (default), `live` or `test`: which events count where the provider marks them."},

	"sources[].secrets":              {text: "The secrets that sign; all that are valid at the time are tried. At least one."},
	"sources[].secrets[].id":         {text: "Stands for the secret in records, metrics and logs; default the variable, the file's base name, or value-N."},
	"sources[].secrets[].env":        {text: "Environment variable that holds the secret."},
	"sources[].secrets[].file":       {text: "File that holds the secret; read again when it changes."},
	"sources[].secrets[].value":      {text: "The secret itself; only with kafka.durability: single.", secret: true},
	"sources[].secrets[].not_before": {text: "Valid from this time on."},
	"sources[].secrets[].not_after":  {text: "Valid up to this time."},

	"sources[].signature.header":           {text: "Header that carries the signature."},
	"sources[].signature.algorithm":        {text: "`hmac-sha256` (default), `hmac-sha512` or `hmac-sha1`."},
	"sources[].signature.encoding":         {text: "`hex` (default), `base64` or `base64url`."},
	"sources[].signature.prefix":           {text: "Text before the signature in its header, such as sha256=."},
	"sources[].signature.template":         {text: "The signed text, of literals and {body}, {ts}, {url}, {header:NAME}; default {body}, or {ts}.{body} with a timestamp_header."},
	"sources[].signature.timestamp_header": {text: "Header that carries the time of signing."},
	"sources[].signature.timestamp_format": {text: "`unix` (default), `unix_ms` or `rfc3339`."},
	"sources[].signature.tolerance":        {text: "How far the time of signing may lie from now, either way; default 5m."},
	"sources[].signature.url":              {text: "Address registered with the provider, byte by byte, where it is signed."},
	"sources[].signature.headers":          {text: "Header family of Standard Webhooks: `webhook` (default) or `svix`."},
	"sources[].signature.secret_encoding":  {text: "How the secret becomes the key: as it is unless set to hex or base64."},
	"sources[].signature.pairs.separator":  {text: "Separator of the parts of a header such as ts=1;h1=a: `,` or `;`."},
	"sources[].signature.pairs.time":       {text: "Name of the part that is the time; it is {ts} in the template."},
	"sources[].signature.pairs.signature":  {text: "Name of the parts that are signatures."},
	"sources[].signature.webhook_id":       {text: "ID of the webhook at the provider, where it is signed (PayPal)."},
	"sources[].signature.public_key":       {text: "Public half of the merchant's API key (Braintree)."},
	"sources[].signature.client_id":        {text: "Name under which keys are fetched from the provider (Plaid)."},
	"sources[].signature.terminal_key":     {text: "Terminal that notifications must be for (T-Bank); default any."},
	"sources[].signature.environment":      {text: "`production` (default) or `sandbox`: whose keys are believed."},
	"sources[].signature.networks":         {text: "Addresses deliveries may come from, in place of those the provider publishes."},

	"sources[].event.body":        {text: "`json` (default) or `form`."},
	"sources[].event.items":       {text: "Path of the list of events, where a delivery carries several; other paths start at an item."},
	"sources[].event.id":          {text: "Identity: a path, {header: h}, or where the provider has none {derive: [paths]} or {join: [paths]}."},
	"sources[].event.type":        {text: "Type: a path, {header: h} or {const: c}."},
	"sources[].event.time":        {text: "Time of the fact: a path."},
	"sources[].event.time_format": {text: "`rfc3339`, `unix` or `unix_ms`; default: a text is RFC 3339, a number unix seconds."},

	"sources[].success.status":       {text: "Status that the provider counts as success, 200 (default) to 299."},
	"sources[].success.body":         {text: "Body that the provider wants, such as [accepted]."},
	"sources[].success.content_type": {text: "Content type of that body; default text/plain."},

	"sources[].postings":                  {text: "What events mean in money, in addition to what the provider says itself; each rule makes at most one posting of an event."},
	"sources[].postings[].key":            {text: "Immutable key of the rule, default the event type. Two types that tell of one movement carry one key."},
	"sources[].postings[].type":           {text: "Event types the rule is for; none is all, and then it needs a key."},
	"sources[].postings[].when":           {text: "Further conditions; all must hold."},
	"sources[].postings[].when[].path":    {text: "Path of the value to look at."},
	"sources[].postings[].when[].is":      {text: "Values it may have, as written in the event."},
	"sources[].postings[].when[].not":     {text: "Values it may not have; holds where there is nothing."},
	"sources[].postings[].when[].present": {text: "True: there is something at path."},
	"sources[].postings[].when[].absent":  {text: "True: there is nothing at path, or null."},
	"sources[].postings[].each":           {text: "Path of a list: the rule is read for each item, whose fields are under item."},
	"sources[].postings[].account":        {text: "Path of the account; overrides the source's."},
	"sources[].postings[].amount":         {text: "Path of the amount: a number, or a decimal number in a string."},
	"sources[].postings[].amount_else":    {text: "Path of the amount where there is nothing at amount."},
	"sources[].postings[].less":           {text: "Path of what is taken off the amount: the total before, where amount is a total that grows."},
	"sources[].postings[].unit":           {text: "`minor` (cents) or `major`."},
	"sources[].postings[].currency":       {text: "Path of the currency, or {const: EUR}."},
	"sources[].postings[].direction":      {text: "`credit`, `debit`, `signed`, or by a field: {path: p, credit: [values], debit: [values]}."},
	"sources[].postings[].movement":       {text: "Path of what names this one movement of money, never an order; default the event ID."},
	"sources[].postings[].movement_and":   {text: "Further paths whose values are part of the name of the movement."},
	"sources[].postings[].contra":         {text: "The other side; default external:KEY."},
	"sources[].statuses":                  {text: "Which events tell the status of an object."},
	"sources[].statuses[].type":           {text: "Event types the rule is for."},
	"sources[].statuses[].when":           {text: "Further conditions; all must hold."},
	"sources[].statuses[].when[].path":    {text: "Path of the value to look at."},
	"sources[].statuses[].when[].is":      {text: "Values it may have, as written in the event."},
	"sources[].statuses[].when[].not":     {text: "Values it may not have; holds where there is nothing."},
	"sources[].statuses[].when[].present": {text: "True: there is something at path."},
	"sources[].statuses[].when[].absent":  {text: "True: there is nothing at path, or null."},
	"sources[].statuses[].object":         {text: "Path of what has the status, such as a payment's ID."},
	"sources[].statuses[].status":         {text: "Path of the status, or {const: paid}."},
	"sources[].statuses[].rank":           {text: "Order of statuses that occurred at the same time."},
	"sources[].statuses[].ranks":          {text: "Rank by status; goes before rank."},
	"sources[].statuses[].latest_wins":    {text: "An event that arrives again with another status is news, not a conflict."},
}
