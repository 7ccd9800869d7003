import { homedir, hostname } from 'node:os'
import { join } from 'node:path'
import { DAY } from '../base/clock.ts'
import type { EgressConfig } from './egresses.ts'
import type { OperatorConfig } from './operators.ts'
import type { IpLimitsConfig, PlanConfig } from './plans.ts'
import { SERVE_SETTINGS, type ServeSettings } from './serve-settings.ts'
import { type Environment, type Setting, setting } from './setting.ts'
import {
  checkNames,
  databaseUrl,
  days,
  heloName,
  integer,
  ip,
  number,
  oneOf,
  onOff,
  proxy,
  ranges,
  seconds,
  sender,
  servers,
  text,
  word,
} from './values.ts'

/** Everything that can be set, checked and frozen. Flags win over the environment, that over the file, that over the defaults. */
export type Config = Settings & {
  /** At least one; several only where the config file names them. */
  readonly egresses: readonly EgressConfig[]
  /** By the operator's name: what the config file says of it. */
  readonly operators: Readonly<Record<string, OperatorConfig>>
  /** By its name: what the config file says of a plan. */
  readonly plans: Readonly<Record<string, PlanConfig>>
  readonly ipLimits: IpLimitsConfig
}

/** What is one text at every door: a flag, a variable of the environment, a key of the file. */
export type Settings = ServeSettings & {
  readonly dataDir: string
  readonly database: string
  /** To PostgreSQL, of this process at the most. */
  readonly databaseConnections: number
  readonly dns: readonly string[]
  /** Names with MX records to check the DNS servers by; empty: no check; null: the built-in names. */
  readonly dnsCheckNames: readonly string[] | null
  readonly smtpPort: number
  readonly helo: string
  /** The bare address; empty for the null sender. */
  readonly mailFrom: string
  readonly sourceAddress: string | null
  readonly proxy: string | null
  readonly egress: string
  readonly allowRanges: readonly string[]
  readonly specialDomains: boolean
  readonly startTls: 'demanded' | 'always' | 'never'
  readonly connectTimeoutMs: number
  readonly greetingTimeoutMs: number
  readonly replyTimeoutMs: number
  readonly sessionTimeoutMs: number
  /** Null: 10,000 for one address, 60,000 for a conversation of a list. */
  readonly deadlineMs: number | null
  readonly sessionsPerOperator: number | null
  readonly recipientsPerSession: number | null
  readonly sessionsPerSecond: number | null
  readonly concurrency: number
  /** Null: what the server says, else five minutes. */
  readonly greylistDelayMs: number | null
  readonly cache: boolean
  readonly disposableFile: string | null
  readonly allowFile: string | null
  readonly blockedFile: string | null
  readonly spamTrapFile: string | null
  readonly roleFile: string | null
  /** How long a finished job is kept, with its addresses. */
  readonly keepResultsMs: number
  readonly log: LogLevel
  readonly logFormat: 'pretty' | 'json' | null
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'
const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent']

/** What verifying needs, here and as a service, in the order in which help shows them. */
export const ENGINE_SETTINGS: readonly Setting[] = [
  setting('dns', '--dns HOST[:PORT],…', 'DNS servers to ask (default: the system’s)', servers, []),
  setting(
    'dnsCheckNames',
    '--dns-check-names NAME,…|off',
    'names with MX records to check the DNS servers by',
    checkNames,
    null,
  ),
  setting('smtpPort', '--smtp-port N', 'port of mail servers', integer(1, 65_535), 25),
  setting('helo', '--helo NAME', 'our own name, as a PTR record has it', heloName, () =>
    hostname(),
  ),
  setting('mailFrom', '--mail-from ADDRESS', 'sender to probe with (default: <>)', sender, ''),
  setting('sourceAddress', '--source-address IP', 'address to dial from', ip, null),
  setting('proxy', '--proxy URL', 'socks5://… proxy to dial through', proxy, null),
  setting('egress', '--egress NAME', 'name of this source identity', word, 'default'),
  setting(
    'allowRanges',
    '--allow-ranges CIDR,…',
    'non-public addresses that may be dialled',
    ranges,
    [],
  ),
  setting(
    'specialDomains',
    '--special-domains',
    'look up .test, .example and their like',
    onOff,
    false,
  ),
  setting(
    'startTls',
    '--starttls WHEN',
    'demanded, always or never',
    oneOf<Settings['startTls']>(['demanded', 'always', 'never']),
    'demanded',
  ),
  setting(
    'connectTimeoutMs',
    '--connect-timeout MS',
    'to open a connection',
    integer(1, 600_000),
    10_000,
  ),
  setting(
    'greetingTimeoutMs',
    '--greeting-timeout MS',
    'to be greeted',
    integer(1, 600_000),
    30_000,
  ),
  setting(
    'replyTimeoutMs',
    '--reply-timeout MS',
    'for one whole reply',
    integer(1, 600_000),
    20_000,
  ),
  setting(
    'sessionTimeoutMs',
    '--session-timeout MS',
    'for one conversation',
    integer(1, 3_600_000),
    60_000,
  ),
  setting(
    'deadlineMs',
    '--deadline MS',
    'for one verification (default: 10000; lists: 60000)',
    integer(1, 3_600_000),
    null,
  ),
  setting(
    'sessionsPerOperator',
    '--sessions-per-operator N',
    'connections at once to one operator',
    integer(1, 1_000),
    null,
  ),
  setting(
    'recipientsPerSession',
    '--recipients-per-session N',
    'recipients in one connection',
    integer(1, 10_000),
    null,
  ),
  setting(
    'sessionsPerSecond',
    '--sessions-per-second N',
    'new connections a second to one operator',
    number(0.001, 100_000),
    null,
  ),
  setting('concurrency', '--concurrency N', 'connections at once, in all', integer(1, 10_000), 200),
  setting(
    'greylistDelayMs',
    '--greylist-delay S',
    'wait before asking a greylisted address again',
    seconds,
    null,
  ),
  setting('cache', '--cache on|off', 'remember definite answers', onOff, true),
  setting('disposableFile', '--disposable-file F', 'own list of disposable domains', text, null),
  setting(
    'allowFile',
    '--allow-file F',
    'own list of domains that are never disposable',
    text,
    null,
  ),
  setting(
    'blockedFile',
    '--blocked-file F',
    'own list of addresses and domains that are blocklisted',
    text,
    null,
  ),
  setting(
    'spamTrapFile',
    '--spam-trap-file F',
    'own list of addresses and domains that are spam traps',
    text,
    null,
  ),
  setting('roleFile', '--role-file F', 'own list of role names, such as frontdesk', text, null),
  setting('dataDir', '--data-dir DIR', 'where jobs and answers are kept', text, dataDirOf),
  setting(
    'database',
    '--database URL',
    'sqlite:FILE or postgres://… (default: a file in the data directory)',
    databaseUrl,
    '',
  ),
  setting(
    'databaseConnections',
    '--database-connections N',
    'connections to PostgreSQL at once',
    // Three of the queue, and five of the store, the least by which others go on beside one that waits.
    integer(8, 1_000),
    17,
  ),
  setting('keepResultsMs', '--keep-results D', 'days that finished lists are kept', days, 30 * DAY),
  setting('log', '--log LEVEL', LOG_LEVELS.join(', '), oneOf(LOG_LEVELS), 'info'),
  setting(
    'logFormat',
    '--log-format F',
    'pretty or json',
    oneOf<'pretty' | 'json'>(['pretty', 'json']),
    null,
  ),
] as readonly Setting[]

export const SETTINGS: readonly Setting[] = [...ENGINE_SETTINGS, ...SERVE_SETTINGS]

function dataDirOf({ XDG_DATA_HOME, HOME }: Environment): string {
  return join(XDG_DATA_HOME || join(HOME || homedir(), '.local', 'share'), 'ev')
}
