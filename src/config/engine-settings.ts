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

/** See `ActionPolicy` of the engine. */
const ACTION_POLICIES = ['balanced', 'strict', 'lenient'] as const

const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const

/** The port of mail exchangers (RFC 5321 §4.5.4.2). */
export const SMTP_PORT = 25

const TEN_MINUTES = integer(1, 600_000)
const AN_HOUR = integer(1, 3_600_000)

/** Settings of the engine, for the command line and the service, in the order of the help. */
export const ENGINE = {
  dns: setting(
    '--dns host[:port],…',
    'DNS servers (default: the DNS servers of the system)',
    servers,
    [],
  ),
  /** Empty for no check; null for the built-in names. */
  dnsCheckNames: setting(
    '--dns-check-names name,…|off',
    'domains with MX records, used to check the DNS servers',
    checkNames,
  ),
  smtpPort: setting('--smtp-port n', 'port of the mail servers', integer(1, 65_535), SMTP_PORT),
  helo: setting(
    '--helo name',
    'host name to send to mail servers, as in its PTR record',
    heloName,
    () => hostname(),
  ),
  /** The bare address; empty for the null sender. */
  mailFrom: setting('--mail-from address', 'sender address of probes (default: <>)', sender, ''),
  sourceAddress: setting('--source-address ip', 'local IP address of connections', ip),
  proxy: setting('--proxy url', 'SOCKS5 proxy for connections, such as socks5://host:1080', proxy),
  egress: setting('--egress name', 'name of this egress', word, 'default'),
  allowRanges: setting(
    '--allow-ranges range,…',
    'non-public addresses that mail servers may have',
    ranges,
    [],
  ),
  specialDomains: setting(
    '--special-domains',
    'also resolve special-use domains, such as .test',
    onOff,
    false,
  ),
  startTls: setting(
    '--starttls when',
    'when to use STARTTLS: demanded, always or never',
    oneOf('demanded', 'always', 'never'),
    'demanded',
  ),
  connectTimeoutMs: setting(
    '--connect-timeout ms',
    'time limit for connecting',
    TEN_MINUTES,
    10_000,
  ),
  greetingTimeoutMs: setting(
    '--greeting-timeout ms',
    'time limit for the greeting (default: 30000; in lists: 120000)',
    TEN_MINUTES,
  ),
  replyTimeoutMs: setting(
    '--reply-timeout ms',
    'time limit for a reply (default: 20000; in lists: 120000)',
    TEN_MINUTES,
  ),
  sessionTimeoutMs: setting(
    '--session-timeout ms',
    'time limit for a session (default: 60000; in lists: 3600000)',
    AN_HOUR,
  ),
  deadlineMs: setting(
    '--deadline ms',
    'time limit for a single verification (default: 10000); lists have none',
    AN_HOUR,
  ),
  sessionsPerOperator: setting(
    '--sessions-per-operator n',
    'concurrent connections to one operator',
    integer(1, 1_000),
  ),
  recipientsPerSession: setting(
    '--recipients-per-session n',
    'recipients per connection',
    integer(1, 10_000),
  ),
  sessionsPerSecond: setting(
    '--sessions-per-second n',
    'new connections per second to one operator',
    number(0.001, 100_000),
  ),
  /** Null: as for an operator outside the table, `sessionsPerOperator` and `sessionsPerSecond`. */
  sessionsPerAddress: setting(
    '--sessions-per-address n',
    'concurrent connections to one IP address (default: as for one operator)',
    integer(1, 100_000),
  ),
  sessionsPerSecondPerAddress: setting(
    '--sessions-per-second-per-address n',
    'new connections per second to one IP address (default: as for one operator)',
    number(0.001, 100_000),
  ),
  /** Null: 100 times the limit of an address. */
  sessionsPerNetwork: setting(
    '--sessions-per-network n',
    'concurrent connections to one network (default: 100 times those to an address)',
    integer(1, 100_000),
  ),
  sessionsPerSecondPerNetwork: setting(
    '--sessions-per-second-per-network n',
    'new connections per second to one network (default: 100 times those to an address)',
    number(0.001, 1_000_000),
  ),
  concurrency: setting('--concurrency n', 'concurrent connections', integer(1, 10_000), 200),
  /** Null: the delay that the server states, otherwise five minutes. */
  greylistDelayMs: setting(
    '--greylist-delay seconds',
    'delay before a greylisted address is retried',
    seconds,
  ),
  cache: setting('--cache on|off', 'cache definite results', onOff, true),
  feedbackScope: setting(
    '--feedback-scope whose',
    'whose feedback to use: account (only the account) or all (all accounts)',
    oneOf('account', 'all'),
    'account',
  ),
  calibration: setting('--calibration on|off', 'calibrate confidence with feedback', onOff, true),
  actionPolicy: setting(
    '--action-policy name',
    'what to recommend for addresses that are not certain: balanced, strict or lenient',
    oneOf(...ACTION_POLICIES),
    'balanced',
  ),
  signals: setting(
    '--signals name,…',
    `signals beyond the SMTP session: ${SIGNAL_NAMES.join(', ')} (default: none)`,
    someOf(...SIGNAL_NAMES),
    [],
  ),
  gravatarKey: {
    ...setting('--gravatar-key key', 'API key of Gravatar, for its signal', secret),
    isSecret: true,
  },
  disposableFile: setting('--disposable-file file', 'file of disposable domains', text),
  allowFile: setting('--allow-file file', 'file of domains that are never disposable', text),
  blockedFile: setting('--blocked-file file', 'file of blocklisted addresses and domains', text),
  spamTrapFile: setting(
    '--spam-trap-file file',
    'file of addresses and domains that are spam traps',
    text,
  ),
  roleFile: setting('--role-file file', 'file of role names, such as frontdesk', text),
  dataDir: setting('--data-dir dir', 'directory for jobs and cached results', text, defaultDataDir),
  database: setting(
    '--database url',
    'database: sqlite:FILE or postgres://… (default: a file in the data directory)',
    databaseUrl,
    '',
  ),
  /**
   * Limit for this process. The minimum is three for the queue and five for the database: with
   * fewer one blocked statement could block all others.
   */
  databaseConnections: setting(
    '--database-connections n',
    'maximum number of PostgreSQL connections of this process',
    integer(8, 1_000),
    17,
  ),
  /** Retention of finished jobs with their addresses. */
  keepResultsMs: setting('--keep-results days', 'days to keep finished lists', days, 30 * DAY),
  /** Age of the results of other services that rows of a list may keep. */
  externalMaxAgeMs: setting(
    '--external-max-age days',
    'maximum age of results of other services that --keep-external keeps',
    days,
    90 * DAY,
  ),
  /** Age of those that are `unknown`, which is mostly trouble that has passed. */
  externalUnknownMaxAgeMs: setting(
    '--external-unknown-max-age days',
    'maximum age of those that are unknown',
    days,
    30 * DAY,
  ),
  log: setting('--log level', `log level: ${LOG_LEVELS.join(', ')}`, oneOf(...LOG_LEVELS), 'info'),
  logFormat: setting(
    '--log-format format',
    'log format: pretty or json (default: pretty; json in a service without a terminal)',
    oneOf('pretty', 'json'),
  ),
}

function defaultDataDir({ XDG_DATA_HOME, HOME }: Environment): string {
  return join(XDG_DATA_HOME || join(HOME || homedir(), '.local', 'share'), 'ev')
}
