/** ACL statements by command, which precede those of all hosts. */
export type HostConfig = Partial<Record<Stage, string>>
export type Stage = 'connect' | 'helo' | 'mail' | 'rcpt'

/** Host configurations by name; each host has its own domain and address. */
export const HOSTS: Readonly<Record<string, HostConfig>> = {
  // User lookup.
  known: {},
  plain: {},
  utf8: {},
  everyone: {},
  stranger: {},
  'stranger-cpanel': {
    rcpt: `require message = The mail server could not deliver mail to $local_part@$domain. \\
      \\n The account or domain may not exist, they may be blacklisted, or missing\\nthe proper dns entries.
      verify = recipient`,
  },
  told: {},
  'lookup-down': {},
  elsewhere: {},
  gateway: { rcpt: 'require verify = recipient/callout=5s' },
  'gateway-down': { rcpt: 'require verify = recipient/callout=5s' },
  'gateway-open': { rcpt: 'accept verify = recipient/callout=5s,defer_ok' },
  quota: {
    rcpt: `deny local_parts = bob
      message = 552 5.2.2 Mailbox is full / Blocks limit exceeded / Inode limit exceeded
    defer local_parts = ann
      message = 452 4.2.2 The mailbox of $local_part is over its quota, try later`,
  },
  disabled: {
    rcpt: `deny local_parts = ann
      message = This mailbox is disabled\\nThe account has been suspended by its owner`,
  },
  characters: {
    rcpt: 'deny local_parts = ^[.] : ^.*[@%!/|]\n      message = restricted characters in address',
  },
  prohibited: { rcpt: 'deny' },
  submission: { rcpt: 'deny !authenticated = *\n      message = Authentication required' },
  deferring: { rcpt: 'defer' },
  discarding: { rcpt: 'discard' },
  grey: {
    rcpt: `defer !seen = -2s / key=\${sender_host_address}_\${sender_address}_$local_part@$domain
      message = Greylisted, please try again in 2 seconds`,
  },

  // Delays.
  'slow-greeting': { connect: 'warn delay = 2s' },
  'slow-everywhere': {
    connect: 'warn delay = 1s',
    helo: 'warn delay = 1s',
    mail: 'warn delay = 1s',
    rcpt: 'warn delay = 1s',
  },
  'slow-recipients': { rcpt: 'warn delay = 2s' },
  teergrube: {
    rcpt: `accept verify = recipient
    deny delay = \${eval:$rcpt_fail_count + 1}s
      message = Unknown user`,
  },
  'slowing-down': {},

  // Limits.
  'rate-deferred': {
    rcpt: `defer ratelimit = 3.5 / 2s / per_rcpt / leaky / $sender_host_address-deferred
      message = Sender rate overlimit - $sender_rate / $sender_rate_period`,
  },
  'rate-denied': {
    rcpt: `deny ratelimit = 0.5 / 1h / per_rcpt / strict / $sender_host_address-denied
      message = Sender rate overlimit - $sender_rate / $sender_rate_period`,
  },
  // Two at once pass, and are forgotten long before the others come again, after three seconds.
  'connect-rate': {
    connect: `defer ratelimit = 2.5 / 1s / per_conn / leaky / $sender_host_address-connect
      message = You are connecting too fast, slow down`,
  },
  'one-at-a-time': {},
  four: {},
  dictionary: {
    rcpt: `drop condition = \${if >{$rcpt_fail_count}{2}}
      message = Too many failed recipients - count = $rcpt_fail_count`,
  },

  'tls-offered': {},
  sealed: { mail: 'deny !encrypted = *\n      message = TLS encryption is required' },
  'sealed-late': {
    rcpt: 'deny !encrypted = *\n      message = 530 5.7.0 Must issue a STARTTLS command first',
  },
  'sealed-never': { rcpt: 'deny !encrypted = *\n      message = Encryption required' },
  'tls-broken': {},

  // HELO name, sender and client address.
  'helo-verified': {},
  'helo-forged': {
    helo: `deny condition = \${if match_domain{$sender_helo_name}{probe.test}}
      message = Forged HELO: you are not $sender_helo_name`,
  },
  'helo-forged-late': {
    rcpt: `deny condition = \${if match_domain{$sender_helo_name}{probe.test}}
      message = Bad HELO - you are not $sender_helo_name`,
  },
  sender: { mail: 'require verify = sender' },
  'sender-late': { rcpt: 'require verify = sender' },
  'sender-called': { rcpt: 'require verify = sender/callout=5s' },
  'sender-null': {
    rcpt: 'deny senders = :\n      message = This user sends no mail, so it takes no bounces',
  },
  'client-dropped': {
    connect: 'drop message = Your host $sender_host_address is blacklisted here',
  },
  'client-rejected': {},
  'client-prohibited': { connect: 'deny' },
  'client-dropped-late': { rcpt: 'drop message = Mail from $sender_host_address is refused here' },
  listed: {
    rcpt: `deny dnslists = dnsbl.test
      message = rejected because $sender_host_address is in a black list at $dnslist_domain\\n$dnslist_text`,
  },
  'listed-warned': { rcpt: 'warn dnslists = dnsbl.test\n      delay = 1s' },
  'reverse-name': {
    rcpt: `require message = IP address [$sender_host_address] has no valid reverse DNS entry
      verify = reverse_host_lookup`,
  },
  'spoken-at-length': {},
}

/** Main options: the value for the named hosts, the value for all others, and the names. */
export const OPTIONS: Readonly<Record<string, [there: string, elsewhere: string, ...string[]]>> = {
  pipelining_advertise_hosts: ['', '*', 'plain'],
  chunking_advertise_hosts: ['', '*', 'plain'],
  smtputf8_advertise_hosts: ['*', '', 'utf8'],
  tls_advertise_hosts: ['*', '', 'tls-offered', 'sealed', 'sealed-late', 'tls-broken'],
  tls_certificate: ['/exim/none.pem', '/exim/tls.pem', 'tls-broken'],
  smtp_accept_max_per_host: ['1', '0', 'one-at-a-time'],
  smtp_ratelimit_hosts: ['*', '', 'slowing-down'],
  helo_verify_hosts: ['*', '', 'helo-verified'],
  host_reject_connection: ['*', '', 'client-rejected'],
  smtp_banner: [
    '$smtp_active_hostname ESMTP\\nWe do not authorize the use of this system\\nto transport unsolicited bulk e-mail.',
    '$smtp_active_hostname ESMTP Exim',
    'spoken-at-length',
  ],
}

/** Replies to unknown recipients that differ from the default. */
export const UNKNOWN_USER_REPLIES: Readonly<Record<string, string>> = {
  stranger: 'No Such User Here',
}

export const USERS = ['ann', 'bob', 'jörg', ...Array.from({ length: 20 }, (_, n) => `user${n + 1}`)]

/** Aliases of told.exim.test. */
export const ALIASES = `
alias: ann@known.exim.test
alias-of-nobody: zoe@known.exim.test
cleo: :fail: cleo has moved, please write to ann@example.test
gone: :fail: 551 5.1.6 User not local; please try ann@example.test
left: :fail: no longer employed here
full: :fail: 552 5.2.2 Mailbox quota exceeded
disabled: :fail: 550 5.2.1 This account is inactive
resting: :defer: mailbox is being moved to another server
hole: :blackhole:
`
