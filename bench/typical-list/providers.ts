import { HOUR, MINUTE } from '../../src/platform/clock.ts'

/**
 * What looks like a dictionary attack: `row`, this many unknown recipients one after another;
 * `share`, this many unknown among twice as many recipients, as products against such attacks count.
 */
export type HarvestRule = 'row' | 'share'

/** The limits of a provider for one client address, and its punishment for exceeding them. */
export type ProviderLimits = {
  /** Concurrent connections; a further one is refused with 421. */
  readonly connections: number
  readonly connectionsPerMinute: number
  /** Recipients per connection; the next one ends it with 421. */
  readonly recipientsPerConnection: number
  /** Recipients per transaction; the next one is refused with 452. */
  readonly recipientsPerTransaction: number
  /** Unknown recipients after which the client is blocked; see `HarvestRule`. */
  readonly unknownMax: number
  /** Whether it refuses clients on the shared block list. */
  readonly usesBlockList: boolean
  /** How long a block lasts, ms. */
  readonly blockMs: number
}

/** A provider, and its part of the list. */
export type Provider = ProviderLimits & {
  readonly name: string
  /** Share of the addresses of the list, in percent. */
  readonly share: number
  /** Its domains: those of a mailbox provider, or one for every `addressesPerDomain` addresses. */
  readonly domains: readonly string[] | { readonly addressesPerDomain: number }
  /** Returns the exchanger of a domain at one of the companies. */
  readonly exchanger: (domain: string, company: number) => string
  /** Number of companies that host the domains. Each has separate limits. */
  readonly companies: number
  /** The reply to an unknown recipient; `{to}` is its address. Null accepts every recipient. */
  readonly unknownReply: string | null
  /** The first attempt of each recipient is deferred for this time, ms; null: no greylisting. */
  readonly greylistMs: number | null
  readonly greylistReply: string
  /** Share of its domains with greylisting, and of those that accept every recipient. */
  readonly greylistShare: number
  readonly catchAllShare: number
}

/**
 * Senders with a good reputation get these at a provider about which nothing is published: the
 * default of KumoMTA's published shaping rules.
 */
const COMMON: Omit<Provider, 'name' | 'share' | 'domains' | 'exchanger'> = {
  connections: 10,
  connectionsPerMinute: 100,
  recipientsPerConnection: 100,
  // RFC 5321 §4.5.3.1.8.
  recipientsPerTransaction: 100,
  unknownMax: 20,
  usesBlockList: true,
  blockMs: HOUR,
  companies: 1,
  unknownReply: '550 5.1.1 <{to}>: Recipient address rejected: User unknown',
  greylistMs: null,
  greylistReply:
    '451 4.7.1 <{to}>: Recipient address rejected: Greylisted, try again in 300 seconds',
  greylistShare: 1,
  catchAllShare: 0,
}

/** Providers that refuse clients for few unknown recipients (IB112, "excessive rejections"). */
const STRICT = { connections: 5, unknownMax: 10 }

type Row = Pick<Provider, 'name' | 'share' | 'domains' | 'exchanger'> & Partial<Provider>

/**
 * A newsletter of a shop. The large providers have their published shares of consumer lists (Gmail
 * a third, the four largest two thirds); the others are an estimate. Limits per connection are
 * KumoMTA's published shaping rules, delays are those of the providers' own documentation. How many
 * unknown recipients are too many is published by no provider: twenty, or ten where they say that
 * they count them, is an assumption.
 */
const ROWS: readonly Row[] = [
  {
    name: 'Gmail',
    share: 34,
    domains: ['gmail.com'],
    exchanger: () => 'gmail-smtp-in.l.google.com',
    connections: 5,
    recipientsPerConnection: 50,
    unknownReply:
      '550-5.1.1 The email account that you tried to reach does not exist. Please try\n550 5.1.1 double-checking the recipient address. NoSuchUser - gsmtp',
    usesBlockList: false,
  },
  {
    name: 'Google Workspace',
    share: 6,
    domains: { addressesPerDomain: 2 },
    exchanger: () => 'aspmx.l.google.com',
    connections: 5,
    recipientsPerConnection: 50,
    unknownReply: '550 5.1.1 The email account that you tried to reach does not exist. NoSuchUser',
    usesBlockList: false,
    catchAllShare: 0.1,
  },
  {
    name: 'Yahoo and AOL',
    share: 13,
    domains: ['yahoo.com', 'aol.com'],
    exchanger: domain =>
      domain === 'aol.com' ? 'mx-aol.mail.gm0.yahoodns.net' : 'mta5.am0.yahoodns.net',
    recipientsPerConnection: 20,
    unknownReply: null,
    blockMs: 2 * HOUR,
  },
  {
    name: 'Outlook.com',
    share: 11,
    domains: ['hotmail.com', 'outlook.com'],
    exchanger: domain => `${domain.replace('.', '-')}.olc.protection.outlook.com`,
    connections: 5,
    recipientsPerConnection: 50,
    recipientsPerTransaction: 1,
    unknownReply: '550 5.5.0 Requested action not taken: mailbox unavailable (S2017062302).',
    blockMs: 2 * HOUR,
  },
  {
    name: 'Microsoft 365',
    share: 9,
    domains: { addressesPerDomain: 2 },
    exchanger: domain => `${domain.replace('.', '-')}.mail.protection.outlook.com`,
    connections: 5,
    recipientsPerConnection: 50,
    recipientsPerTransaction: 1,
    unknownReply: '550 5.4.1 Recipient address rejected: Access denied. AS(201806281)',
    blockMs: 2 * HOUR,
    catchAllShare: 0.3,
  },
  {
    name: 'iCloud',
    share: 5,
    domains: ['icloud.com', 'me.com'],
    exchanger: () => 'mx01.mail.icloud.com',
    recipientsPerConnection: 5,
    unknownReply: '550 5.1.1 <{to}>: user does not exist',
  },
  {
    name: 'GMX and web.de',
    share: 3,
    domains: ['gmx.de', 'web.de'],
    exchanger: domain => (domain === 'web.de' ? 'mx-ha02.web.de' : 'mx00.gmx.net'),
    connections: 4,
    recipientsPerConnection: 20,
    unknownReply: '550 Requested action not taken: mailbox unavailable',
  },
  {
    name: 'Comcast',
    share: 2,
    domains: ['comcast.net'],
    exchanger: () => 'mx1.comcast.net',
    connections: 25,
    recipientsPerConnection: 1_000,
    unknownReply: '550 5.1.1 Not our Customer, recipient mailbox unallocated',
    blockMs: 2 * HOUR,
  },
  {
    name: 'Orange',
    share: 1.5,
    domains: ['orange.fr', 'wanadoo.fr'],
    exchanger: () => 'smtp-in.orange.fr',
    connections: 2,
    unknownReply:
      '550 5.1.1 Adresse d au moins un destinataire invalide. Invalid recipient. OFR_416',
  },
  {
    name: 'Mimecast',
    share: 1,
    domains: { addressesPerDomain: 2 },
    exchanger: () => 'eu-smtp-inbound-1.mimecast.com',
    greylistMs: MINUTE,
    greylistReply: '451 Internal resource temporarily unavailable',
    unknownReply: '550 5.1.1 Invalid Recipient',
  },
  {
    name: 'Proofpoint',
    share: 1.5,
    domains: { addressesPerDomain: 2 },
    exchanger: domain => `mxa-${domain.replace('.', '-')}.gslb.pphosted.com`,
    unknownReply: '550 5.1.1 User Unknown',
  },
  {
    name: 'Barracuda',
    share: 0.5,
    domains: { addressesPerDomain: 2 },
    exchanger: domain => `d${domain.replace('.', '-')}.ess.barracudanetworks.com`,
    recipientsPerConnection: 15,
    greylistMs: 5 * MINUTE,
    greylistReply: '451 4.7.1 Greylisted for 5 minutes',
    unknownReply: '550 No such user ({to})',
  },
  {
    name: 'GoDaddy',
    share: 1.5,
    domains: { addressesPerDomain: 2 },
    exchanger: () => 'mailstore1.secureserver.net',
    unknownReply: '550 5.1.1 <{to}> Recipient not found.',
    blockMs: 4 * HOUR,
    ...STRICT,
  },
  {
    name: 'Titan and Zoho',
    share: 1.5,
    domains: { addressesPerDomain: 2 },
    exchanger: () => 'mx1.titan.email',
    unknownReply: '550 5.1.1 <{to}>: Recipient address rejected: User does not exist',
    ...STRICT,
  },
  {
    name: 'hosting companies',
    share: 4,
    domains: { addressesPerDomain: 2 },
    exchanger: (_, company) => `mx.hoster${company}.example`,
    companies: 20,
    catchAllShare: 0.15,
    ...STRICT,
  },
  {
    name: 'own servers',
    share: 5,
    domains: { addressesPerDomain: 1.25 },
    exchanger: domain => `mail.${domain}`,
    companies: Number.POSITIVE_INFINITY,
    greylistMs: 5 * MINUTE,
    greylistShare: 0.2,
    catchAllShare: 0.15,
  },
]

export const PROVIDERS: readonly Provider[] = ROWS.map(row => Object.assign({}, COMMON, row))
