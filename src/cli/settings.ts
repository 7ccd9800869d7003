import { existsSync, readFileSync, statSync } from 'node:fs'
import { homedir, hostname } from 'node:os'
import { join } from 'node:path'
import { type Command, Option } from 'commander'
import { type RawSettings, toConfig } from '../config/config.ts'
import { withoutServiceLinks } from '../config/environment.ts'
import {
  type Config,
  ENGINE_SETTINGS,
  isPath,
  type LogLevel,
  SETTINGS,
  type Setting,
  type Settings,
  toDisplayUnit,
} from '../config/settings.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { type CliContext, inCwd } from './context.ts'
import { EvCommand, SettingOption } from './ev-command.ts'

/** Settings of commands that only read or change stored data. */
export const DATA_SETTINGS = ['dataDir', 'database'] as const satisfies (keyof Settings)[]

/** Headings of the settings in help, in the order of help, and the settings below each. */
export const SETTING_GROUPS: readonly (readonly [
  title: string,
  keys: readonly (keyof Settings)[],
])[] = [
  [
    'Service settings:',
    [
      'listen',
      'host',
      'port',
      'baseUrl',
      'tlsCert',
      'tlsKey',
      'trustProxy',
      'insecureHttp',
      'work',
      'reacherApi',
      'limits',
      'plan',
      'minFreeDisk',
      'metricsListen',
      'metricsToken',
    ],
  ],
  [
    'Identity and network settings:',
    [
      'helo',
      'mailFrom',
      'dns',
      'dnsCheckNames',
      'proxy',
      'sourceAddress',
      'egress',
      'smtpPort',
      'startTls',
      'allowRanges',
      'specialDomains',
    ],
  ],
  [
    'Speed and timeout settings:',
    [
      'concurrency',
      'deadlineMs',
      'sessionsPerOperator',
      'recipientsPerSession',
      'sessionsPerSecond',
      'sessionsPerAddress',
      'sessionsPerSecondPerAddress',
      'sessionsPerNetwork',
      'sessionsPerSecondPerNetwork',
      'greylistDelayMs',
      'connectTimeoutMs',
      'greetingTimeoutMs',
      'replyTimeoutMs',
      'sessionTimeoutMs',
    ],
  ],
  [
    'Custom list settings:',
    ['disposableFile', 'allowFile', 'blockedFile', 'spamTrapFile', 'roleFile'],
  ],
  [
    'Feedback, signal and action settings:',
    [
      ...(['feedbackScope', 'calibration', 'signals', 'gravatarKey', 'actionPolicy'] as const),
      ...(['externalMaxAgeMs', 'externalUnknownMaxAgeMs'] as const),
    ],
  ],
  [
    'Webhook and alert settings:',
    [
      ...(['webhookAllowRanges', 'webhookCaFile', 'fastSandboxRetries'] as const),
      ...(['listAllowRanges'] as const),
      ...(['notifySmtp', 'notifyFrom', 'notifyTo'] as const),
    ],
  ],
  [
    'Identity provider settings:',
    ['oidcIssuer', 'oidcClientId', 'oidcClientSecret', 'oidcName', 'oidcAllowRanges'],
  ],
  [
    'Storage settings:',
    [
      'dataDir',
      'database',
      'databaseConnections',
      'keepResultsMs',
      'keepHistoryMs',
      'cache',
      'secret',
      'secretFile',
    ],
  ],
  ['Log settings:', ['log', 'logFormat']],
]

/** Settings that help shows without `--help-all`. */
const COMMON: ReadonlySet<keyof Settings> = new Set([
  ...(['listen', 'host', 'port', 'baseUrl', 'tlsCert', 'tlsKey', 'trustProxy'] as const),
  ...(['helo', 'mailFrom', 'dns', 'proxy', 'concurrency', 'dataDir', 'database'] as const),
] satisfies (keyof Settings)[])

const SOURCES = `
Settings can also be set in the environment, such as EV_HELO for --helo, or in the config file.`

/** With fewer settings, help shows all of them. */
const FEW = 9

/** Adds settings as flags of a command; those of the engine if `keys` is left out. */
export function addSettings(
  command: Command,
  context: CliContext,
  keys: readonly (keyof Settings)[] = ENGINE_SETTINGS.map(one => one.key),
): void {
  const isShort = keys.length >= FEW
  if (keys.includes('log')) {
    const quiet = new Option('-q, --quiet', 'print only results, warnings and errors')
    command.addOption(quiet.conflicts('verbose'))
    command.option('-v, --verbose', 'also print debug messages')
  }
  if (isShort && command instanceof EvCommand) command.addHelpAll({ isListed: true })
  command.option(
    '--config <file>',
    'config file (default: ./ev.config.json, otherwise ~/.config/ev/ev.config.json)',
  )
  command.option('--debug', 'print stack traces')
  if (isShort) command.addHelpText('after', SOURCES)
  for (const [title, group] of SETTING_GROUPS) {
    for (const key of group.filter(one => keys.includes(one))) {
      const one = SETTINGS.find(setting => setting.key === key) as Setting
      const option = optionOf(one, context, !isShort || COMMON.has(key))
      command.addOption(option.helpGroup(title))
    }
  }
}

function optionOf(one: Setting, { env }: CliContext, isCommon: boolean): Option {
  const { flag, value, help } = one
  // The flag is parsed so that the error can explain why it is rejected, but it has no help.
  if (one.isSecret) return new Option(`${flag} [value]`).hideHelp()
  const fallback =
    value === 'on|off' ? onOrOff(one.fallback(env)) : toDisplayUnit(one, one.fallback(env))
  const hasText = typeof fallback === 'number' || (typeof fallback === 'string' && fallback !== '')
  return new SettingOption(
    value === null ? flag : `${flag} <${value}>`,
    hasText ? `${help} (default: ${shortPath(`${fallback}`, env)})` : help,
    isCommon,
  )
}

const onOrOff = (isOn: unknown) => (isOn === true ? 'on' : 'off')

/** Writes the home directory as `~`. */
const shortPath = (path: string, { HOME }: CliContext['env']) =>
  HOME !== undefined && path.startsWith(`${HOME}/`) ? `~${path.slice(HOME.length)}` : path

/**
 * Reads and validates settings from flags, environment and file; `flags` are those of commander.
 */
export const readConfig = (context: CliContext, flags: Readonly<Record<string, unknown>>): Config =>
  withPaths(context, toConfig(readSettings(context, flags)))

/** Resolves relative paths in the settings against the working directory of the context. */
function withPaths(context: CliContext, config: Config): Config {
  const paths = SETTINGS.filter(isPath).map(({ key }) => {
    const path = config[key]
    return [key, typeof path === 'string' ? inCwd(context, path) : null] as const
  })
  const database = config.database.replace(
    /^sqlite:(?!:memory:)(.+)$/s,
    (_, file: string) => `sqlite:${inCwd(context, file)}`,
  )
  return Object.freeze({ ...config, ...Object.fromEntries(paths), database })
}

/** Reads settings without validating them. */
export function readSettings(
  context: CliContext,
  flags: Readonly<Record<string, unknown>>,
): RawSettings {
  const file = findFile(context, flags.config)
  const given = SETTINGS.map(one => [one.key, flags[commanderName(one.flag)] as string] as const)
  return {
    flags: {
      ...logFlag(flags),
      ...Object.fromEntries(given.filter(([, value]) => value !== undefined)),
    },
    environment: withoutServiceLinks(context.env),
    file: file === null ? null : { path: file, values: readFile(context, file) },
  }
}

/** `--quiet` and `--verbose` select a log level; `--log` wins over both. */
function logFlag({ quiet, verbose }: Readonly<Record<string, unknown>>): { log?: LogLevel } {
  if (quiet === true) return { log: 'warn' }
  return verbose === true ? { log: 'debug' } : {}
}

/** Returns a warning if the HELO name is not fully qualified, which servers reject; else null. */
export function heloHint(config: Config): string | null {
  const isFull = (helo: string) => helo.includes('.') || helo.startsWith('[')
  if (config.egresses.every(({ helo }) => isFull(helo))) return null
  return (
    `The host name of this machine, "${hostname()}", is not fully qualified, and many mail servers reject it. ` +
    'Set one with --helo probe.example.com (its PTR record should match).'
  )
}

const commanderName = (flag: string) =>
  flag.slice(2).replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())

function findFile(context: CliContext, flag: unknown): string | null {
  const named = typeof flag === 'string' ? flag : context.env.EV_CONFIG
  if (named !== undefined && named !== '') {
    try {
      statSync(inCwd(context, named))
      return named
    } catch (cause) {
      const source = typeof flag === 'string' ? '--config' : 'EV_CONFIG'
      const sentence = `${source} names ${named}, which cannot be read: ${errorMessage(cause)}. Correct the path or omit it.`
      throw new EvError('bad_config', sentence, { cause })
    }
  }
  const configHome = context.env.XDG_CONFIG_HOME || join(context.env.HOME || homedir(), '.config')
  const candidates = ['ev.config.json', join(configHome, 'ev', 'ev.config.json')]
  return candidates.find(path => existsSync(inCwd(context, path))) ?? null
}

function readFile(context: CliContext, path: string): Record<string, unknown> {
  try {
    const values: unknown = JSON.parse(readFileSync(inCwd(context, path), 'utf8'))
    if (typeof values !== 'object' || values === null || Array.isArray(values)) {
      throw new Error('it is not an object')
    }
    return values as Record<string, unknown>
  } catch (error) {
    const why = errorMessage(error)
    throw new EvError(
      'bad_config',
      `The config file ${path} cannot be read: ${why}. It must be a JSON object.`,
      {
        cause: error,
      },
    )
  }
}
