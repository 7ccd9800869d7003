import { homedir, hostname } from 'node:os'
import { join } from 'node:path'
import { DAY } from '../platform/clock.ts'
import { type Environment, setting } from './setting.ts'
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

const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

const TEN_MINUTES = integer(1, 600_000)
const AN_HOUR = integer(1, 3_600_000)

/** What verifying needs, here and as a service, in the order in which help shows them. */
export const ENGINE = {
  dns: setting('--dns HOST[:PORT],…', 'DNS servers to ask (default: the system’s)', servers, []),
  /** Empty: no check; null: the built-in names. */
  dnsCheckNames: setting(
    '--dns-check-names NAME,…|off',
    'names with MX records to check the DNS servers by',
    checkNames,
  ),
  smtpPort: setting('--smtp-port N', 'port of mail servers', integer(1, 65_535), 25),
  helo: setting('--helo NAME', 'our own name, as a PTR record has it', heloName, () => hostname()),
  /** The bare address; empty for the null sender. */
  mailFrom: setting('--mail-from ADDRESS', 'sender to probe with (default: <>)', sender, ''),
  sourceAddress: setting('--source-address IP', 'address to dial from', ip),
  proxy: setting('--proxy URL', 'socks5://… proxy to dial through', proxy),
  egress: setting('--egress NAME', 'name of this source identity', word, 'default'),
  allowRanges: setting('--allow-ranges CIDR,…', 'non-public addresses to dial', ranges, []),
  specialDomains: setting('--special-domains', 'look up .test, .example and others', onOff, false),
  startTls: setting(
    '--starttls WHEN',
    'demanded, always or never',
    oneOf('demanded', 'always', 'never'),
    'demanded',
  ),
  connectTimeoutMs: setting('--connect-timeout MS', 'to open a connection', TEN_MINUTES, 10_000),
  greetingTimeoutMs: setting('--greeting-timeout MS', 'to be greeted', TEN_MINUTES, 30_000),
  replyTimeoutMs: setting('--reply-timeout MS', 'for one whole reply', TEN_MINUTES, 20_000),
  sessionTimeoutMs: setting('--session-timeout MS', 'for one conversation', AN_HOUR, 60_000),
  /** Null: 10,000 for one address, 60,000 for a conversation of a list. */
  deadlineMs: setting(
    '--deadline MS',
    'for one verification (default: 10000; lists: 60000)',
    AN_HOUR,
  ),
  sessionsPerOperator: setting(
    '--sessions-per-operator N',
    'connections at once to one operator',
    integer(1, 1_000),
  ),
  recipientsPerSession: setting(
    '--recipients-per-session N',
    'recipients in one connection',
    integer(1, 10_000),
  ),
  sessionsPerSecond: setting(
    '--sessions-per-second N',
    'new connections a second to one operator',
    number(0.001, 100_000),
  ),
  concurrency: setting('--concurrency N', 'connections at once, in all', integer(1, 10_000), 200),
  /** Null: what the server says, else five minutes. */
  greylistDelayMs: setting(
    '--greylist-delay S',
    'wait before asking a greylisted address again',
    seconds,
  ),
  cache: setting('--cache on|off', 'remember definite answers', onOff, true),
  disposableFile: setting('--disposable-file F', 'own list of disposable domains', text),
  allowFile: setting('--allow-file F', 'own list of domains that are never disposable', text),
  blockedFile: setting(
    '--blocked-file F',
    'own list of addresses and domains that are blocklisted',
    text,
  ),
  spamTrapFile: setting(
    '--spam-trap-file F',
    'own list of addresses and domains that are spam traps',
    text,
  ),
  roleFile: setting('--role-file F', 'own list of role names, such as frontdesk', text),
  dataDir: setting('--data-dir DIR', 'where jobs and answers are kept', text, dataDirOf),
  database: setting(
    '--database URL',
    'sqlite:FILE or postgres://… (default: a file in the data directory)',
    databaseUrl,
    '',
  ),
  /** Of this process, at most: three of the queue, and five of the store, the least by which others go on beside one that waits. */
  databaseConnections: setting(
    '--database-connections N',
    'connections to PostgreSQL at once',
    integer(8, 1_000),
    17,
  ),
  /** How long a finished job is kept, with its addresses. */
  keepResultsMs: setting('--keep-results D', 'days that finished lists are kept', days, 30 * DAY),
  log: setting('--log LEVEL', LOG_LEVELS.join(', '), oneOf(...LOG_LEVELS), 'info'),
  logFormat: setting('--log-format FORMAT', 'pretty or json', oneOf('pretty', 'json')),
}

function dataDirOf({ XDG_DATA_HOME, HOME }: Environment): string {
  return join(XDG_DATA_HOME || join(HOME || homedir(), '.local', 'share'), 'ev')
}
