/** A DNS blocklist that mail servers ask (RFC 5782). */
export type Blocklist = {
  readonly title: string
  readonly zone: string
  /** Whether it lists IPv6 addresses. */
  readonly ipv6: boolean
  /** How heavy a listing weighs: few large providers ask those that only warn. */
  readonly weight: 'fail' | 'warn'
  /** How to get off it. */
  readonly remedy: string
}

export const BLOCKLISTS: readonly Blocklist[] = [
  {
    title: 'Spamhaus',
    zone: 'zen.spamhaus.org',
    ipv6: true,
    weight: 'fail',
    remedy: 'Find the reason and ask for removal at https://check.spamhaus.org.',
  },
  {
    title: 'SpamCop',
    zone: 'bl.spamcop.net',
    ipv6: false,
    weight: 'fail',
    remedy:
      'It forgets a listing within a day once nothing more is reported: https://www.spamcop.net/bl.shtml.',
  },
  {
    title: 'Barracuda',
    zone: 'b.barracudacentral.org',
    ipv6: false,
    weight: 'fail',
    remedy: 'Ask for removal at https://www.barracudacentral.org/rbl/removal-request.',
  },
  {
    title: 'PSBL',
    zone: 'psbl.surriel.com',
    ipv6: false,
    weight: 'warn',
    remedy: 'Remove it yourself at https://psbl.org.',
  },
  {
    title: 'Mailspike',
    zone: 'bl.mailspike.net',
    ipv6: false,
    weight: 'warn',
    remedy: 'Look up the reason at https://www.mailspike.io/ip_verify.',
  },
]

/** What Spamhaus means by its answers, as far as the remedy depends on it. */
export const SPAMHAUS_CODES: readonly [pattern: RegExp, means: string, remedy: string | null][] = [
  [
    /^127\.0\.0\.1[01]$/,
    'PBL: a range whose owner says that it sends no mail to others’ servers',
    'If the address is fixed and yours, ask your hoster for a PTR record and take it off the PBL at https://check.spamhaus.org; else send from another address, or through --proxy.',
  ],
  [/^127\.0\.0\.2$/, 'SBL: seen as a source of spam', null],
  [/^127\.0\.0\.3$/, 'CSS: mail of poor repute came from it', null],
  [
    /^127\.0\.0\.[4-7]$/,
    'XBL: a machine behind it seems to be infected or hijacked',
    'Find and clean the machine behind this address first, then ask for removal at https://check.spamhaus.org.',
  ],
  [/^127\.0\.0\.9$/, 'DROP: a network held by criminals', 'Use an address of another hoster.'],
]
