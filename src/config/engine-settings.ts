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
  secret,
  sender,
  servers,
  someOf,
  text,
  word,
} from './values.ts'

/** Sources of signals. See `SignalName` of the engine. */
const SIGNAL_NAMES = ['policies', 'parking', 'typo-network', 'gravatar'] as const

const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

const TEN_MINUTES = integer(1, 600_000)
const AN_HOUR = integer(1, 3_600_000)

/** Settings of the engine, for the command line and the service, in the order of the help. */
export const ENGINE = {
  dns: setting('--dns HOST[:PORT],…', 'DNS servers (default: those of the system)', servers, []),
  /** Empty for no check; null for the built-in names. */
  dnsCheckNames: setting(
    '--dns-check-names NAME,…|off',
    'domains with MX records, to check the DNS servers',
    checkNames,
  ),
  smtpPort: setting('--smtp-port N', 'port of the mail servers', integer(1, 65_535), 25),
  helo: setting('--helo NAME', 'host name to send, as in its PTR record', heloName, () =>
    hostname(),
  ),
  /** The bare address; empty for the null sender. */
  mailFrom: setting('--mail-from ADDRESS', 'sender of probes (default: <>)', sender, ''),
  sourceAddress: setting('--source-address IP', 'local address of connections', ip),
  proxy: setting('--proxy URL', 'proxy of connections, socks5://…', proxy),
  egress: setting('--egress NAME', 'name of this egress', word, 'default'),
  allowRanges: setting('--allow-ranges CIDR,…', 'allowed non-public addresses', ranges, []),
  specialDomains: setting('--special-domains', 'resolve .test, .example, …', onOff, false),
  startTls: setting(
    '--starttls WHEN',
    'use STARTTLS: demanded, always or never',
    oneOf('demanded', 'always', 'never'),
    'demanded',
  ),
  connectTimeoutMs: setting('--connect-timeout MS', 'limit for connecting', TEN_MINUTES, 10_000),
  greetingTimeoutMs: setting(
    '--greeting-timeout MS',
    'limit for the greeting',
    TEN_MINUTES,
    30_000,
  ),
  replyTimeoutMs: setting('--reply-timeout MS', 'limit for a reply', TEN_MINUTES, 20_000),
  sessionTimeoutMs: setting('--session-timeout MS', 'limit for a session', AN_HOUR, 60_000),
  /** Null: 10,000 for a single address, 60,000 for a session of a list. */
  deadlineMs: setting(
    '--deadline MS',
    'limit for a verification (default: 10000; lists: 60000)',
    AN_HOUR,
  ),
  sessionsPerOperator: setting(
    '--sessions-per-operator N',
    'concurrent connections to one operator',
    integer(1, 1_000),
  ),
  recipientsPerSession: setting(
    '--recipients-per-session N',
    'recipients per connection',
    integer(1, 10_000),
  ),
  sessionsPerSecond: setting(
    '--sessions-per-second N',
    'new connections per second to one operator',
    number(0.001, 100_000),
  ),
  concurrency: setting('--concurrency N', 'concurrent connections', integer(1, 10_000), 200),
  /** Null: the delay that the server states, otherwise five minutes. */
  greylistDelayMs: setting(
    '--greylist-delay S',
    'delay before retrying a greylisted address',
    seconds,
  ),
  cache: setting('--cache on|off', 'cache definite results', onOff, true),
  feedbackScope: setting(
    '--feedback-scope WHOSE',
    'feedback that verifications use: account (their own) or all',
    oneOf('account', 'all'),
    'account',
  ),
  calibration: setting('--calibration on|off', 'measure confidence by feedback', onOff, true),
  signals: setting(
    '--signals NAME,…',
    `signals beyond the SMTP session: ${SIGNAL_NAMES.join(', ')} (default: none)`,
    someOf(...SIGNAL_NAMES),
    [],
  ),
  gravatarKey: {
    ...setting('--gravatar-key KEY', 'API key of Gravatar, for its signal', secret),
    isSecret: true,
  },
  disposableFile: setting('--disposable-file F', 'file of disposable domains', text),
  allowFile: setting('--allow-file F', 'file of domains that are never disposable', text),
  blockedFile: setting('--blocked-file F', 'file of blocklisted addresses and domains', text),
  spamTrapFile: setting(
    '--spam-trap-file F',
    'file of addresses and domains that are spam traps',
    text,
  ),
  roleFile: setting('--role-file F', 'file of role names, such as frontdesk', text),
  dataDir: setting('--data-dir DIR', 'directory for jobs and cached results', text, defaultDataDir),
  database: setting(
    '--database URL',
    'sqlite:FILE or postgres://… (default: a file in the data directory)',
    databaseUrl,
    '',
  ),
  /**
   * Limit for this process. The minimum is three for the queue and five for the database: with
   * fewer one blocked statement could block all others.
   */
  databaseConnections: setting(
    '--database-connections N',
    'PostgreSQL connections of this process',
    integer(8, 1_000),
    17,
  ),
  /** Retention of finished jobs with their addresses. */
  keepResultsMs: setting('--keep-results D', 'days to keep finished lists', days, 30 * DAY),
  log: setting('--log LEVEL', LOG_LEVELS.join(', '), oneOf(...LOG_LEVELS), 'info'),
  logFormat: setting('--log-format FORMAT', 'pretty or json', oneOf('pretty', 'json')),
}

function defaultDataDir({ XDG_DATA_HOME, HOME }: Environment): string {
  return join(XDG_DATA_HOME || join(HOME || homedir(), '.local', 'share'), 'ev')
}
